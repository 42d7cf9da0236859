#include "attn/models/attribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "attn/models/encoder_model.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

// The results do not depend on it.
constexpr std::int64_t kStepsOfAPortion = 8, kTextsOfAPortion = 16;
constexpr std::int64_t kMostSteps = 10'000;

bool has_gradient(AttributionMethod method) { return method != AttributionMethod::attention_rollout && method != AttributionMethod::leave_one_out; }

}  // namespace

Quadrature::Quadrature(std::int64_t n) : places(static_cast<std::size_t>(n)), weights(places.size()) {
  // Newton's method for the roots of the Legendre polynomial of degree n, which are symmetric.
  for (std::size_t i = 0; i < (places.size() + 1) / 2; ++i) {
    double x = sin_cos_of(std::numbers::pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5)).cos, slope = 0;
    for (int iteration = 0; iteration < 20; ++iteration) {
      double before = 0, value = 1;
      for (std::int64_t k = 1; k <= n; ++k) {
        const auto degree = static_cast<double>(k);
        const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
        before = std::exchange(value, next);
      }
      slope = static_cast<double>(n) * (x * value - before) / (x * x - 1);
      const double change = value / slope;
      x -= change;
      if (std::abs(change) < 1e-16) break;
    }
    const std::size_t other = places.size() - 1 - i;
    places[i] = (1 - x) / 2;
    places[other] = (1 + x) / 2;
    weights[i] = weights[other] = 1 / ((1 - x * x) * slope * slope);
  }
}

double convergence_delta(std::span<const double> scores, const float* values) {
  double sum = 0;
  for (const double score : scores) sum += score;
  const double difference = static_cast<double>(values[0]) - static_cast<double>(values[1]);
  return sum == difference ? 0 : std::abs(sum - difference) / std::abs(difference);
}

Attribution::Attribution(std::string_view op, const EncoderModel& model, const AttributionCall& call)
    : op_(op),
      model_(model),
      call_(call),
      length_(static_cast<std::int64_t>(call.ids.size())),
      width_(static_cast<std::size_t>(model.result_size(of_head()))) {
  // The token that predicts cannot be left out; a mask stays a mask.
  const bool stays = call.method == AttributionMethod::leave_one_out || model.config().task == Task::fill_mask;
  for (std::int64_t i = 0; i < length_; ++i)
    if ((call.special.empty() || call.special[static_cast<std::size_t>(i)] == 0) && !(i == call.position && stays)) words_.push_back(i);
  const auto count = static_cast<std::int64_t>(words_.size());
  if (call.position && (!model.has_head() || !model.config().of_tokens()))
    fail(ErrorCode::unsupported, op, "position", {"no position"}, {*call.position}, "The model has no head with logits for each token");
  if (call.position && (*call.position < 0 || *call.position >= length_))
    fail(ErrorCode::out_of_range, op, "position", {"a number from 0 to ", length_ - 1}, {*call.position});
  if (call.target) check_output("target", *call.target);
  if (!call.target && !of_head() && call.method != AttributionMethod::attention_rollout)
    fail(ErrorCode::argument, op, "target", {"the number of a component of the pooled vector"}, {"missing"}, "The checkpoint has no head for texts");
  if (call.contrast && !of_head()) fail(ErrorCode::unsupported, op, "contrast", {"no contrast without a logit"}, {*call.contrast});
  if (call.contrast) check_output("contrast", *call.contrast);
  if (has_gradient(call.method)) model.check_gradients(op);
  if (call.steps < 1 || call.steps > kMostSteps) fail(ErrorCode::config, op, "steps", {"a whole number from 1 to ", kMostSteps}, {call.steps});
  if (call.pad_id < 0 || call.pad_id >= model.config().vocab_size)
    fail(ErrorCode::out_of_range, op, "the id of padding", {"an id from 0 to ", model.config().vocab_size - 1}, {call.pad_id});
  if (length_ - (call.method == AttributionMethod::leave_one_out ? count > 0 : 0) < 1)
    fail(ErrorCode::argument, op, "text", {"a text of more tokens"}, {length_, " tokens long"});
  if (call.method == AttributionMethod::integrated_gradients) {
    const FloatEnvironment environment;
    portions_ = (call.steps + kStepsOfAPortion - 1) / kStepsOfAPortion;
    quadrature_ = Quadrature(call.steps);
  }
  if (call.method == AttributionMethod::leave_one_out) portions_ = std::max<std::int64_t>(1, (count + kTextsOfAPortion - 1) / kTextsOfAPortion);
  plan({.shape = {1, length_}, .input_ids = call.ids, .token_type_ids = call.types}, {.for_backward = has_gradient(call.method)});
  target_ = call.target ? *call.target : of_head() && call.method != AttributionMethod::attention_rollout ? likeliest() : 0;
}

std::int64_t Attribution::likeliest() const {
  const ModelInputs inputs{.shape = {1, length_}, .input_ids = call_.ids, .token_type_ids = call_.types};
  const auto E = static_cast<std::size_t>(model_.config().hidden_size);
  std::vector<float> hidden(call_.ids.size() * E), results(width_);
  model_.run(plan(inputs, {}), inputs, {hidden.data(), {}, {}}, call_.position ? nullptr : results.data());
  if (call_.position) model_.run_head(hidden.data() + static_cast<std::size_t>(*call_.position) * E, 1, results.data());
  return std::max_element(results.begin(), results.end()) - results.begin();
}

void Attribution::check_output(std::string_view name, std::int64_t output) const {
  if (output >= 0 && output < static_cast<std::int64_t>(width_)) return;
  const std::string_view kind = !of_head() ? "a number of the pooled vector" : model_.config().predicts_tokens() ? "the id of a token" : "a label";
  fail(ErrorCode::out_of_range, op_, name, {kind, " from 0 to ", width_ - 1}, {output});
}

bool Attribution::of_head() const { return call_.position || model_.has_text_head(); }

ModelPlan Attribution::plan(const ModelInputs& inputs, ModelForwardOptions options) const {
  options.logits = model_.has_text_head();
  const std::vector<std::int64_t> rows = rows_of(inputs);
  options.keep = {.of_head = of_head(), .tokens = rows};
  return model_.plan(op_, inputs, options);
}

std::unique_ptr<KeptModel> Attribution::run_and_keep(const ModelPlan& plan, const ModelInputs& inputs, const EncoderBuffers& buffers,
                                                     const Table* words) const {
  const std::vector<std::int64_t> rows = rows_of(inputs);
  return model_.run_and_keep(plan, inputs, buffers, {.of_head = of_head(), .words = words, .tokens = rows});
}

/// Of the position in each sequence.
std::vector<std::int64_t> Attribution::rows_of(const ModelInputs& inputs) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; call_.position && b < inputs.shape[0]; ++b) rows.push_back(b * length_ + *call_.position);
  return rows;
}

float Attribution::value(const float* results) const { return results[target_] - (call_.contrast ? results[*call_.contrast] : 0.0F); }

void Attribution::add_gradient(float* of_results) const {
  of_results[target_] += 1;
  if (call_.contrast) of_results[*call_.contrast] -= 1;
}

void Attribution::run(std::int64_t index, float* scores, float* values) const {
  const FloatEnvironment environment;
  std::vector<double> sums(call_.ids.size());
  std::fill_n(values, 2, 0.0F);
  switch (call_.method) {
    case AttributionMethod::integrated_gradients: {
      const std::int64_t first = index * kStepsOfAPortion;
      integrate(first, std::min(kStepsOfAPortion, call_.steps - first), sums.data(), values);
      break;
    }
    case AttributionMethod::gradient_x_input:
      gradient_x_input(sums.data());
      break;
    case AttributionMethod::attention_rollout:
      attention(false, sums.data());
      break;
    case AttributionMethod::attention_gradient:
      attention(true, sums.data());
      break;
    case AttributionMethod::leave_one_out: {
      const std::int64_t first = index * kTextsOfAPortion;
      leave_out(first, std::min(kTextsOfAPortion, static_cast<std::int64_t>(words_.size()) - first), sums.data());
      break;
    }
  }
  std::transform(sums.begin(), sums.end(), scores, [](double score) { return static_cast<float>(score); });
}

void Attribution::integrate(std::int64_t first, std::int64_t count, double* scores, float* values) const {
  const auto L = static_cast<std::size_t>(length_), E = static_cast<std::size_t>(model_.config().word_width());
  // First the text and the baseline.
  const std::int64_t ends = first == 0 ? 2 : 0, B = count + ends;
  const auto sequences = static_cast<std::size_t>(B), steps = static_cast<std::size_t>(first), extra = static_cast<std::size_t>(ends);
  const auto place = [&](std::size_t b) { return b >= extra ? quadrature_.places[steps + b - extra] : b == 0 ? 1.0 : 0.0; };

  std::vector<float> text(L * E), baseline(E), difference(L * E);
  const Table& table = model_.word_embeddings().table();
  table.get_row(static_cast<std::size_t>(call_.pad_id), baseline.data());
  for (std::size_t i = 0; i < L; ++i) table.get_row(static_cast<std::size_t>(call_.ids[i]), text.data() + i * E);
  for (const std::int64_t word : words_)
    for (std::size_t e = 0; e < E; ++e)
      difference[static_cast<std::size_t>(word) * E + e] = text[static_cast<std::size_t>(word) * E + e] - baseline[e];

  Table words(sequences * L, E);
  words.allocate();
  std::vector<float> row(L * E);
  std::vector<std::int64_t> ids, types;
  for (std::size_t b = 0; b < sequences; ++b) {
    for (std::size_t i = 0; i < L * E; ++i) row[i] = static_cast<float>(text[i] - (1 - place(b)) * static_cast<double>(difference[i]));
    words.set_rows(b * L, row);
    ids.insert(ids.end(), call_.ids.begin(), call_.ids.end());
    types.insert(types.end(), call_.types.begin(), call_.types.end());
  }

  const ModelInputs inputs{.shape = {B, length_}, .input_ids = ids, .token_type_ids = types};
  const ModelPlan plan = this->plan(inputs, {.for_backward = true});
  std::vector<float> hidden(sequences * L * static_cast<std::size_t>(plan.encoder.E)), gradient(sequences * L * E);
  const auto kept = run_and_keep(plan, inputs, {hidden.data(), {}, {}}, &words);
  for (std::size_t b = 0; b < extra; ++b) values[b] = value(kept->result + b * width_);
  std::vector<float> grad(sequences * width_);
  for (std::size_t b = extra; b < sequences; ++b) add_gradient(grad.data() + b * width_);
  model_.backward(*kept, grad.data(), {.embeddings = gradient.data()});

  for (std::size_t b = extra; b < sequences; ++b)
    for (std::size_t i = 0; i < L; ++i) {
      const float *const along = difference.data() + i * E, *const slope = gradient.data() + (b * L + i) * E;
      double sum = 0;
      for (std::size_t e = 0; e < E; ++e) sum += static_cast<double>(along[e]) * static_cast<double>(slope[e]);
      scores[i] += quadrature_.weights[steps + b - extra] * sum;
    }
}

void Attribution::gradient_x_input(double* scores) const {
  const auto L = static_cast<std::size_t>(length_), E = static_cast<std::size_t>(model_.config().word_width());
  const ModelInputs inputs{.shape = {1, length_}, .input_ids = call_.ids, .token_type_ids = call_.types};
  const ModelPlan plan = this->plan(inputs, {.for_backward = true});
  std::vector<float> hidden(L * static_cast<std::size_t>(plan.encoder.E)), gradient(L * E), word(E), grad(width_);
  const auto kept = run_and_keep(plan, inputs, {hidden.data(), {}, {}});
  add_gradient(grad.data());
  model_.backward(*kept, grad.data(), {.embeddings = gradient.data()});
  for (std::size_t i = 0; i < L; ++i) {
    model_.word_embeddings().table().get_row(static_cast<std::size_t>(call_.ids[i]), word.data());
    for (std::size_t e = 0; e < E; ++e) scores[i] += static_cast<double>(word[e]) * static_cast<double>(gradient[i * E + e]);
  }
}

std::vector<double> Attribution::pooled() const {
  const ModelConfig& config = model_.config();
  const auto L = static_cast<std::size_t>(length_);
  const Pooling pooling = model_.has_text_head() ? config.classifier_pooling : config.poolings.size() == 1 ? config.poolings[0] : Pooling::mean;
  std::vector<double> weights(L);
  if (call_.position)
    weights[static_cast<std::size_t>(*call_.position)] = 1;
  else if (pooling == Pooling::cls)
    weights.front() = 1;
  else if (pooling == Pooling::lasttoken)
    weights.back() = 1;
  else
    for (std::size_t i = 0; i < L; ++i)
      weights[i] = pooling == Pooling::weightedmean ? 2 * static_cast<double>(i + 1) / static_cast<double>(L * (L + 1)) : 1 / static_cast<double>(L);
  return weights;
}

void Attribution::attention(bool with_gradient, double* scores) const {
  const auto L = static_cast<std::size_t>(length_), E = static_cast<std::size_t>(model_.config().hidden_size);
  const auto layers = static_cast<std::size_t>(model_.config().num_hidden_layers),
             heads = static_cast<std::size_t>(model_.config().num_attention_heads);
  const ModelInputs inputs{.shape = {1, length_}, .input_ids = call_.ids, .token_type_ids = call_.types};
  const ModelPlan plan = this->plan(inputs, {.output_attentions = true, .for_backward = with_gradient});
  const std::size_t size = heads * L * L;
  std::vector<float> hidden(L * E), weights(layers * size), slopes(with_gradient ? weights.size() : 0);
  EncoderBuffers buffers{hidden.data(), {}, std::vector<LayerBuffers>(layers)};
  for (std::size_t layer = 0; layer < layers; ++layer) buffers.layers[layer].attentions = weights.data() + layer * size;
  if (with_gradient) {
    std::vector<float> grad(width_);
    add_gradient(grad.data());
    const auto kept = run_and_keep(plan, inputs, buffers);
    ModelGradientBuffers to;
    for (std::size_t layer = 0; layer < layers; ++layer)
      to.traces.emplace_back()[static_cast<std::size_t>(TraceName::weights)] = slopes.data() + layer * size;
    model_.backward(*kept, grad.data(), to);
  } else {
    model_.run(plan, inputs, buffers, nullptr);
  }
  // A row of the product of the layers' matrices, from last to first.
  std::vector<double> flow = pooled(), next(L);
  for (std::size_t layer = layers; layer-- > 0;) {
    for (std::size_t j = 0; j < L; ++j) next[j] = with_gradient ? flow[j] : 0.5 * flow[j];
    const double share = (with_gradient ? 1.0 : 0.5) / static_cast<double>(heads);
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t i = 0; i < L; ++i) {
        const std::size_t at = layer * size + (head * L + i) * L;
        for (std::size_t j = 0; j < L; ++j) {
          double weight = static_cast<double>(weights[at + j]);
          if (with_gradient) weight = std::max(0.0, weight * static_cast<double>(slopes[at + j]));
          next[j] += share * flow[i] * weight;
        }
      }
    std::swap(flow, next);
  }
  for (std::size_t i = 0; i < L; ++i) scores[i] += flow[i];
}

void Attribution::leave_out(std::int64_t first, std::int64_t count, double* scores) const {
  if (words_.empty()) return;
  std::vector<std::int64_t> ids(call_.ids.begin(), call_.ids.end()), types(call_.types.begin(), call_.types.end());
  for (std::int64_t k = first; k < first + count; ++k) {
    const auto append = [&](std::span<const std::int64_t> from, std::vector<std::int64_t>& to) {
      for (std::size_t i = 0; i < from.size(); ++i)
        if (static_cast<std::int64_t>(i) != words_[static_cast<std::size_t>(k)]) to.push_back(from[i]);
    };
    append(call_.ids, ids);
    append(call_.types, types);
  }
  const std::array<SequenceGroup, 2> runs{{{1, length_}, {count, length_ - 1}}};
  const ModelInputs inputs{.shape = {1, static_cast<std::int64_t>(ids.size())}, .input_ids = ids, .token_type_ids = types, .runs = runs};
  const ModelPlan plan = this->plan(inputs, {});
  const auto E = static_cast<std::size_t>(model_.config().hidden_size);
  std::vector<float> hidden(ids.size() * E), results(static_cast<std::size_t>(count + 1) * width_);
  if (call_.position) {
    model_.run(plan, inputs, {hidden.data(), {}, {}}, nullptr);
    std::vector<float> rows;
    for (std::int64_t k = 0; k <= count; ++k) {
      const bool is_moved = k > 0 && words_[static_cast<std::size_t>(first + k - 1)] < *call_.position;
      const std::int64_t begin = k == 0 ? 0 : length_ + (k - 1) * (length_ - 1);
      const float* const row = hidden.data() + static_cast<std::size_t>(begin + *call_.position - is_moved) * E;
      rows.insert(rows.end(), row, row + E);
    }
    model_.run_head(rows.data(), count + 1, results.data());
  } else {
    model_.run_result(plan, inputs, {hidden.data(), {}, {}}, results.data());
  }
  const auto whole = static_cast<double>(value(results.data()));
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k)
    scores[static_cast<std::size_t>(words_[static_cast<std::size_t>(first) + k])] +=
        whole - static_cast<double>(value(results.data() + (k + 1) * width_));
}

}  // namespace attn::detail
