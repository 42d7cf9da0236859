#include "lens.hpp"

#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "options.hpp"
#include "running.hpp"

namespace attn::python {
namespace {

using Model = Shared<TextModel>;
using TextOrIds = Typed<"str | numpy.typing.ArrayLike">;
using MaybeText = Typed<"str | numpy.typing.ArrayLike">;
using HeadKinds = Typed<"collections.abc.Iterable[typing.Literal['previous_token', 'duplicate_token', 'induction', 'first_token']]">;
using Indices = std::optional<std::vector<std::int64_t>>;

lens::Text text_of(nb::handle given, const char* op, const char* argument) {
  if (PyUnicode_Check(given.ptr())) return nb::cast<std::string>(given);
  const Array<std::int32_t> ids = ids_of(given, op, argument);
  if (ids.shape().size() != 1) detail::fail(ErrorCode::shape, op, argument, {"a text or a list of token ids"}, {to_shape(ids.shape())});
  return std::vector<std::int64_t>(ids.begin(), ids.end());
}

Array<float> array_of(const std::vector<float>& numbers) {
  Array<float> array({std::ssize(numbers)});
  std::copy(numbers.begin(), numbers.end(), array.data());
  return array;
}

Array<float> array_of(const lens::LayerTable& table) {
  Array<float> array({std::ssize(table), table.empty() ? 0 : std::ssize(table[0])});
  float* to = array.data();
  for (const std::vector<float>& row : table) to = std::copy(row.begin(), row.end(), to);
  return array;
}

Typed<"attn.LogitLens"> logit_lens(const Model& model, const TextOrIds& text, const Indices& layers, const Indices& positions, std::int64_t top_k) {
  constexpr const char* kOp = "logit_lens";
  const lens::Text given = text_of(text, kOp, "text");
  const lens::LogitLens result =
      model.read(kOp, [&](const TextModel& of) { return lens::logit_lens(of, given, {.layers = layers, .positions = positions, .top_k = top_k}); });
  nb::list predictions;
  for (const auto& layer : result.predictions) {
    nb::list of_layer;
    for (const auto& position : layer) {
      nb::list of_position;
      for (const lens::LogitLensPrediction& each : position)
        of_position.append(make_result("LogitLensPrediction", each.id, each.token, each.logit, each.probability));
      of_layer.append(of_position);
    }
    predictions.append(of_layer);
  }
  return make_result("LogitLens", to_python(result.tokens), to_python(result.layers), to_python(result.positions), predictions);
}

Typed<"attn.LogitAttribution"> logit_attribution(const Model& model, const TextOrIds& text, const lens::Token& target,
                                                 const std::optional<lens::Token>& contrast, std::optional<std::int64_t> position) {
  constexpr const char* kOp = "logit_attribution";
  const lens::Text given = text_of(text, kOp, "text");
  const lens::LogitAttribution parts = model.read(
      kOp, [&](const TextModel& of) { return lens::logit_attribution(of, given, {.target = target, .contrast = contrast, .position = position}); });
  return make_result("LogitAttribution", to_python(parts.tokens), parts.position, parts.value, parts.embedding, to_python(array_of(parts.heads)),
                     to_python(array_of(parts.mlps)), parts.biases);
}

using Patch = lens::PatchResult (*)(const TextModel&, const lens::Text&, const lens::Text&, const lens::PatchOptions&);

template <Patch kPatch>
Typed<"attn.PatchResult"> patch(const char* op, const Model& model, const TextOrIds& clean, const TextOrIds& corrupted, const lens::Token& answer,
                                const std::optional<lens::Token>& contrast, const Word<lens::kPatchSiteNames>& site,
                                std::optional<std::int64_t> position, const Indices& positions) {
  const lens::Text of_clean = text_of(clean, op, "clean"), of_corrupted = text_of(corrupted, op, "corrupted");
  const lens::PatchOptions options{.answer = answer,
                                   .contrast = contrast,
                                   .site = word_of<lens::PatchSite>(site, op, "site"),
                                   .position = position,
                                   .positions = positions,
                                   .on_progress = [signals = Signals()](std::int64_t, std::int64_t) mutable { signals.check(); }};
  const lens::PatchResult result = model.read(op, [&](const TextModel& of) { return kPatch(of, of_clean, of_corrupted, options); });
  return make_result("PatchResult", to_python(result.clean_tokens), to_python(result.corrupted_tokens),
                     options.site == lens::PatchSite::head ? nb::none() : nb::object(to_python(result.positions)), result.clean, result.corrupted,
                     to_python(array_of(result.recovered)));
}

Typed<"attn.PatchResult"> patch_activations(const Model& model, const TextOrIds& clean, const TextOrIds& corrupted, const lens::Token& answer,
                                            const std::optional<lens::Token>& contrast, const Word<lens::kPatchSiteNames>& site,
                                            std::optional<std::int64_t> position, const Indices& positions) {
  return patch<&lens::patch_activations>("patch_activations", model, clean, corrupted, answer, contrast, site, position, positions);
}

Typed<"attn.PatchResult"> attribution_patching(const Model& model, const TextOrIds& clean, const TextOrIds& corrupted, const lens::Token& answer,
                                               const std::optional<lens::Token>& contrast, const Word<lens::kPatchSiteNames>& site,
                                               std::optional<std::int64_t> position, const Indices& positions) {
  return patch<&lens::attribution_patching>("attribution_patching", model, clean, corrupted, answer, contrast, site, position, positions);
}

Typed<"attn.HeadScores"> head_scores(const Model& model, const HeadKinds& kinds, const MaybeText& text, std::uint32_t seed) {
  constexpr const char* kOp = "head_scores";
  lens::HeadScoresOptions options{.seed = seed};
  if (!kinds.is_none()) options.kinds.clear();
  if (!kinds.is_none())
    for (const nb::handle kind : kinds) {
      if (!PyUnicode_Check(kind.ptr())) detail::fail(ErrorCode::argument, kOp, "kinds", {"names of kinds"}, {"a list with ", name_of_type(kind)});
      options.kinds.push_back(static_cast<lens::HeadKind>(place_of(nb::cast<std::string>(kind), lens::kHeadKindNames, kOp, "kinds")));
    }
  if (!text.is_none()) options.text = text_of(text, kOp, "text");
  const lens::HeadScores result = model.read(kOp, [&](const TextModel& of) { return lens::head_scores(of, options); });
  nb::dict scores;
  for (const lens::HeadKind kind : options.kinds) scores[to_python(std::string(lens::name_of(kind)))] = to_python(array_of(result.scores.at(kind)));
  return make_result("HeadScores", to_python(result.tokens), to_python(result.ids), scores);
}

}  // namespace

void define_lens(nb::module_& module) {
  module.def("logit_lens", &logit_lens, nb::arg("model"), nb::arg("text"), nb::kw_only(), nb::arg("layers") = nb::none(),
             nb::arg("positions") = nb::none(), nb::arg("top_k") = 5,
             R"(Returns the tokens that a language model would predict if it ended before a layer. The layer's input passes the final norm and the unembedding.

The last entry is the prediction of the model (nostalgebraist 2020, "interpreting GPT: the logit lens").

model: a decoder (gpt2, llama, mistral, qwen2, qwen3), or a model for fill-mask whose norms come after its blocks, such as BERT.
text: a text, or a one-dimensional array of token ids.
layers: layers whose inputs become predictions, from 0; the number of layers means the model's output. Negative numbers are not allowed. Default all.
positions: positions in the text; default all.
top_k: number of tokens per prediction.

Returns a LogitLens. Raises UnsupportedError for another kind of model, OutOfRangeError if a layer or position does not exist or the text is
too long, ArgumentError for a text without tokens, ConfigError if top_k is below 1, OutOfMemoryError if the results do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> result = attn.lens.logit_lens(model, "The old man", layers=[1, 2], top_k=3)
>>> len(result.predictions), len(result.predictions[0]), len(result.predictions[0][0])
(2, 6, 3)
>>> result.predictions[-1][-1][0].id == model.next_token("The old man")[0].id
True)");
  module.def("logit_attribution", &logit_attribution, nb::arg("model"), nb::arg("text"), nb::arg("target"), nb::kw_only(),
             nb::arg("contrast") = nb::none(), nb::arg("position") = nb::none(),
             R"(Splits a logit, or the difference of two, exactly into the parts that embedding, heads, MLPs and biases contribute.

The residual stream is the sum r = Σ p of these parts, and the final norm is held fixed, so that a part adds p · v with
v = (γ ∘ w - mean) / √(var(r) + ε), or for RMSNorm γ ∘ w / √(mean(r²) + ε); w is the target's row of the unembedding (Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits"). The parts add up to the logit within 1e-4 of its size.

model: a decoder (gpt2, llama, mistral, qwen2, qwen3) with float32 weights.
text: a text, or a one-dimensional array of token ids.
target: the token whose logit is taken apart: its id, its spelling in the vocabulary, or a text that is a single token.
contrast: a token whose logit is subtracted; default none.
position: position of the prediction; default the last token.

Returns a LogitAttribution. Raises UnsupportedError for another kind of model or int8 weights, OutOfRangeError if a token or the position does
not exist or the text is too long, ArgumentError for a text without tokens, OutOfMemoryError if the results do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> parts = attn.lens.logit_attribution(model, "The old man", "a", contrast="e")
>>> total = parts.embedding + parts.heads.sum() + parts.mlps.sum() + parts.biases
>>> parts.heads.shape, bool(abs(total - parts.value) < 1e-4 * abs(parts.value))
((2, 4), True))");
  module.def("patch_activations", &patch_activations, nb::arg("model"), nb::arg("clean"), nb::arg("corrupted"), nb::kw_only(), nb::arg("answer"),
             nb::arg("contrast") = nb::none(), nb::arg("site") = "residual", nb::arg("position") = nb::none(), nb::arg("positions") = nb::none(),
             R"(Runs the corrupted text once per activation of the clean text, put in its place, and returns how much of the answer comes back.

recovered = (value - corrupted) / (clean - corrupted), where a value is the answer's logit minus that of the contrast (Meng et al. 2022, section
2; Wang et al. 2022, section 3).

model: a decoder (gpt2, llama, mistral, qwen2, qwen3).
clean: a text, or a one-dimensional array of token ids.
corrupted: another text with the same number of tokens.
answer: the token that the clean text suggests: its id, its spelling in the vocabulary, or a text that is a single token.
contrast: a token whose logit is subtracted, such as the one that the corrupted text suggests; default none.
site: 'residual' replaces the input of a layer at one position, 'attention' and 'mlp' the output of that part, 'head' the result of one head at
all positions.
position: position of the answer's logit; default the last token.
positions: positions to patch, not for heads; default all.

Returns a PatchResult. Raises ArgumentError if the texts differ in length, the answer has the same logit in both or positions are given for
heads, UnsupportedError for another kind of model, OutOfRangeError if a token or a position does not exist or a text is too long, ConfigError for
another site, OutOfMemoryError if the results do not fit into memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> attn.lens.patch_activations(model, [20, 21, 22], [20, 40, 22], answer=30).recovered[0, :2].tolist()
[0.0, 1.0])");
  module.def("attribution_patching", &attribution_patching, nb::arg("model"), nb::arg("clean"), nb::arg("corrupted"), nb::kw_only(),
             nb::arg("answer"), nb::arg("contrast") = nb::none(), nb::arg("site") = "residual", nb::arg("position") = nb::none(),
             nb::arg("positions") = nb::none(),
             R"(Estimates the result of patch_activations() by one backward: (a_clean - a_corrupted) · ∂value/∂a / (clean - corrupted).

It is exact for small changes, and poor for the residual of early layers (Nanda 2023; Syed et al. 2023).

Arguments and result are those of patch_activations(). Raises its errors, and UnsupportedError for int8 weights, which have no gradients.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> attn.lens.attribution_patching(model, [20, 21, 22], [20, 40, 22], answer=30, site="head").recovered.shape
(2, 4))");
  module.def("head_scores", &head_scores, nb::arg("model"), nb::kw_only(), nb::arg("kinds") = nb::none(), nb::arg("text") = nb::none(),
             nb::arg("seed") = 0,
             R"(Scores each head by the mean attention that it gives to the keys of a kind, over all positions that have such keys.

model: any text model.
kinds: 'previous_token', the token before; 'duplicate_token', earlier occurrences of the same token; 'induction', the token after an earlier
occurrence (Olsson et al. 2022, "In-context Learning and Induction Heads"); 'first_token', the first token. Default all.
text: a text, or a one-dimensional array of token ids. Default up to 50 random tokens, twice, after the tokenizer's special tokens.
seed: seed of the random tokens.

Returns a HeadScores. Raises ArgumentError if the text has no token or no position with keys of a kind, OutOfRangeError if it is too long,
ConfigError for another kind, UnsupportedError without a text if the model has too few positions, OutOfMemoryError if the results do not fit into
memory.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> attn.lens.head_scores(model, kinds=["induction"]).scores["induction"].shape
(2, 4))");
}

}  // namespace attn::python
