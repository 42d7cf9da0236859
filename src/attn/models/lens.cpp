#include "attn/models/lens.hpp"

#include <algorithm>
#include <utility>

#include "attn/models/lens_model.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::lens {
namespace {

using detail::fail;
using detail::LensModel;
using detail::LensRun;
using detail::row_of;

double dot(std::span<const float> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// A part p of the residual stream adds p · v to the logit.
struct Direction {
  std::vector<double> v;
  double of_shift = 0;  ///< from the final norm's bias
};

Direction direction_of(const LensModel& lens, std::span<const float> residual, std::int64_t target, std::optional<std::int64_t> contrast) {
  const auto width = static_cast<double>(lens.width());
  const bool is_rms = lens.config().norm == NormKind::rms_norm;
  const std::vector<float> row = lens.unembedding(target), other = contrast ? lens.unembedding(*contrast) : std::vector<float>(row.size());
  const std::vector<float> gain = lens.parameter("encoder.norm.weight"), shift = lens.parameter("encoder.norm.bias");
  const double divisor = detail::NormMoments(lens.config(), residual).divisor;
  double gained = 0;
  Direction direction{.v = std::vector<double>(row.size())};
  for (std::size_t e = 0; e < row.size(); ++e) {
    const double difference = static_cast<double>(row[e]) - static_cast<double>(other[e]);
    direction.v[e] = difference * static_cast<double>(gain[e]);
    gained += direction.v[e] / width;
    if (!shift.empty()) direction.of_shift += difference * static_cast<double>(shift[e]);
  }
  for (double& value : direction.v) value = (value - (is_rms ? 0 : gained)) / divisor;
  return direction;
}

/// Wᵀ v for a weight (out,in)
std::vector<double> pulled_back(std::span<const float> weight, std::span<const double> v) {
  std::vector<double> result(weight.size() / v.size());
  for (std::size_t o = 0; o < v.size(); ++o)
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += v[o] * static_cast<double>(weight[o * result.size() + i]);
  return result;
}

std::vector<std::size_t> keys_of(HeadKind kind, std::span<const std::int64_t> ids, std::size_t i) {
  if (i == 0) return {};
  if (kind == HeadKind::previous_token) return {i - 1};
  if (kind == HeadKind::first_token) return {0};
  std::vector<std::size_t> keys;
  const std::size_t shift = kind == HeadKind::induction ? 1 : 0;
  for (std::size_t j = 0; j + shift < i; ++j)
    if (ids[j] == ids[i]) keys.push_back(j + shift);
  return keys;
}

/// mulberry32, as head_scores() of the npm package.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed) {}
  double next() {
    state_ += 0x6d2b79f5U;
    std::uint32_t x = (state_ ^ (state_ >> 15)) * (state_ | 1U);
    x ^= x + (x ^ (x >> 7)) * (x | 61U);
    return static_cast<double>(x ^ (x >> 14)) * 0x1p-32;
  }

 private:
  std::uint32_t state_;
};

/// Special tokens, then random tokens twice.
std::vector<std::int64_t> repeated_tokens(const LensModel& lens, std::uint32_t seed) {
  std::vector<std::int64_t> ids = lens.special_ids();
  const detail::ModelConfig& config = lens.config();
  const std::int64_t positions = config.max_position_embeddings > 0 ? config.max_position_embeddings : config.max_length;
  // RoBERTa's positions start after its padding.
  const std::int64_t count = std::min<std::int64_t>(50, (positions - 4 - std::ssize(ids)) / 2);
  if (count < 2) fail(ErrorCode::unsupported, lens.op(), "text", {"a text"}, {"missing"}, "The model has too few positions for random tokens");
  Random random(seed);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int64_t>(random.next() * static_cast<double>(config.vocab_size)));
  for (int i = 0; i < 2; ++i) ids.insert(ids.end(), tokens.begin(), tokens.end());
  return ids;
}

LayerTable scores_of(const LensModel& lens, HeadKind kind, std::span<const std::int64_t> ids, const LensRun& run) {
  const std::size_t L = ids.size(), H = lens.heads();
  std::vector<std::vector<std::size_t>> keys(L);
  for (std::size_t i = 0; i < L; ++i) keys[i] = keys_of(kind, ids, i);
  const auto count = L - static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), [](const auto& list) { return list.empty(); }));
  const bool by_place = kind == HeadKind::first_token || kind == HeadKind::previous_token;
  if (count == 0)
    fail(ErrorCode::argument, lens.op(), "text", {by_place ? "at least two tokens" : "a text that repeats tokens"},
         {"one without a token to which ", name_of(kind), " applies"});
  LayerTable scores;
  for (const std::vector<float>& weights : run.attentions) {
    std::vector<float>& row = scores.emplace_back();
    for (std::size_t head = 0; head < H; ++head) {
      double total = 0;
      for (std::size_t i = 0; i < L; ++i)
        for (const std::size_t j : keys[i]) total += static_cast<double>(weights[(head * L + i) * L + j]);
      row.push_back(static_cast<float>(total / static_cast<double>(count)));
    }
  }
  return scores;
}

}  // namespace

LogitLens logit_lens(const TextModel& model, const Text& text, const LogitLensOptions& options) {
  const LensModel lens("logit_lens", model);
  if (options.top_k < 1) fail(ErrorCode::config, lens.op(), "top_k", {"a number of at least 1"}, {options.top_k});
  if (lens.config().task != Task::fill_mask)
    lens.check_decoder();
  else if (lens.config().norm_first)
    fail(ErrorCode::unsupported, lens.op(), "the model", {"a decoder or a post-norm encoder"}, {"a pre-norm encoder"});
  auto [ids, tokens] = lens.tokens(text, "text");
  const auto last = static_cast<std::int64_t>(lens.layers());
  LogitLens result{.tokens = std::move(tokens),
                   .layers = lens.indices("layers", options.layers, last + 1),
                   .positions = lens.indices("positions", options.positions, std::ssize(ids)),
                   .predictions = {}};
  const LensRun run = lens.run(ids, 1, {.output_hidden_states = true});
  const std::size_t E = lens.width(), count = result.positions.size();
  for (const std::int64_t layer : result.layers) {
    std::vector<float> rows;
    for (const std::int64_t position : result.positions) {
      const std::span<const float> row = row_of(run.hidden_states[static_cast<std::size_t>(layer)], static_cast<std::size_t>(position), E);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    // The last hidden state is normed. Heads of post-norm encoders take hidden states as they are.
    if (layer < last && lens.config().norm_first) lens.final_norm(rows);
    auto& of_layer = result.predictions.emplace_back(count);
    lens.each_row_of_logits(rows, [&](std::span<const float> logits, std::size_t i) {
      for (const TokenChoice& each : detail::likeliest_tokens(logits, static_cast<std::size_t>(options.top_k)))
        of_layer[i].push_back({each.id, lens.spelled(each.id), each.logit, each.probability});
    });
  }
  return result;
}

LogitAttribution logit_attribution(const TextModel& model, const Text& text, const LogitAttributionOptions& options) {
  const detail::FloatEnvironment environment;
  const LensModel lens("logit_attribution", model);
  lens.check_decoder();
  if (model.weights() == Weights::int8)
    fail(ErrorCode::unsupported, lens.op(), "weights", {"float32"}, {"int8"}, "Rounded activations are not the sum of their parts");
  auto [ids, tokens] = lens.tokens(text, "text");
  const std::int64_t target = lens.token("target", options.target);
  const std::optional<std::int64_t> contrast = lens.token("contrast", options.contrast);
  const std::int64_t position = lens.index("position", options.position, std::ssize(ids));
  const EncoderTraceOptions trace{.names = {TraceName::merged, TraceName::ff_output, TraceName::ff_residual}};
  const LensRun run = lens.run(ids, 1, {.output_hidden_states = true, .trace = trace});

  const auto at = [&](const std::vector<float>& x) { return row_of(x, static_cast<std::size_t>(position), x.size() / ids.size()); };
  const auto [v, of_shift] = direction_of(lens, at(run.trace(lens.layers() - 1, TraceName::ff_residual)), target, contrast);
  LogitAttribution result{.tokens = std::move(tokens), .position = position, .embedding = dot(at(run.hidden_states[0]), v), .biases = of_shift};
  for (std::size_t layer = 0; layer < lens.layers(); ++layer) {
    const std::string name = "encoder.layers." + std::to_string(layer);
    const std::vector<double> back = pulled_back(lens.parameter(name + ".self_attn.out_proj.weight"), v);
    const std::size_t D = back.size() / lens.heads();
    const std::span<const float> merged = at(run.trace(layer, TraceName::merged));
    std::vector<float>& heads = result.heads.emplace_back();
    for (std::size_t head = 0; head < lens.heads(); ++head)
      heads.push_back(static_cast<float>(dot(merged.subspan(head * D), std::span(back).subspan(head * D, D))));
    const auto bias = [&](const char* of) {
      const std::vector<float> values = lens.parameter(name + of);
      return values.empty() ? 0.0 : dot(values, v);
    };
    const double of_mlp = bias(".linear2.bias");
    result.mlps.push_back(static_cast<float>(dot(at(run.trace(layer, TraceName::ff_output)), v) - of_mlp));
    result.biases += of_mlp;
    result.biases += bias(".self_attn.out_proj.bias");
  }
  lens.each_row_of_logits(at(run.output), [&](std::span<const float> logits, std::size_t) {
    result.value = static_cast<double>(logits[static_cast<std::size_t>(target)]);
    if (contrast) result.value -= static_cast<double>(logits[static_cast<std::size_t>(*contrast)]);
  });
  return result;
}

HeadScores head_scores(const TextModel& model, const HeadScoresOptions& options) {
  const detail::FloatEnvironment environment;
  const LensModel lens("head_scores", model);
  auto [ids, tokens] = lens.tokens(options.text ? *options.text : Text(repeated_tokens(lens, options.seed)), "text");
  const LensRun run = lens.run(ids, 1, {.output_attentions = true});
  HeadScores result{.tokens = std::move(tokens), .ids = std::move(ids), .scores = {}};
  for (const HeadKind kind : options.kinds) result.scores[kind] = scores_of(lens, kind, result.ids, run);
  return result;
}

}  // namespace attn::lens
