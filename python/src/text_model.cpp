#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "embedding.hpp"
#include "encodings.hpp"
#include "errors.hpp"
#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"
#include "text_generation.hpp"
#include "texts.hpp"
#include "tokenizer.hpp"

namespace attn::python {
namespace {

using Model = Shared<TextModel>;
using Ids = Typed<"attn.Encoding | numpy.typing.ArrayLike">;
using Label = std::variant<std::int64_t, std::string>;
using FilledText = Typed<"list[list[attn.FilledMask]]">;
using Answers = Typed<"list[attn.Answer]">;

EncodingTensors<2> encoding_of(const char* op, const Ids& input_ids, const MaybeArrayLike& attention_mask, const MaybeArrayLike& token_type_ids) {
  EncodingTensors<2> encoding;
  nb::object ids = input_ids, mask = attention_mask, types = token_type_ids;
  if (nb::hasattr(input_ids, "input_ids")) {
    ids = input_ids.attr("input_ids");
    if (mask.is_none()) mask = input_ids.attr("attention_mask");
    if (types.is_none()) types = nb::getattr(input_ids, "token_type_ids", nb::none());
  }
  encoding.input_ids = ids_of(ids, op, "input_ids");
  if (!mask.is_none()) encoding.attention_mask = flags_of(mask, op, "attention_mask");
  if (!types.is_none()) encoding.token_type_ids = ids_of(types, op, "token_type_ids");
  return encoding;
}

template <class Part>
TokenOffsets offsets_of(const std::vector<Part>& parts) {
  TokenOffsets offsets;
  for (const Part& part : parts) offsets.emplace_back(std::pair(part.start, part.end));
  return offsets;
}

EncodingResult tokenize(const Model& self, const Texts& given, const GivenTokenizeOptions& how) {
  constexpr const char* kOp = "tokenize";
  const GivenTexts texts(given, kOp);
  const TokenizeOptions options = how.options(kOp);
  return encoding_of_texts(texts, self.read(kOp, [&](const TextModel& model) {
    return texts.are_pairs ? model.tokenize_pairs(texts.pairs, options) : model.tokenize(texts.texts, options);
  }));
}

EncodingResult tokenize_words(const Model& self, const WordLists& given, const GivenTokenizeOptions& how) {
  constexpr const char* kOp = "tokenize_words";
  const GivenWords words(given, kOp);
  const TokenizeOptions options = how.options(kOp);
  return encoding_of_words(words, self.read(kOp, [&](const TextModel& model) {
    return words.are_pairs ? model.tokenize_word_pairs(words.pairs, options) : model.tokenize_words(words.lists, options);
  }));
}

using LogitsToReturn = Typed<"bool | typing.Literal['last']">;

OutputLogits logits_of(const LogitsToReturn& given, const char* op) {
  if (PyBool_Check(given.ptr())) return given.is(nb::handle(Py_True));
  if (PyUnicode_Check(given.ptr()) && nb::cast<std::string>(given) == "last") return OutputLogits::last;
  detail::fail(ErrorCode::argument, op, "output_logits", {"True, False or 'last'"}, {nb::cast<std::string>(nb::repr(given))});
}

using MaybeIds = Typed<"attn.Encoding | numpy.typing.ArrayLike | None">;

/// Ids for given embeddings, of which only the shape counts.
Ids ids_for(const std::optional<TensorCopy>& embeds, const MaybeIds& given, const char* op) {
  if (!embeds) {
    if (given.is_none()) detail::fail(ErrorCode::argument, op, "input_ids", {"an Encoding or token ids"}, {"missing"});
    return nb::borrow<Ids>(given);
  }
  if (!given.is_none()) detail::fail(ErrorCode::argument, op, "inputs_embeds", {"a call without input_ids"}, {"given with input_ids"});
  if (embeds->shape.rank() != 3) detail::fail(ErrorCode::shape, op, "inputs_embeds", {"(B,L,W)"}, {embeds->shape});
  return nb::borrow<Ids>(nb::module_::import_("numpy").attr("zeros")(nb::make_tuple(embeds->shape[0], embeds->shape[1]), "int32"));
}

Typed<"attn.TextModelOutput"> forward(const Model& self, const MaybeIds& input_ids, const MaybeArrayLike& attention_mask,
                                      const MaybeArrayLike& token_type_ids, bool output_attentions, bool output_hidden_states, const MaybeMask& mask,
                                      bool is_causal, const MaybeArrayLike& head_mask, const Patches& patch, const TraceNames& trace,
                                      const std::optional<std::vector<std::int64_t>>& trace_layers, const LogitsToReturn& output_logits, Cache* cache,
                                      const MaybeArrayLike& inputs_embeds) {
  constexpr const char* kOp = "TextModel";
  std::optional<TensorCopy> embeds;
  if (!inputs_embeds.is_none()) embeds = TensorCopy(Floats(inputs_embeds, kOp, "inputs_embeds"));
  const EncodingTensors<2> inputs = encoding_of(kOp, ids_for(embeds, input_ids, kOp), attention_mask, token_type_ids);
  TextForwardOptions options{.output_attentions = output_attentions,
                             .output_hidden_states = output_hidden_states,
                             .output_logits = logits_of(output_logits, kOp),
                             .mask = mask_of(mask, kOp, "mask"),
                             .is_causal = is_causal,
                             .patches = patches_of(patch, kOp),
                             .inputs_embeds = std::move(embeds)};
  std::optional<std::vector<std::int64_t>> layers = trace_layers;
  count_from_start(self, options.patches, layers);
  options.trace = trace_of(trace, layers, kOp);
  if (!head_mask.is_none()) options.head_mask = TensorCopy(Floats(head_mask, kOp, "head_mask"));
  const auto run = [&](KeyValueCache* of_call) {
    options.cache = of_call;
    return self.read(kOp, [&](const TextModel& model) { return model.forward(inputs, options); });
  };
  std::optional<TextModelOutput> result;
  if (cache != nullptr)
    cache->change(kOp, [&](KeyValueCache& of_call) {
      const Locked locked;
      result = run(&of_call);
    });
  else
    result = run(nullptr);
  const TextModelOutput& output = *result;
  return make_result("TextModelOutput", to_python(output.last_hidden_state), to_python(output.logits), to_python(output.attentions),
                     to_python(output.hidden_states), to_python(output.trace));
}

FloatArray embed(const Model& self, const SingleTexts& given, std::optional<std::int64_t> max_length, bool truncation,
                 const Word<kPoolingNames>& pooling, std::optional<bool> normalize, std::int64_t batch_size, const std::optional<std::string>& prompt,
                 const std::optional<std::string>& prompt_name, bool add_special_tokens, const Word<kSideNames>& truncation_side,
                 const TruncatedList& truncated_texts, const Done& on_progress) {
  constexpr const char* kOp = "embed";
  Truncated truncated(truncated_texts, kOp);
  const GivenTexts texts(given, kOp, false);
  const EmbedOptions options{.max_length = max_length,
                             .truncation = truncation,
                             .pooling = maybe_word_of<Pooling>(pooling, kOp, "pooling"),
                             .normalize = normalize,
                             .batch_size = batch_size,
                             .prompt = prompt,
                             .prompt_name = prompt_name,
                             .on_progress = progress_of(on_progress),
                             .add_special_tokens = add_special_tokens,
                             .truncation_side = side_of(truncation_side, kOp),
                             .truncated = truncated.flags()};
  const Array<float> vectors = self.read(kOp, [&](const TextModel& model) { return model.embed(texts.texts, options); });
  truncated.fill();
  return to_python(vectors);
}

Typed<"list[list[attn.LabelScore]]"> classify(const Model& self, const Texts& given, std::optional<std::int64_t> top_k,
                                              std::optional<std::int64_t> max_length, bool truncation, std::int64_t batch_size,
                                              bool add_special_tokens, const Word<kSideNames>& truncation_side, const TruncatedList& truncated_texts,
                                              const Done& on_progress) {
  constexpr const char* kOp = "classify";
  Truncated truncated(truncated_texts, kOp);
  const GivenTexts texts(given, kOp);
  const ClassifyOptions options{.max_length = max_length,
                                .truncation = truncation,
                                .batch_size = batch_size,
                                .on_progress = progress_of(on_progress),
                                .add_special_tokens = add_special_tokens,
                                .truncation_side = side_of(truncation_side, kOp),
                                .top_k = top_k,
                                .truncated = truncated.flags()};
  const auto scores = self.read(kOp, [&](const TextModel& model) {
    return texts.are_pairs ? model.classify_pairs(texts.pairs, options) : model.classify(texts.texts, options);
  });
  truncated.fill();
  nb::list all;
  for (const std::vector<LabelScore>& of_text : scores) {
    nb::list list;
    for (const LabelScore& each : of_text) list.append(make_result("LabelScore", each.label, each.score));
    all.append(list);
  }
  return all;
}

Typed<"list[list[attn.Entity]]"> classify_tokens(const Model& self, const SingleTexts& given, const Word<kAggregationNames>& aggregation,
                                                 std::optional<std::int64_t> stride, std::vector<std::string> ignore_labels,
                                                 std::optional<std::int64_t> max_length, bool truncation, std::int64_t batch_size,
                                                 bool add_special_tokens, const Word<kSideNames>& truncation_side,
                                                 const TruncatedList& truncated_texts, const Done& on_progress) {
  constexpr const char* kOp = "classify_tokens";
  Truncated truncated(truncated_texts, kOp);
  const GivenTexts texts(given, kOp, false);
  const ClassifyTokensOptions options{.max_length = max_length,
                                      .truncation = truncation,
                                      .aggregation = word_of<Aggregation>(aggregation, kOp, "aggregation"),
                                      .stride = stride,
                                      .ignore_labels = std::move(ignore_labels),
                                      .batch_size = batch_size,
                                      .on_progress = progress_of(on_progress),
                                      .add_special_tokens = add_special_tokens,
                                      .truncation_side = side_of(truncation_side, kOp),
                                      .truncated = truncated.flags()};
  const auto found = self.read(kOp, [&](const TextModel& model) { return model.classify_tokens(texts.texts, options); });
  truncated.fill();
  nb::list all;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const nb::list counted = places(texts.texts[i], offsets_of(found[i]));
    nb::list list;
    for (std::size_t j = 0; j < found[i].size(); ++j)
      list.append(make_result("Entity", found[i][j].label, found[i][j].score, found[i][j].text, counted[j][0], counted[j][1]));
    all.append(list);
  }
  return all;
}

FilledText filled_text(const std::vector<std::vector<FilledMask>>& masks) {
  nb::list all;
  for (const std::vector<FilledMask>& of_mask : masks) {
    nb::list list;
    for (const FilledMask& each : of_mask) list.append(make_result("FilledMask", each.token, each.id, each.score, each.text));
    all.append(list);
  }
  return all;
}

FillMaskOptions fill_mask_options(std::int64_t top_k, std::optional<std::vector<std::string>> targets, std::int64_t batch_size,
                                  const Done& on_progress) {
  return {.top_k = top_k,
          .targets = std::move(targets).value_or(std::vector<std::string>()),
          .batch_size = batch_size,
          .on_progress = progress_of(on_progress)};
}

FilledText fill_mask(const Model& self, const std::string& text, std::int64_t top_k, std::optional<std::vector<std::string>> targets,
                     std::int64_t batch_size, const Done& on_progress) {
  const FillMaskOptions options = fill_mask_options(top_k, std::move(targets), batch_size, on_progress);
  return filled_text(self.read("fill_mask", [&](const TextModel& model) { return model.fill_mask(text, options); }));
}

Typed<"list[list[list[attn.FilledMask]]]"> fill_masks(const Model& self, const TextList& given, std::int64_t top_k,
                                                      std::optional<std::vector<std::string>> targets, std::int64_t batch_size,
                                                      const Done& on_progress) {
  const GivenTexts texts(given, "fill_mask", false, "text");
  const FillMaskOptions options = fill_mask_options(top_k, std::move(targets), batch_size, on_progress);
  nb::list all;
  for (const auto& of_text : self.read("fill_mask", [&](const TextModel& model) { return model.fill_mask_all(texts.texts, options); }))
    all.append(filled_text(of_text));
  return all;
}

Answers answers_in(const std::string& context, const std::vector<Answer>& answers) {
  const nb::list counted = places(context, offsets_of(answers));
  nb::list list;
  for (std::size_t i = 0; i < answers.size(); ++i)
    list.append(make_result("Answer", answers[i].text, answers[i].score, counted[i][0], counted[i][1]));
  return list;
}

AnswerOptions answer_options(std::int64_t top_k, std::int64_t max_answer_length, std::optional<std::int64_t> stride, bool allow_empty,
                             std::optional<std::int64_t> max_length, std::int64_t batch_size, const Done& on_progress) {
  return {.top_k = top_k,
          .max_answer_length = max_answer_length,
          .stride = stride,
          .allow_empty = allow_empty,
          .max_length = max_length,
          .batch_size = batch_size,
          .on_progress = progress_of(on_progress)};
}

template <class... Options>
Answers answer(const Model& self, const std::string& question, const std::string& context, const Options&... given) {
  const AnswerOptions options = answer_options(given...);
  return answers_in(context, self.read("answer", [&](const TextModel& model) { return model.answer(question, context, options); }));
}

template <class Questions, class Contexts, class... Options>
Typed<"list[list[attn.Answer]]"> answers(const Model& self, const Questions& question, const Contexts& context, const Options&... given) {
  constexpr const char* kOp = "answer";
  const GivenTexts questions(question, kOp, false, "question"), contexts(context, kOp, false, "context");
  const bool has_one_question = PyUnicode_Check(question.ptr()), has_one_context = PyUnicode_Check(context.ptr());
  const std::size_t count = has_one_question ? contexts.texts.size() : questions.texts.size();
  if (!has_one_context && contexts.texts.size() != count)
    detail::fail(ErrorCode::argument, kOp, "context", {count, " texts, as many as questions"}, {"a list of ", contexts.texts.size()});
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(questions.texts[has_one_question ? 0 : i], contexts.texts[has_one_context ? 0 : i]);
  const AnswerOptions options = answer_options(given...);
  const auto found = self.read(kOp, [&](const TextModel& model) { return model.answer_all(pairs, options); });
  nb::list all;
  for (std::size_t i = 0; i < count; ++i) all.append(answers_in(pairs[i].second, found[i]));
  return all;
}

Typed<"list[attn.RankedDocument]"> rank(const Model& self, const std::string& query, const SingleTexts& given, std::optional<std::int64_t> top_k,
                                        std::optional<std::int64_t> max_length, bool truncation, std::int64_t batch_size,
                                        const std::optional<std::string>& prompt, const std::optional<std::string>& prompt_name,
                                        bool add_special_tokens, const Word<kSideNames>& truncation_side, const TruncatedList& truncated_texts,
                                        const Done& on_progress) {
  constexpr const char* kOp = "rank";
  Truncated truncated(truncated_texts, kOp);
  const GivenTexts documents(given, kOp, false, "documents");
  const RankOptions options{.max_length = max_length,
                            .truncation = truncation,
                            .top_k = top_k,
                            .batch_size = batch_size,
                            .on_progress = progress_of(on_progress),
                            .add_special_tokens = add_special_tokens,
                            .truncation_side = side_of(truncation_side, kOp),
                            .prompt = prompt,
                            .prompt_name = prompt_name,
                            .truncated = truncated.flags()};
  const auto ranked = self.read(kOp, [&](const TextModel& model) { return model.rank(query, documents.texts, options); });
  truncated.fill();
  nb::list list;
  for (const RankedDocument& each : ranked) list.append(make_result("RankedDocument", each.index, each.score));
  return list;
}

std::string decode(const Model& self, const ArrayLike& given, bool skip_special_tokens) {
  const std::vector<std::int64_t> numbers = ids_to_decode(given);
  return self.read("decode", [&](const TextModel& model) { return model.decode(numbers, skip_special_tokens); });
}

Typed<"attn.Gradients"> gradients(Model& self, const Ids& input_ids, const MaybeArrayLike& attention_mask, const MaybeArrayLike& token_type_ids,
                                  const std::optional<Label>& label, std::optional<std::int64_t> component, std::int64_t row,
                                  std::optional<std::int64_t> token, bool embeddings, bool attentions, bool parameters) {
  constexpr const char* kOp = "gradients";
  const EncodingTensors<2> inputs = encoding_of(kOp, input_ids, attention_mask, token_type_ids);
  const GradientOptions options{.target = {.row = row, .label = label, .component = component, .token = token},
                                .embeddings = embeddings,
                                .attentions = attentions,
                                .parameters = parameters};
  const auto result = self.change(kOp, [&](TextModel& model) { return model.gradients(inputs, options); });
  return make_result("Gradients", result.value, to_python(result.embeddings), to_python(result.attentions), to_python(result.parameters));
}

Typed<"attn.Attribution"> attribute(const Model& self, const std::string& text, const Word<kAttributionMethodNames>& method,
                                    const std::optional<Label>& target, const std::optional<Label>& contrast,
                                    const std::optional<std::int64_t>& position, std::int64_t steps) {
  constexpr const char* kOp = "attribute";
  const AttributeOptions options{
      .method = word_of<AttributionMethod>(method, kOp, "method"), .target = target, .contrast = contrast, .position = position, .steps = steps};
  const TextAttribution result = self.read(kOp, [&](const TextModel& model) { return model.attribute(text, options); });
  Array<float> scores({static_cast<std::int64_t>(result.scores.size())});
  std::copy(result.scores.begin(), result.scores.end(), scores.data());
  return make_result("Attribution", to_python(result.tokens), places(text, result.offsets), to_python(scores), result.delta);
}

Typed<"list[attn.Attribution]"> attributions(const Model& self, const TextList& given, const Word<kAttributionMethodNames>& method,
                                             const std::optional<Label>& target, const std::optional<Label>& contrast,
                                             const std::optional<std::int64_t>& position, std::int64_t steps) {
  nb::list all;
  for (const std::string& text : GivenTexts(given, "attribute", false, "text").texts)
    all.append(attribute(self, text, method, target, contrast, position, steps));
  return all;
}

using Examples = Typed<"collections.abc.Iterable[tuple[str | tuple[str, str], int | float | str] | tuple[str, str] | str]">;
using Progress = Typed<"collections.abc.Callable[[attn.FineTuneProgress], bool | None]">;

/// For a classifier, or texts and (prompt, text) for a language model.
std::vector<FineTuneExample> examples_of(const Examples& given, bool of_tokens) {
  std::vector<FineTuneExample> examples;
  const auto is_pair = [](nb::handle item) { return PySequence_Check(item.ptr()) && !PyUnicode_Check(item.ptr()) && nb::len(item) == 2; };
  const auto refuse = [&](const std::string& got) {
    detail::fail(ErrorCode::argument, "fine_tune", detail::text({"examples[", examples.size(), "]"}),
                 {of_tokens ? "a text or (prompt, text)" : "(text, label) or ((text, text_pair), label)"}, {got});
  };
  const auto read = [&](nb::handle item, auto& to) {
    if (!nb::try_cast(item, to)) refuse("a tuple with " + (PyUnicode_Check(item.ptr()) ? "a str with lone surrogates" : name_of_type(item)));
  };
  check_list(given, "fine_tune", "examples", of_tokens ? "a list of texts" : "a list of (text, label)");
  for (const nb::handle each : given) {
    check_signals(examples.size());
    FineTuneExample example;
    if (of_tokens) {
      if (is_pair(each)) read(nb::object(each[0]), example.prompt);
      if (!is_pair(each) && !PyUnicode_Check(each.ptr())) refuse(kind_of(each));
      read(is_pair(each) ? nb::object(each[1]) : nb::borrow<nb::object>(each), example.text);
      examples.push_back(std::move(example));
      continue;
    }
    if (!is_pair(each)) refuse(kind_of(each));
    const nb::object text = each[0], label = each[1];
    if (is_pair(text)) {
      read(nb::object(text[0]), example.text);
      read(nb::object(text[1]), example.text_pair.emplace());
    } else {
      read(text, example.text);
    }
    read(label, example.label);
    examples.push_back(std::move(example));
  }
  return examples;
}

Typed<"attn.FineTuneResult"> fine_tune(Model& self, const Examples& given, std::int64_t epochs, std::int64_t batch_size,
                                       std::optional<double> learning_rate, double weight_decay, std::optional<std::int64_t> layers,
                                       std::vector<std::string> labels, std::uint64_t seed, double validation, const Progress& on_progress) {
  const Task task = self.read("fine_tune", [](const TextModel& of) { return of.task(); });
  const std::vector<FineTuneExample> examples = examples_of(given, task == Task::text_generation);
  FineTuneOptions options{.epochs = epochs,
                          .batch_size = batch_size,
                          .learning_rate = learning_rate,
                          .weight_decay = weight_decay,
                          .layers = layers,
                          .labels = std::move(labels),
                          .seed = seed,
                          .validation = validation};
  options.on_progress = [f = nb::handle(on_progress), signals = Signals()](const FineTuneProgress& now) mutable {
    signals.check();
    const Locked locked;
    if (f.is_none()) return true;
    const nb::object progress =
        make_result("FineTuneProgress", now.epoch, now.step, now.steps, now.loss, now.validation_loss, now.validation_accuracy);
    return !f(progress).is(nb::handle(Py_False));
  };
  const FineTuneResult result = self.change("fine_tune", [&](TextModel& model) { return model.fine_tune(examples, options); });
  return make_result("FineTuneResult", result.loss, result.validation_accuracy);
}

}  // namespace

void define_text_model(nb::module_& module) {
  nb::class_<LayerPatch>(module, "LayerPatch", nb::type_slots(calling_init()),
                         R"(Replaces computed values inside one layer of a forward (activation patching, Vig et al. 2020).

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> clean, other = model.tokenize("a good film"), model.tokenize("a dull film")
>>> state = model(clean, output_hidden_states=True).hidden_states[1]
>>> patched = model(other, patch=attn.LayerPatch(1, hidden_state=state))
>>> bool((patched.logits == model(clean).logits).all())
True)")
      .def(
          "__init__",
          [](LayerPatch* self, std::int64_t layer, const MaybeArrayLike& hidden_state, const MaybeArrayLike& merged, const MaybeArrayLike& q_proj,
             const MaybeArrayLike& k_proj, const MaybeArrayLike& v_proj, const MaybeArrayLike& weights) {
            const auto copy = [](const MaybeArrayLike& given, const char* name) {
              return given.is_none() ? std::nullopt : std::optional(TensorCopy(Floats(given, "LayerPatch", name)));
            };
            new (self) LayerPatch{.layer = layer,
                                  .hidden_state = copy(hidden_state, "hidden_state"),
                                  .merged = copy(merged, "merged"),
                                  .q_proj = copy(q_proj, "q_proj"),
                                  .k_proj = copy(k_proj, "k_proj"),
                                  .v_proj = copy(v_proj, "v_proj"),
                                  .weights = copy(weights, "weights")};
          },
          nb::arg("layer"), nb::kw_only(), nb::arg("hidden_state") = nb::none(), nb::arg("merged") = nb::none(), nb::arg("q_proj") = nb::none(),
          nb::arg("k_proj") = nb::none(), nb::arg("v_proj") = nb::none(), nb::arg("weights") = nb::none(),
          R"(layer: the layer, counted from 0, or from the end if negative.
hidden_state: (B,L,E), replaces the layer's input.
merged: (B,L,E), replaces the concatenated results of the heads, before W_O.
q_proj, k_proj, v_proj: (B,L,H·D), (B,L,Hkv·D) and (B,L,Hkv·D), replace the projected queries, keys and values, before RoPE.
weights: (B,H,L,L), replaces the attention weights after softmax; not with a cache.

The arrays are copied. The forward raises ShapeError if they do not fit, OutOfRangeError if there is no such layer.

Raises DtypeError for an array that does not hold real numbers.)")
      .def_prop_ro("_layer", [](const LayerPatch& self) { return self.layer; })
      .def_prop_ro("_values", [](const LayerPatch& self) {
        const auto copy = [](const std::optional<TensorCopy>& of) -> nb::object {
          if (!of) return nb::none();
          Array<float> array(of->shape);
          std::copy_n(of->data, array.size(), array.data());
          return to_python(array);
        };
        nb::dict values;
        values["hidden_state"] = copy(self.hidden_state);
        values["merged"] = copy(self.merged);
        values["q_proj"] = copy(self.q_proj);
        values["k_proj"] = copy(self.k_proj);
        values["v_proj"] = copy(self.v_proj);
        values["weights"] = copy(self.weights);
        return values;
      });

  define_cache(module);
  nb::class_<Model> model(module, "TextModel", nb::type_slots(calling_init()),
                          R"(Runs a text model from a Hugging Face folder: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, MPNet,
ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2, GTE, GPT-2, GPT-NeoX, Llama, Mistral, Qwen or Gemma, with or without a head
(transformers' AutoModel, AutoModelForTokenClassification and so on; sentence-transformers' SentenceTransformer).

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> answers = model.classify(["A warm film.", "Far too long."])
>>> [answer[0].label for answer in answers]
['positive', 'negative'])");
  model.def_static(
      "load",
      [](const Path& path, const Word<kWeightsNames>& weights, Threads threads) {
        const TextModelOptions options{.weights = maybe_word_of<Weights>(weights, "TextModel.load", "weights"), .tokenizer = make_tokenizer};
        const std::string folder = model_path_of(path, "TextModel.load");
        return new Model{.object = run(threads, [&] { return TextModel::load(folder, options); }), .threads = threads};
      },
      nb::arg("path"), nb::kw_only(), nb::arg("weights") = nb::none(), nb::arg("threads") = nb::none(),
      R"(Loads a folder with config.json, model.safetensors or the files that model.safetensors.index.json names, and the other published files.

path: the folder, the .gguf file of a language model, or the id of a model that you have downloaded to the Hugging Face cache, for example
'sentence-transformers/all-MiniLM-L6-v2' (environment variables HF_HUB_CACHE, HF_HOME). attn never uses the network.
weights: 'float32' or 'int8', the arithmetic of linear maps; default as in the files.
threads: of the model's calls; default those of set_num_threads().

Returns a TextModel. Raises MissingFileError if the folder or one of its required files does not exist, FormatError if a file is damaged, ConfigError
if config.json contradicts itself or for other weights, MismatchError with all missing and mis-shaped tensors, UnsupportedError for other models, and
when texts are tokenized, if the tokenizer has a part that attn does not have and the package tokenizers is not installed, OutOfMemoryError if the
model does not fit into memory.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.task, model.labels, model.weights
('text-classification', ['negative', 'positive'], 'float32'))");
  define_threads(model);
  define_encoding<Model, Texts>(model, "tokenize", &tokenize,
                                R"(Converts a text, texts, or pairs of texts to token ids.

texts: a text, a list of texts, or a list of pairs.
max_length: texts are truncated to this many tokens, special tokens included; default the model's maximum.
truncation: False raises OutOfRangeError for an overlong text instead.
add_special_tokens: add [CLS] and so on around a text.
truncation_side: 'left' or 'right', the end that is cut; default as in tokenizer_config.json, else 'right'.
padding_side: 'left' or 'right', the end where shorter texts are padded.

Returns an Encoding with ids, mask and types (B,L). Raises ArgumentError if texts are not texts, OutOfRangeError for a max_length that the
model does not have or that leaves no room for the special tokens, ConfigError for another side, UnsupportedError if attn has no tokenizer for the
model, OutOfMemoryError if the ids do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.tokenize("A warm film.").tokens
[['[CLS]', 'a', 'warm', 'film', '.', '[SEP]']])");
  define_encoding<Model, WordLists>(model, "tokenize_words", &tokenize_words,
                                    R"(Converts lists of words, or pairs of lists, to token ids, like is_split_into_words of transformers.

Each word is tokenized separately. The other arguments are those of tokenize().

texts: lists of words, or pairs of lists.

Returns an Encoding. Its offsets are places within the word, and its words are the index of each token's word.
Raises UnsupportedError for a tokenizer that attn does not read itself, ArgumentError for another thing than lists of words, and the other errors of
tokenize().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.tokenize_words([["A", "warm", "film."]]).words
[[None, 0, 1, 2, 2, None]])");
  for (const char* name : {"forward", "__call__"})
    model.def(name, &forward, nb::arg("input_ids") = nb::none(), nb::arg("attention_mask") = nb::none(), nb::arg("token_type_ids") = nb::none(),
              nb::kw_only(), nb::arg("output_attentions") = false, nb::arg("output_hidden_states") = false, nb::arg("mask") = nb::none(),
              nb::arg("is_causal") = false, nb::arg("head_mask") = nb::none(), nb::arg("patch") = nb::none(), nb::arg("trace") = false,
              nb::arg("trace_layers") = nb::none(), nb::arg("output_logits") = true, nb::arg("cache") = nb::none(),
              nb::arg("inputs_embeds") = nb::none(),
              R"(Computes the model on token ids; calling the model does the same.

input_ids: an Encoding, or ids (B,L). A transformers encoding works with model(**encoding), if it has return_tensors='np'.
attention_mask: (B,L), 1 for tokens and 0 for padding; default 1.
token_type_ids: (B,L), default 0.
output_attentions: return the attention weights of every layer.
output_hidden_states: return the input of every layer, and the output.
mask: a Mask in addition to the padding, for every layer.
is_causal: no token attends to a later one.
head_mask: (layers,H), a factor for each head's result before W_O.
patch: a LayerPatch, or a list of them: of different layers, or of different values of one layer. All are replaced in the same forward.
trace: True or names of intermediate results. trace_layers: the traced layers, counted from 0, or from the end if negative; default all.
output_logits: False for no logits, 'last' for those of each text's last token, (B,1,V).
cache: a KeyValueCache of earlier tokens, to which the given ones are added.
inputs_embeds: (B,L,W), instead of input_ids: used in place of rows of the word embeddings. Positions, types and norms are added as for ids.

Returns a TextModelOutput: last_hidden_state (B,L,E), and with a head logits (B,C), or (B,L,C) for heads of tokens.

Raises ShapeError if the shapes of ids, attention_mask, types, head_mask and patches disagree, MaskError if mask does not fit or has NaN or +infinity,
OutOfRangeError for an id, position or layer that does not exist, DtypeError for ids that are not whole numbers, OutOfMemoryError if the results do
not fit into memory.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> output = model(model.tokenize("A warm film."), output_attentions=True)
>>> output.logits.shape, output.attentions[1].shape
((1, 2), (1, 4, 6, 6)))");
  model.def("embed", &embed, nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("pooling") = nb::none(), nb::arg("normalize") = nb::none(), nb::arg("batch_size") = 32, nb::arg("prompt") = nb::none(),
            nb::arg("prompt_name") = nb::none(), nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(),
            nb::arg("truncated") = nb::none(), nb::arg("on_progress") = nb::none(),
            R"(Computes one vector per text, like SentenceTransformer.encode (Reimers & Gurevych 2019).

Hidden states are pooled over the tokens, go through the checkpoint's Dense modules if it has any, and are normalized if the checkpoint
specifies it. Texts are sorted by length into batches; the batch size does not change any bit.

texts: a text or a list of texts.
max_length, truncation, add_special_tokens, truncation_side: as in tokenize().
pooling: 'mean', 'cls', 'max', 'lasttoken', 'weightedmean' or 'mean_sqrt_len'; default the checkpoint's, else 'mean'.
normalize: scale vectors to length 1; default as in the checkpoint.
batch_size: texts per batch.
prompt: a text before each text. prompt_name: a prompt of config_sentence_transformers.json; default the file's default prompt; '' is none.
truncated: a list that receives for each text whether it was truncated.
on_progress: function of (done, total), called after each batch; if it raises, the call ends.

Returns (N,E), also (1,E) for one text; encode() returns a vector (E,) for it. Raises ConfigError if there is no such pooling or prompt_name, or
batch_size is below 1; ArgumentError if texts are not texts, and the errors of tokenize() and forward().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.embed(["A warm film.", "Far too long."]).shape
(2, 64)
>>> model.embed("A warm film.", prompt="film: ", pooling="cls", normalize=True).shape
(1, 64))");
  model.def("classify", &classify, nb::arg("texts"), nb::kw_only(), nb::arg("top_k") = nb::none(), nb::arg("max_length") = nb::none(),
            nb::arg("truncation") = true, nb::arg("batch_size") = 32, nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(),
            nb::arg("truncated") = nb::none(), nb::arg("on_progress") = nb::none(),
            R"(Scores the labels of each text or pair of texts, like transformers' TextClassificationPipeline.

Scores are the softmax of the logits; the sigmoid of each if the checkpoint is for several labels at once or has one label; the logits
for a regression. If a cross-encoder's files specify another activation, pairs use it like sentence-transformers' CrossEncoder.predict
(Identity gives logits), and single texts use it if there is one label.

texts: a text, a list of texts, or a list of pairs.
top_k: number of labels per text; default all.
max_length, truncation, add_special_tokens, truncation_side: as in tokenize().
batch_size, truncated, on_progress: as in embed().

Returns a list of LabelScore per text, by descending score; one text also gives a list of one. Raises UnsupportedError if the model
has no such head, ConfigError for top_k below 1, and the errors of embed().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.classify("A warm film.")[0][0].label
'positive'
>>> [answer[0].label for answer in model.classify(["A warm film.", "Far too long."], top_k=1)]
['positive', 'negative'])");
  model.def("classify_tokens", &classify_tokens, nb::arg("texts"), nb::kw_only(), nb::arg("aggregation") = "simple", nb::arg("stride") = nb::none(),
            nb::arg("ignore_labels") = std::vector<std::string>{"O"}, nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("batch_size") = 32, nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(),
            nb::arg("truncated") = nb::none(), nb::arg("on_progress") = nb::none(),
            R"(Finds named entities (NER) or labels tokens, like transformers' TokenClassificationPipeline.

texts: a text or a list of texts.
aggregation: 'none': each token; 'simple': joins neighbours with the same label, unless the label of the second one begins with B-;
'first', 'average', 'max': in addition each word has one label, that of its first token, of the mean of its tokens' probabilities, or of its
most certain token.
stride: read an overlong text in windows that share this many tokens. If entities overlap, the longest counts, then the most certain one.
Without it a long text is truncated.
ignore_labels: labels to leave out.
max_length, truncation, add_special_tokens, truncation_side: as in tokenize().
batch_size, truncated, on_progress: as in embed().

Returns a list of Entity per text. Raises UnsupportedError for another head or a tokenizer that attn does not read itself, ConfigError for
a stride that leaves no room, or with 'none', and the errors of embed().

>>> ner = attn.TextModel.load("testdata/models/entities")
>>> [(each.label, each.text) for each in ner.classify_tokens("Marie Curie lived in Paris.", aggregation="first")[0]]
[('PER', 'Marie Curie'), ('LOC', 'Paris')])");
  const auto define_fill_mask = [&](auto function, const char* text) {
    model.def("fill_mask", function, nb::arg("text"), nb::kw_only(), nb::arg("top_k") = 5, nb::arg("targets") = nb::none(),
              nb::arg("batch_size") = 32, nb::arg("on_progress") = nb::none(), text);
  };
  define_fill_mask(&fill_mask, R"(Predicts tokens for each mask (mask_token) of a text, like transformers' FillMaskPipeline.

text: a text with at least one mask, or a list of such texts.
top_k: number of predictions per mask.
targets: score only these tokens; a target that is not a token counts as its first token.
batch_size, on_progress: as in embed().

Returns a list of FilledMask per mask; for a list of texts one such list per text. Raises ArgumentError for a text without a mask or a target
that no token begins, OutOfRangeError for an overlong text, UnsupportedError as classify_tokens().

>>> mlm = attn.TextModel.load("testdata/models/masks")
>>> [each.token for each in mlm.fill_mask("She drank a cup of [MASK].", top_k=2)[0]]
['tea', 'coffee'])");
  define_fill_mask(&fill_masks, "Predicts tokens for each mask of several texts.");
  const auto define_answer = [&](auto function, const char* text) {
    model.def("answer", function, nb::arg("question"), nb::arg("context"), nb::kw_only(), nb::arg("top_k") = 1, nb::arg("max_answer_length") = 15,
              nb::arg("stride") = nb::none(), nb::arg("allow_empty") = false, nb::arg("max_length") = nb::none(), nb::arg("batch_size") = 32,
              nb::arg("on_progress") = nb::none(), text);
  };
  using Number = std::optional<std::int64_t>;
  define_answer(&answer<std::int64_t, std::int64_t, Number, bool, Number, std::int64_t, Done>,
                R"(Finds parts of a context that answer a question, the most likely first, like transformers' QuestionAnsweringPipeline (version 4).

question, context: texts, or lists of texts of the same length; a single question or context is used for each element of the other's list.
top_k: number of answers; there may be fewer.
max_answer_length: in tokens; answers consist of whole words.
stride: a long context is read in windows that share this many tokens; default 128, for shorter windows half.
allow_empty: the model may answer with an empty text, that there is no answer.
max_length: tokens of a window, question included; default 384, or the model's maximum if that is smaller.
batch_size, on_progress: as in embed(), for windows.

Returns a list of Answer; for lists one such list per question. Raises ArgumentError for an empty question or context, OutOfRangeError for a
question that leaves no room, ConfigError for a stride that leaves none, UnsupportedError as classify_tokens().

>>> qa = attn.TextModel.load("testdata/models/tiny-bert-qa")  # random weights
>>> qa.answer("Who smiles?", "A happy person smiles at the child.")[0].text
'smiles')");
  define_answer(&answers<TextList, OneOrMoreTexts, std::int64_t, std::int64_t, Number, bool, Number, std::int64_t, Done>,
                "Answers several questions, each from its context or all from one.");
  define_answer(&answers<OneText, TextList, std::int64_t, std::int64_t, Number, bool, Number, std::int64_t, Done>,
                "Answers one question from each of several contexts.");
  model.def("rank", &rank, nb::arg("query"), nb::arg("documents"), nb::kw_only(), nb::arg("top_k") = nb::none(), nb::arg("max_length") = nb::none(),
            nb::arg("truncation") = true, nb::arg("batch_size") = 32, nb::arg("prompt") = nb::none(), nb::arg("prompt_name") = nb::none(),
            nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(), nb::arg("truncated") = nb::none(),
            nb::arg("on_progress") = nb::none(),
            R"(Sorts documents by relevance to a query with a cross-encoder, like sentence-transformers' CrossEncoder.rank.

The model has a head with one label. Scores use the activation of its files, else a sigmoid.

query: a text.
documents: a list of texts.
top_k: number of results, default all.
max_length, truncation, add_special_tokens, truncation_side: as in tokenize().
batch_size, truncated, on_progress: as in embed().
prompt, prompt_name: a text before the query, as in embed().

Returns a list of RankedDocument. Raises UnsupportedError for another head, and the errors of embed().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> pairs = [(("a cheerful film", "funny"), 1), (("a cheerful film", "sad"), 0)] * 8
>>> _ = model.fine_tune(pairs, labels=["relevant"], epochs=8, learning_rate=1e-3)
>>> model.rank("a cheerful film", ["sad", "funny"], top_k=1)[0].index
1)");
  model.def("decode", &decode, nb::arg("ids"), nb::arg("skip_special_tokens") = false,
            R"(Converts token ids to text, like transformers' decode. Unknown ids are left out.

ids: token ids.
skip_special_tokens: leave out [CLS] and so on.

Returns the text. Raises UnsupportedError for a decoder or tokenizer that attn does not read itself, ShapeError unless ids have rank 1, DtypeError
unless they are whole numbers.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.decode(model.tokenize("A warm film.").input_ids[0], skip_special_tokens=True)
'a warm film.')");
  define_text_generation(model);
  define_sentence_model(model);
  define_word_embeddings(model);
  model.def("gradients", &gradients, nb::arg("input_ids"), nb::arg("attention_mask") = nb::none(), nb::arg("token_type_ids") = nb::none(),
            nb::kw_only(), nb::arg("label") = nb::none(), nb::arg("component") = nb::none(), nb::arg("row") = 0, nb::arg("token") = nb::none(),
            nb::arg("embeddings") = false, nb::arg("attentions") = false, nb::arg("parameters") = false,
            R"(Computes the gradient of one number with respect to embeddings, attention weights or parameters, without dropout (torch.autograd.grad).

The gradient is that of a logit before softmax, or of one component of the pooled vector.

input_ids, attention_mask, token_type_ids: as in forward().
label: index or name of the logit; for fill-mask a token, for question answering 'start' or 'end'.
component: index of the component of the pooled vector, instead of label.
row: index of the sequence.
token: index of the token, if the head has logits for each token.
embeddings, attentions, parameters: the requested gradients.

Returns a Gradients. Raises UnsupportedError for int8 weights or a label without a head, ArgumentError if not exactly one of label and
component or no gradient is requested, OutOfRangeError if the label, component, row or token does not exist, and the errors of forward().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.gradients(model.tokenize("not bad"), label="negative", attentions=True).attentions[0].shape
(1, 4, 4, 4))");
  const auto define_attribute = [&](auto function, const char* text) {
    model.def("attribute", function, nb::arg("text"), nb::kw_only(), nb::arg("method") = "integrated_gradients", nb::arg("target") = nb::none(),
              nb::arg("contrast") = nb::none(), nb::arg("position") = nb::none(), nb::arg("steps") = 50, text);
  };
  define_attribute(
      &attribute,
      R"(Scores each token of a text by its contribution to the answer f. This is a logit, before softmax: that of a label, or for a model for
text-generation that of the next token.

text: a text, or a list of texts, which have the same target.
method: 'integrated_gradients', Σ (x - b) · ∫ ∂f/∂x along the path from [PAD] to x (Sundararajan et al. 2017); 'gradient_x_input', Σ x · ∂f/∂x;
'attention_rollout' (Abnar & Zuidema 2020); 'attention_gradient' (Chefer et al. 2021); 'leave_one_out', f of the text minus f without the token.
target: a label by index or name, a token by id or text; without a head, and for fill-mask, token-classification and question-answering
without a position, the index of a component of the pooled vector. Default: the largest logit.
contrast: a label or token whose logit is subtracted.
position: the place of a token, if the model has logits for each token: f is one of its logits. Default for text-generation: the last.
steps: number of integration steps, 1 to 10000.

Returns an Attribution with a score (L) for each token, for a list one for each text. Raises UnsupportedError for gradients of int8 weights,
ArgumentError for a text that is too short for its method or a target that is missing, OutOfRangeError if there is no such label, token or
position, ConfigError for another method or number of steps, OutOfMemoryError if the results do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.attribute("not bad", method="leave_one_out").tokens
['[CLS]', 'not', 'bad', '[SEP]']

Which words lead to a next token, here of a model with untrained weights:

>>> gpt2 = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> gpt2.attribute("The old man", method="leave_one_out", target="a", contrast="e").scores.shape
(6,))");
  define_attribute(&attributions, "Scores the tokens of several texts.");
  model.def(
      "fine_tune", &fine_tune, nb::arg("examples"), nb::kw_only(), nb::arg("epochs") = 3, nb::arg("batch_size") = 16,
      nb::arg("learning_rate") = nb::none(), nb::arg("weight_decay") = 0.01, nb::arg("layers") = nb::none(),
      nb::arg("labels") = std::vector<std::string>(), nb::arg("seed") = 0, nb::arg("validation") = 0.0, nb::arg("on_progress") = nb::none(),
      R"(Trains the model on labelled texts, like transformers' Trainer: AdamW, gradients clipped to norm 1, a learning rate that falls linearly to 0.

examples: (text, label) or ((text, text_pair), label) each; a label is a number, or one of the names in labels. For a language model a text or
(prompt, text) each: it learns the next token at each position, but not the prompt's tokens (transformers' …ForCausalLM).
epochs: passes over the examples. batch_size: examples per step.
learning_rate: default 5e-5, for the head alone 1e-3. weight_decay: that of AdamW, not for biases and norms.
layers: train this many of the last layers and the head; 0 trains the head alone; default everything.
labels: the head's labels; if they differ from the model's, a new head gets random weights.
seed: determines the order, dropout and a new head, and so the result.
validation: share of the examples that is held out, below 1.
on_progress: function of a FineTuneProgress, called after each step; False ends the run, as Ctrl-C does. The weights are then those after the
last complete step.

Returns a FineTuneResult. Raises UnsupportedError for int8 weights, without a tokenizer, and for heads with several outputs per text;
ArgumentError for no examples, an example of another form, or a text without a token to predict; OutOfRangeError if a label or that many layers do
not exist, or if a loss or gradient is not finite; ConfigError for an option outside its range; OutOfMemoryError if a step does not fit into memory;
BusyError if on_progress calls the model.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> _ = model.fine_tune([("rice", "food"), ("rain", "weather")] * 8, labels=["food", "weather"], epochs=8, learning_rate=1e-3)
>>> model.classify("rain", top_k=1)[0][0].label
'weather'
>>> gpt2 = attn.TextModel.load("testdata/models/tiny-gpt2")
>>> result = gpt2.fine_tune(["Once upon a time", ("Two and two is", " four<|endoftext|>")], epochs=2)
>>> result.loss > 0
True)");
  define_save_pretrained(model,
                         R"(Writes the model as a folder that transformers reads, all files or none.

path: the folder.
weights: 'float32', 'float16' or 'int8'; default the model's.

Files of these names are replaced.

Raises OutOfRangeError for a number that float16 cannot represent, FormatError for NaN or infinity with int8, ConfigError for other weights,
UnwritableError if the folder cannot be written.

>>> import tempfile
>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> with tempfile.TemporaryDirectory() as folder:
...     model.save_pretrained(folder, weights="int8")
...     attn.TextModel.load(folder).weights
'int8')");
  define_state(model);
  define_facts(model);
  model
      .def(
          "token_to_id",
          [](const Model& self, const std::string& token) {
            return self.read("token_to_id", [&](const TextModel& of) { return of.token_to_id(token); });
          },
          nb::arg("token"), R"(Returns the id of a token, or None if it is not in the vocabulary.

token: as in the vocabulary, for example '##ing' or 'Ġgood'.

>>> attn.TextModel.load("testdata/models/sentiment").token_to_id("film")
222)")
      .def(
          "id_to_token",
          [](const Model& self, std::int64_t id) { return self.read("id_to_token", [&](const TextModel& of) { return of.id_to_token(id); }); },
          nb::arg("id"), R"(Returns the token of an id, or None if it is not in the vocabulary.

id: a whole number.

>>> attn.TextModel.load("testdata/models/sentiment").id_to_token(222)
'film')")
      .def_prop_ro(
          "mask_token", [](const Model& self) { return self.read("mask_token", [](const TextModel& of) { return of.mask_token(); }); },
          "The token that fill_mask() predicts a word for, for example '[MASK]' or '<mask>'; None if the tokenizer has none.")
      .def_prop_ro(
          "max_length", [](const Model& self) { return self.read("max_length", [](const TextModel& of) { return of.max_length(); }); },
          "Maximum number of tokens of a text, unless a call sets another.");
}

}  // namespace attn::python
