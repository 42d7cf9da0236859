#include "attn/layers/transformer_encoder_layer.hpp"

#include <algorithm>
#include <cmath>

#include "attn/ops/attention_core.hpp"
#include "attn/ops/elementwise.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn {
namespace {

constexpr std::string_view kOp = "TransformerEncoderLayer";

using detail::size_of;

MultiHeadAttentionOptions options_of_attention(std::string_view op, const TransformerEncoderLayerOptions& options) {
  // Checked here under the names that the caller used.
  const std::int64_t d_model = detail::check_positive(op, "d_model", options.d_model), nhead = detail::check_positive(op, "nhead", options.nhead);
  if (d_model % nhead != 0) fail(ErrorCode::config, op, "d_model", {"a multiple of nhead ", nhead}, {d_model});
  detail::check_dropout(op, options.dropout);
  return {.embed_dim = d_model, .num_heads = nhead, .bias = options.bias, .dropout = options.dropout};
}

}  // namespace

AttentionOptions detail::attention_options(const EncoderPlan& plan, const EncoderForwardOptions& options) {
  return {.mask = options.mask,
          .key_padding_mask = options.key_padding_mask,
          .is_causal = options.is_causal,
          .need_weights = plan.has_attentions,
          .fully_masked = options.fully_masked,
          .trace = Trace::from_bits(plan.names.bits() & Trace::of_attention().bits())};
}

TransformerEncoderLayer::TransformerEncoderLayer(detail::Uninitialized, std::string_view op, const TransformerEncoderLayerOptions& options)
    : options_(options), self_attn_(detail::Uninitialized{}, options_of_attention(op, options)) {
  const std::int64_t E = options.d_model, F = detail::check_positive(op, "dim_feedforward", options.dim_feedforward);
  if (!(options.layer_norm_eps > 0) || !std::isfinite(options.layer_norm_eps))
    fail(ErrorCode::config, op, "layer_norm_eps", {"a finite number above 0"}, {options.layer_norm_eps});
  norm1_ = norm2_ = {options.norm, E, options.bias, options.layer_norm_eps};
  linear1_ = {E, F, options.bias};
  if (options.gated) linear_gate_ = {E, F, options.bias};
  linear2_ = {F, E, options.bias};
}

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& options)
    : TransformerEncoderLayer(detail::Uninitialized{}, kOp, options) {
  detail::check_parameter_memory(kOp, parameter_shapes());
  initialize();
}

template <class Visit>
void TransformerEncoderLayer::each_part(Visit visit) const {
  using Layer = TransformerEncoderLayer;
  visit("self_attn.", &Layer::self_attn_);
  visit("linear1.", &Layer::linear1_);
  visit("linear2.", &Layer::linear2_);
  if (options_.gated) visit("linear_gate.", &Layer::linear_gate_);
  visit("norm1.", &Layer::norm1_);
  visit("norm2.", &Layer::norm2_);
}

void TransformerEncoderLayer::add_shapes(const std::string& prefix, const StateDict* state, std::map<std::string, Shape>& shapes) const {
  each_part([&](const char* name, auto part) { (this->*part).add_shapes(prefix + name, state, shapes); });
}

void TransformerEncoderLayer::save(const std::string& prefix, StateDict& state) const {
  each_part([&](const char* name, auto part) { (this->*part).save(prefix + name, state); });
}

TransformerEncoderLayer TransformerEncoderLayer::loaded(const std::string& prefix, const StateDict& state) const {
  TransformerEncoderLayer next(detail::Uninitialized{}, kOp, options_);
  each_part([&](const char* name, auto part) { next.*part = (this->*part).loaded(prefix + name, state); });
  return next;
}

TransformerEncoderLayer TransformerEncoderLayer::drawn(const InitOptions& options, std::uint32_t& parameter) const {
  TransformerEncoderLayer next(detail::Uninitialized{}, kOp, options_);
  each_part([&](const char*, auto part) { next.*part = (this->*part).drawn(options, parameter); });
  return next;
}

detail::EncoderPlan TransformerEncoderLayer::plan(const TensorView& x, const EncoderForwardOptions& options) const {
  MemoryEstimate memory(kOp);
  detail::EncoderPlan plan = this->plan(kOp, 1, x, options, memory);
  memory.check();
  return plan;
}

detail::EncoderPlan TransformerEncoderLayer::plan(std::string_view op, std::int64_t layers, const TensorView& x, const EncoderForwardOptions& options,
                                                  MemoryEstimate& memory) const {
  const std::size_t rank = x.shape.rank();
  const std::int64_t E = options_.d_model, F = options_.dim_feedforward;
  if ((rank != 2 && rank != 3) || x.shape.back(0) != E) fail(ErrorCode::shape, op, "x", {"(B,L,", E, ") or (L,", E, ")"}, {x.shape});

  detail::EncoderPlan plan{.B = rank == 3 ? x.shape[0] : 1, .L = x.shape.back(1), .E = E, .layers = layers, .output = x.shape};
  plan.has_attentions = options.output_attentions;
  plan.has_hidden_states = options.output_hidden_states;
  if (options.trace) {
    plan.has_trace = true;
    plan.names = options.trace->names;
    for (const std::int64_t layer : options.trace->layers.value_or(std::vector<std::int64_t>{})) {
      if (layer < 0 || layer >= layers) fail(ErrorCode::out_of_range, op, "trace.layers", {"layers from 0 to ", layers - 1}, {layer});
      plan.traced.push_back(layer);
    }
    if (!options.trace->layers)
      for (std::int64_t layer = 0; layer < layers; ++layer) plan.traced.push_back(layer);
    std::sort(plan.traced.begin(), plan.traced.end());
    plan.traced.erase(std::unique(plan.traced.begin(), plan.traced.end()), plan.traced.end());
  }

  plan.attention = self_attn_.plan(op, x, x, x, detail::attention_options(plan, options), memory);
  Shape hidden = x.shape;
  hidden[rank - 1] = F;
  for (std::size_t i = 0; i < kTraceNames.size(); ++i) {
    const auto name = static_cast<TraceName>(i);
    if (!plan.names.has(name)) continue;
    plan.trace_shapes[i] = i < kAttentionTraceCount ? plan.attention.trace_shapes[i] : name == TraceName::ff_hidden ? hidden : x.shape;
    for (std::size_t layer = 0; layer < plan.traced.size(); ++layer) memory.add(kTraceNames[i], plan.trace_shapes[i]);
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (plan.has_attentions) memory.add("attentions", plan.attention.weights);
    if (plan.has_hidden_states) memory.add("hidden states", plan.output);
  }
  if (plan.has_hidden_states) memory.add("hidden states", plan.output);
  memory.add("output", plan.output);
  memory.add("sums", {2, plan.B, plan.L, E});
  memory.add("the feed-forward's hidden layer", {options_.gated ? 2 : 1, plan.B, plan.L, F});
  return plan;
}

void TransformerEncoderLayer::run(const detail::EncoderPlan& plan, const TensorView& x, const EncoderForwardOptions& options,
                                  const detail::EncoderBuffers& buffers) const {
  const std::size_t size = size_of(plan.B * plan.L, plan.E);
  if (plan.has_hidden_states) std::copy_n(x.data, size, buffers.hidden_states[0]);
  run(plan, 0, x.data, detail::attention_options(plan, options), next_random(), buffers.layers[0], buffers.output);
  if (plan.has_hidden_states) std::copy_n(buffers.output, size, buffers.hidden_states[1]);
}

void TransformerEncoderLayer::run(const detail::EncoderPlan& plan, std::uint32_t index, const float* x, const AttentionOptions& attention,
                                  const detail::ForwardRandom& random, const detail::LayerBuffers& buffers, float* y) const {
  const std::int64_t rows = plan.B * plan.L, E = plan.E, F = options_.dim_feedforward;
  const auto keep = [&](TraceName name, const AlignedFloats& values) {
    if (float* to = buffers.trace[static_cast<std::size_t>(name)]) std::copy_n(values.data(), values.size(), to);
  };
  const auto drop = [&](detail::DropoutSite site, std::int64_t width, AlignedFloats& values) {
    detail::apply_dropout(detail::dropout_at(random, options_.dropout, site, index), plan.B, plan.L, width, values.data());
  };
  AlignedFloats sum(size_of(rows, E)), part(size_of(rows, E));

  if (options_.norm_first) {
    norm1_.forward(x, rows, part.data());
    keep(TraceName::norm1, part);
  }
  const TensorView input{options_.norm_first ? part.data() : x, plan.output};
  detail::AttentionBuffers to{.output = sum.data(), .weights = buffers.attentions};
  std::copy_n(buffers.trace.begin(), kAttentionTraceCount, to.trace.begin());
  self_attn_.run(plan.attention, input, input, input, attention,
                 detail::dropout_at(random, options_.dropout, detail::DropoutSite::attention_weights, index), to);
  drop(detail::DropoutSite::attention_output, E, sum);
  detail::add(x, sum.data(), rows, E, sum.data());
  keep(TraceName::attn_residual, sum);

  if (!options_.norm_first) {
    norm1_.forward(sum.data(), rows, sum.data());
    keep(TraceName::norm1, sum);
  } else {
    norm2_.forward(sum.data(), rows, part.data());
    keep(TraceName::norm2, part);
  }
  const float* const ff_input = options_.norm_first ? part.data() : sum.data();
  AlignedFloats hidden(size_of(rows, F)), gate(options_.gated ? hidden.size() : 0);
  linear1_.forward(ff_input, rows, hidden.data());
  if (options_.gated) linear_gate_.forward(ff_input, rows, gate.data());
  float* const activated = options_.gated ? gate.data() : hidden.data();
  detail::activation({activated, {rows, F}}, options_.activation, activated);
  if (options_.gated) detail::multiply(gate.data(), hidden.data(), rows, F, hidden.data());
  keep(TraceName::ff_hidden, hidden);
  drop(detail::DropoutSite::hidden, F, hidden);

  linear2_.forward(hidden.data(), rows, part.data());
  keep(TraceName::ff_output, part);
  drop(detail::DropoutSite::feed_forward_output, E, part);
  detail::add(sum.data(), part.data(), rows, E, sum.data());
  keep(TraceName::ff_residual, sum);
  if (!options_.norm_first) {
    norm2_.forward(sum.data(), rows, sum.data());
    keep(TraceName::norm2, sum);
  }
  std::copy_n(sum.data(), sum.size(), y);
}

}  // namespace attn
