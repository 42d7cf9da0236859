#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attn/models/text_model.hpp"

/// Analyses of what a language model computes, as functions over a TextModel.
///
/// Decoders of the types gpt2, llama, mistral, qwen2 and qwen3 are supported; other models are an UNSUPPORTED error unless the function's
/// documentation names them.
namespace attn::lens {

/// A text, or the ids of its tokens.
using Text = std::variant<std::string, std::vector<std::int64_t>>;
/// A token: its id, its spelling in the vocabulary, or a text that is a single token, such as " Paris".
using Token = std::variant<std::int64_t, std::string>;
/// Numbers by layer, and then by head or position.
using LayerTable = std::vector<std::vector<float>>;

/// Options for logit_lens().
struct LogitLensOptions {
  /// Layers whose inputs become predictions, from 0; the number of layers means the model's output. Default all.
  std::optional<std::vector<std::int64_t>> layers = std::nullopt;
  std::optional<std::vector<std::int64_t>> positions = std::nullopt;  ///< positions in the text; default all
  std::int64_t top_k = 5;                                             ///< number of tokens per prediction, at least 1
};

/// A token that a layer predicts.
struct LogitLensPrediction {
  std::int64_t id = 0;
  std::string token;  ///< as in the vocabulary
  float logit = 0;
  float probability = 0;  ///< softmax of the logits over the vocabulary
};

/// Result of logit_lens().
struct LogitLens {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> layers, positions;
  /// By layer and position: the likeliest tokens, the likeliest first.
  std::vector<std::vector<std::vector<LogitLensPrediction>>> predictions;
};

/// Returns what each layer would predict: its input, after the model's final norm, times the unembedding (nostalgebraist 2020, "interpreting GPT:
/// the logit lens"). The last entry is the prediction of the model. Also takes models for fill-mask whose norms come after their blocks, such as
/// BERT.
///
/// @param model    a decoder, or a model for fill-mask
/// @param text     a text or its token ids
/// @param options  layers, positions, top_k
/// @return by layer and position the top_k tokens with logits and probabilities
/// @throws UNSUPPORTED for another kind of model
/// @throws OUT_OF_RANGE if a layer or position does not exist, or the text is too long
/// @throws CONFIG if top_k is below 1
/// @throws ARGUMENT if the text has no token
/// @throws MEMORY if the call would exceed the memory limit
///
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
/// auto result = attn::lens::logit_lens(model, "The old man", {.layers = {{2}}, .top_k = 3});
/// std::cout << (result.predictions[0].back()[0].id == model.next_token("The old man")[0].id);  // 1
/// @endcode
LogitLens logit_lens(const TextModel& model, const Text& text, const LogitLensOptions& options = {});

/// Options for logit_attribution().
struct LogitAttributionOptions {
  Token target;                                         ///< the token whose logit is taken apart
  std::optional<Token> contrast = std::nullopt;         ///< a token whose logit is subtracted; default none
  std::optional<std::int64_t> position = std::nullopt;  ///< position of the prediction; default the last token
};

/// Result of logit_attribution(): numbers that add up to `value`.
struct LogitAttribution {
  std::vector<std::string> tokens;
  std::int64_t position = 0;
  double value = 0;         ///< the logit, minus that of `contrast`
  double embedding = 0;     ///< contribution of the embeddings (word and position)
  LayerTable heads;         ///< (layers,H): contribution of each head
  std::vector<float> mlps;  ///< (layers): contribution of each MLP, without its output bias
  double biases = 0;        ///< contribution of the output biases of attentions and MLPs, and of the final norm's bias
};

/// Splits a logit, or the difference of two, exactly into the contributions of the embedding, of each head, of each MLP and of the biases (direct
/// logit attribution; Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"). The residual stream is the sum r = Σ p of these
/// parts, and the final norm is held fixed, so that a part adds p · v with v = (γ ∘ w - mean) / √(var(r) + ε), or for RMSNorm
/// γ ∘ w / √(mean(r²) + ε); w is the target's row of the unembedding. The parts add up to the logit within 1e-4 of its size.
///
/// @param model    a decoder with float32 weights
/// @param text     a text or its token ids
/// @param options  target, contrast, position
/// @return the contributions, and the value that they add up to
/// @throws UNSUPPORTED for another kind of model, or for int8 weights
/// @throws OUT_OF_RANGE if a token or the position does not exist, or the text is too long
/// @throws ARGUMENT if the text has no token
/// @throws MEMORY if the call would exceed the memory limit
///
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
/// auto parts = attn::lens::logit_attribution(model, "The old man", {.target = "a", .contrast = "e"});
/// double sum = parts.embedding + parts.biases;
/// for (const auto& layer : parts.heads) sum = std::accumulate(layer.begin(), layer.end(), sum);
/// sum = std::accumulate(parts.mlps.begin(), parts.mlps.end(), sum);
/// std::cout << (std::abs(sum - parts.value) < 1e-4 * std::abs(parts.value));  // 1
/// @endcode
LogitAttribution logit_attribution(const TextModel& model, const Text& text, const LogitAttributionOptions& options);

/// The activation that a patch replaces by its value in the clean text, for a layer and a position, or for a layer and a head at all positions.
enum class PatchSite : std::uint8_t {
  residual,   ///< the layer's input
  head,       ///< the result of one head
  attention,  ///< the attention's output
  mlp,        ///< the MLP's output
};
inline constexpr std::array<std::string_view, 4> kPatchSiteNames{"residual", "head", "attention", "mlp"};

/// Options for patch_activations() and attribution_patching().
struct PatchOptions {
  Token answer;  ///< the token that the clean text suggests
  /// A token whose logit is subtracted, such as the one that the corrupted text suggests. Default none.
  std::optional<Token> contrast = std::nullopt;
  PatchSite site = PatchSite::residual;
  std::optional<std::int64_t> position = std::nullopt;                ///< position of the answer's logit; default the last token
  std::optional<std::vector<std::int64_t>> positions = std::nullopt;  ///< positions to patch, not for heads; default all
  /// Called by patch_activations() after each forward with the number of finished patches and of all. An exception from it ends the call.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
};

/// Result of patch_activations() and attribution_patching().
struct PatchResult {
  std::vector<std::string> clean_tokens, corrupted_tokens;
  std::vector<std::int64_t> positions;  ///< columns of `recovered`; empty for heads
  double clean = 0, corrupted = 0;      ///< the logit (difference) of each text
  /// (layers,positions), or (layers,H) for heads: (value - corrupted) / (clean - corrupted). 0: as in the corrupted text, 1: as in the clean text.
  LayerTable recovered;
};

/// Runs the corrupted text many times, each time with one activation of the clean text in its place, and returns how much of the clean answer each of
/// them brings back: (value - corrupted) / (clean - corrupted) (Meng et al. 2022, section 2; Wang et al. 2022, section 3).
///
/// @param model      a decoder
/// @param clean      a text or its token ids
/// @param corrupted  another text with the same number of tokens
/// @param options    answer, contrast, site, position, positions
/// @return recovered (layers,positions), or (layers,H) for heads: 0 as in the corrupted text, 1 as in the clean text
/// @throws ARGUMENT if the texts differ in length, or if the answer has the same logit in both
/// @throws UNSUPPORTED for another kind of model
/// @throws OUT_OF_RANGE if a token or a position does not exist, or a text is too long
/// @throws MEMORY if the call would exceed the memory limit
///
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
/// const std::vector<std::int64_t> clean{20, 21, 22}, corrupted{20, 40, 22};
/// auto result = attn::lens::patch_activations(model, clean, corrupted, {.answer = 30});
/// std::cout << result.recovered[0][0] << ' ' << result.recovered[0][1];  // 0 1
/// @endcode
PatchResult patch_activations(const TextModel& model, const Text& clean, const Text& corrupted, const PatchOptions& options);

/// Estimates the result of patch_activations() by one backward for all activations: the change of the activation times the gradient at the corrupted
/// text, (a_clean - a_corrupted) · ∂value/∂a / (clean - corrupted) (Nanda 2023, "Attribution Patching"; Syed et al. 2023). It is exact for small
/// changes, and poor for the residual of early layers.
///
/// @param model      a decoder with float32 weights
/// @param clean      a text or its token ids
/// @param corrupted  another text with the same number of tokens
/// @param options    as for patch_activations()
/// @return as patch_activations()
/// @throws UNSUPPORTED for int8 weights, which have no gradients
/// @throws ARGUMENT, UNSUPPORTED, OUT_OF_RANGE, MEMORY as patch_activations()
///
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
/// const std::vector<std::int64_t> clean{20, 21, 22}, corrupted{20, 40, 22};
/// auto result = attn::lens::attribution_patching(model, clean, corrupted, {.answer = 30, .site = attn::lens::PatchSite::head});
/// std::cout << result.recovered.size() << ' ' << result.recovered[0].size();  // 2 4
/// @endcode
PatchResult attribution_patching(const TextModel& model, const Text& clean, const Text& corrupted, const PatchOptions& options);

/// Kinds of heads, by the key that gets their attention.
enum class HeadKind : std::uint8_t {
  previous_token,   ///< the token before
  duplicate_token,  ///< earlier occurrences of the same token
  induction,        ///< the token after an earlier occurrence
  first_token,      ///< the first token
};
inline constexpr std::array<std::string_view, 4> kHeadKindNames{"previous_token", "duplicate_token", "induction", "first_token"};

/// Returns the name of a kind of head, as in other languages.
/// @code
/// std::cout << name_of(attn::lens::HeadKind::induction);  // induction
/// @endcode
constexpr std::string_view name_of(HeadKind kind) { return kHeadKindNames[static_cast<std::size_t>(kind)]; }

/// Options for head_scores().
struct HeadScoresOptions {
  std::vector<HeadKind> kinds{HeadKind::previous_token, HeadKind::duplicate_token, HeadKind::induction, HeadKind::first_token};
  /// A text or its token ids. Default up to 50 random tokens, twice, after the tokenizer's special tokens.
  std::optional<Text> text = std::nullopt;
  std::uint32_t seed = 0;  ///< of the random tokens
};

/// Result of head_scores().
struct HeadScores {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> ids;
  std::map<HeadKind, LayerTable> scores;  ///< by kind: (layers,H), from 0 to 1
};

/// Scores each head by the mean attention that it gives to the keys of a kind, over all positions that have such keys (Olsson et al. 2022,
/// "In-context Learning and Induction Heads"). Takes every kind of model.
///
/// @param model    any text model
/// @param options  kinds, text, seed
/// @return by kind (layers,H), from 0 to 1, with the tokens and ids of the text
/// @throws ARGUMENT if the text has no token, or no position with keys of a kind
/// @throws OUT_OF_RANGE if the text is too long
/// @throws UNSUPPORTED without a text if the model has too few positions for random tokens
/// @throws MEMORY if the call would exceed the memory limit
///
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
/// auto result = attn::lens::head_scores(model, {.kinds = {attn::lens::HeadKind::induction}});
/// std::cout << result.scores.at(attn::lens::HeadKind::induction).size();  // 2
/// @endcode
HeadScores head_scores(const TextModel& model, const HeadScoresOptions& options = {});

}  // namespace attn::lens
