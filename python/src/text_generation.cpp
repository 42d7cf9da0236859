#include "text_generation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "array.hpp"
#include "errors.hpp"
#include "options.hpp"

namespace attn::python {
namespace {

using Model = Shared<TextModel>;
using OnToken = Typed<"collections.abc.Callable[[attn.GeneratedToken], object]">;

Typed<"attn.GeneratedText"> generate(const Model& self, const std::string& prompt, std::int64_t max_new_tokens, bool do_sample, double temperature,
                                     std::int64_t top_k, double top_p, double min_p, double repetition_penalty, std::uint64_t seed,
                                     std::vector<std::string> stop, bool add_special_tokens, const OnToken& on_token) {
  GenerateOptions options{.max_new_tokens = max_new_tokens,
                          .sampling = {.do_sample = do_sample,
                                       .temperature = temperature,
                                       .top_k = top_k,
                                       .top_p = top_p,
                                       .min_p = min_p,
                                       .repetition_penalty = repetition_penalty,
                                       .seed = seed},
                          .stop = std::move(stop),
                          .add_special_tokens = add_special_tokens};
  options.on_token = [f = nb::handle(on_token), signals = Signals()](const GeneratedToken& token) mutable {
    signals.check();
    const Locked locked;
    return f.is_none() || !f(make_result("GeneratedToken", token.id, token.text, token.probability)).is(nb::handle(Py_False));
  };
  const GeneratedText result = self.read("generate", [&](const TextModel& model) { return model.generate(prompt, options); });
  return make_result("GeneratedText", result.text, nb::cast(result.ids), to_python(result.tokens),
                     std::string(kFinishReasonNames[static_cast<std::size_t>(result.finish_reason)]));
}

Typed<"list[attn.NextToken]"> next_token(const Model& self, const std::string& text, std::int64_t top_k) {
  nb::list list;
  for (const NextToken& each : self.read("next_token", [&](const TextModel& model) { return model.next_token(text, top_k); }))
    list.append(make_result("NextToken", each.id, each.token, each.text, each.logit, each.probability));
  return list;
}

Typed<"attn.ScoredText"> score_tokens(const Model& self, const std::string& text) {
  const ScoredText scored = self.read("score_tokens", [&](const TextModel& model) { return model.score_tokens(text); });
  nb::list tokens;
  for (const ScoredToken& each : scored.tokens)
    tokens.append(make_result("ScoredToken", each.id, each.token, each.log_probability, each.rank, each.entropy));
  return make_result("ScoredText", tokens, scored.perplexity);
}

std::string apply_chat_template(nb::handle_t<Model> self, const nb::object& messages, bool add_generation_prompt, const nb::object& tools,
                                const nb::object& documents, const nb::object& chat_template, const nb::kwargs& variables) {
  const nb::object apply = nb::module_::import_("attn._chat").attr("apply_chat_template");
  return nb::cast<std::string>(apply(self, messages, add_generation_prompt, tools, documents, chat_template, variables));
}

FloatArray unembed(const Model& self, const ArrayLike& hidden_states) {
  constexpr const char* kOp = "unembed";
  const Floats given(hidden_states, kOp, "hidden_states");
  return to_python(self.read(kOp, [&](const TextModel& model) {
    Array<float> logits(model.check_unembed(given));
    model.run_unembed(given, logits.data());
    return logits;
  }));
}

}  // namespace

void define_cache(nb::module_& module) {
  nb::class_<Cache>(module, "KeyValueCache", nb::type_slots(calling_init()),
                    R"(Keys and values of the tokens that a language model has seen; from TextModel.create_cache().

It belongs to the model and its current weights.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> cache = model.create_cache(max_length=32)
>>> _ = model([[5, 6, 7]], cache=cache)
>>> model([[8]], cache=cache).logits.shape, cache.length
((1, 1, 317), 4))")
      .def_prop_ro(
          "length", [](const Cache& self) { return self.read("length", [](const KeyValueCache& of) { return of.length(); }); },
          "Number of tokens per sequence.")
      .def_prop_ro(
          "max_length", [](const Cache& self) { return self.read("max_length", [](const KeyValueCache& of) { return of.max_length(); }); },
          "Room for tokens.")
      .def(
          "truncate", [](Cache& self, std::int64_t length) { self.change("truncate", [&](KeyValueCache& of) { of.truncate(length); }); },
          nb::arg("length"), R"(Discards all tokens after the first ones.

length: number of tokens to keep.

Raises OutOfRangeError if there are fewer.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> cache = model.create_cache()
>>> _ = model([[5, 6, 7]], cache=cache)
>>> cache.truncate(1)
>>> cache.length
1)");
}

void define_text_generation(nb::class_<Model>& model) {
  model.def("generate", &generate, nb::arg("prompt"), nb::kw_only(), nb::arg("max_new_tokens") = 64, nb::arg("do_sample") = false,
            nb::arg("temperature") = 1.0, nb::arg("top_k") = 0, nb::arg("top_p") = 1.0, nb::arg("min_p") = 0.0, nb::arg("repetition_penalty") = 1.0,
            nb::arg("seed") = 0, nb::arg("stop") = std::vector<std::string>(), nb::arg("add_special_tokens") = true, nb::arg("on_token") = nb::none(),
            R"(Continues a text by the tokens that a language model predicts, one after the other, like transformers' generate().

prompt: a text; for a chat model that of apply_chat_template().
max_new_tokens: maximum number of new tokens.
do_sample: draw each token by its probability instead of taking the likeliest. temperature, top_k, top_p, min_p and seed have an effect only then.
temperature: divisor of the logits, from 1e-6 to 1e6.
top_k: draw only from this number of likeliest tokens; 0 for all.
top_p: draw only from the likeliest tokens that together have this probability (Holtzman et al. 2020).
min_p: draw only from tokens with at least this share of the largest probability (Nguyen et al. 2024).
repetition_penalty: divides positive and multiplies negative logits of tokens that occur before (Keskar et al. 2019).
seed: the same seed gives the same tokens.
stop: strings before which the new text ends.
add_special_tokens: as in tokenize(), for the prompt.
on_token: called with a GeneratedToken for each new token; False ends the text.

Returns a GeneratedText: the new part alone. Raises UnsupportedError for another head, OutOfRangeError if the prompt has more tokens than the
model has positions or a logit is NaN, ArgumentError for a prompt without tokens, ConfigError for an option outside its range,
OutOfMemoryError if the keys and values do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> text = model.generate("The old man", max_new_tokens=8)
>>> len(text.ids), text.finish_reason
(8, 'length')
>>> options = {"do_sample": True, "temperature": 0.8, "top_p": 0.9, "seed": 3, "max_new_tokens": 8}
>>> model.generate("The old man", **options).ids == model.generate("The old man", **options).ids
True)");
  model.def(
      "apply_chat_template", &apply_chat_template, nb::arg("messages"), nb::kw_only(), nb::arg("add_generation_prompt") = false,
      nb::arg("tools") = nb::none(), nb::arg("documents") = nb::none(), nb::arg("chat_template") = nb::none(), nb::arg("variables"),
      nb::sig("def apply_chat_template(self, messages: collections.abc.Sequence[collections.abc.Mapping[str, typing.Any]], *, "
              "add_generation_prompt: bool = False, tools: collections.abc.Sequence[typing.Any] | None = None, "
              "documents: collections.abc.Sequence[typing.Any] | None = None, chat_template: str | None = None, **variables: typing.Any) -> str"),
      R"(Formats a conversation as the model was trained to read it, like transformers' apply_chat_template(tokenize=False).

Renders the Jinja template of tokenizer_config.json, chat_template.jinja or a GGUF file by the package jinja2. The text contains
the special tokens, so pass add_special_tokens=False to generate(). A template is a program that may run for a long time: load models that
you trust.

messages: dicts with role and content, oldest first.
add_generation_prompt: end with the start of an answer.
tools: descriptions of functions that the model may call, as JSON schemas.
documents: documents to answer from.
chat_template: the name of one of the model's templates, or a template.
variables: further variables of the template, for example enable_thinking=False.

Returns the text. Raises UnsupportedError if the model has no template or jinja2 is missing, ArgumentError if the template refuses the
messages, FormatError if it has a syntax error.

>>> model = attn.TextModel.load("testdata/models/tiny-llama")
>>> template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"  # this model has none
>>> model.apply_chat_template([{"role": "user", "content": "Hi"}], chat_template=template)
'<user>Hi')");
  model.def("next_token", &next_token, nb::arg("text"), nb::kw_only(), nb::arg("top_k") = 5,
            R"(Returns the tokens that most likely follow a text, the likeliest first.

text: a text.
top_k: number of tokens.

Returns a list of NextToken. Raises the errors of generate().

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> len(model.next_token("The old man", top_k=3))
3)");
  model.def("score_tokens", &score_tokens, nb::arg("text"), R"(Returns how well the model predicts each token of a text from the tokens before it.

text: a text.

Returns a ScoredText. Raises the errors of generate().

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> scored = model.score_tokens("The old man")
>>> scored.tokens[0].rank is None, scored.perplexity > 1
(True, True))");
  model.def("unembed", &unembed, nb::arg("hidden_states"), R"(Applies the head of a language model or of a fill-mask model to hidden states.

Hidden states before the last one of a decoder lack its final norm; attn.lens.logit_lens() applies it.

hidden_states: (..,E).

Returns logits (..,V). Raises UnsupportedError if the head does not predict tokens, ShapeError if the last dimension is not E,
OutOfMemoryError if the logits do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> output = model([[5, 6, 7]])
>>> bool((model.unembed(output.last_hidden_state) == output.logits).all())
True)");
  model.def(
      "create_cache",
      [](const Model& self, std::optional<std::int64_t> max_length, std::int64_t batch_size) {
        return new Cache{.object = self.read("create_cache", [&](const TextModel& of) {
          return of.create_cache({.max_length = max_length, .batch_size = batch_size});
        })};
      },
      nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("batch_size") = 1,
      R"(Creates memory for keys and values, so that a forward of further tokens computes only those.

max_length: room for tokens; default all positions of the model.
batch_size: number of sequences.

Returns a KeyValueCache. Raises UnsupportedError unless the model is causal, OutOfRangeError unless max_length is from 1 to the positions of the
model, ConfigError for batch_size below 1, OutOfMemoryError if the cache does not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> cache = model.create_cache(max_length=16)
>>> for ids in [[5, 6, 7]], [[8]]:
...     output = model(ids, cache=cache)
>>> cache.length, output.logits.shape
(4, (1, 1, 317)))");
}

}  // namespace attn::python
