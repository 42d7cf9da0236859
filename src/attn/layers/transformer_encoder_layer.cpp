#include "attn/layers/transformer_encoder_layer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace {

constexpr std::string_view kTransformerEncoderLayerOp = "TransformerEncoderLayer";

using detail::size_of;

MultiHeadAttentionOptions options_of_attention(std::string_view op, const TransformerEncoderLayerOptions& options) {
  // So that errors name the caller's options.
  const std::int64_t d_model = detail::check_positive(op, "d_model", options.d_model), nhead = detail::check_positive(op, "nhead", options.nhead);
  if (!options.head_dim && d_model % nhead != 0) detail::fail(ErrorCode::config, op, "d_model", {"a multiple of nhead ", nhead}, {d_model});
  if (options.num_key_value_heads) {
    const std::int64_t groups = detail::check_positive(op, "num_key_value_heads", *options.num_key_value_heads);
    if (nhead % groups != 0) detail::fail(ErrorCode::config, op, "nhead", {"a multiple of num_key_value_heads ", groups}, {nhead});
  }
  if (options.head_dim) detail::check_positive(op, "head_dim", *options.head_dim);
  detail::check_dropout(op, options.dropout);
  return {.embed_dim = d_model,
          .num_heads = nhead,
          .num_key_value_heads = options.num_key_value_heads,
          .head_dim = options.head_dim,
          .bias = options.bias,
          .dropout = options.dropout};
}

detail::AttentionDefaults defaults_of_attention(std::string_view op, const TransformerEncoderLayerOptions& options) {
  return {
      .softcap = detail::check_softcap(op, options.softcap),
      .window = detail::check_window(op, options.window.value_or(Window{})),
      .rotary = options.rotary ? detail::Rotary(op, *options.rotary, options.head_dim.value_or(options.d_model / options.nhead)) : detail::Rotary()};
}

/// Unique and ascending.
std::vector<std::int64_t> traced_layers(std::string_view op, std::int64_t layers, const std::optional<EncoderTraceOptions>& trace) {
  std::vector<std::int64_t> traced;
  if (!trace) return traced;
  if (!trace->layers) {
    traced.resize(static_cast<std::size_t>(layers));
    std::iota(traced.begin(), traced.end(), 0);
    return traced;
  }
  for (const std::int64_t layer : *trace->layers) {
    if (layer < 0 || layer >= layers) detail::fail(ErrorCode::out_of_range, op, "trace.layers", {"layers from 0 to ", layers - 1}, {layer});
    const auto place = std::lower_bound(traced.begin(), traced.end(), layer);
    if (place == traced.end() || *place != layer) traced.insert(place, layer);
  }
  return traced;
}

}  // namespace

MultiHeadAttention TransformerEncoderLayer::attention_of(std::string_view op, const TransformerEncoderLayerOptions& options) {
  const MultiHeadAttentionOptions attention = options_of_attention(op, options);
  return {detail::Uninitialized{}, attention, defaults_of_attention(op, options)};
}

TransformerEncoderLayer::TransformerEncoderLayer(detail::Uninitialized, std::string_view op, const TransformerEncoderLayerOptions& options)
    : options_(options), self_attn_(attention_of(op, options)) {
  const std::int64_t E = options.d_model, F = detail::check_positive(op, "dim_feedforward", options.dim_feedforward);
  if (!(options.layer_norm_eps > 0) || !std::isfinite(options.layer_norm_eps))
    detail::fail(ErrorCode::config, op, "layer_norm_eps", {"a finite number above 0"}, {options.layer_norm_eps});
  norm1_ = norm2_ = {options.norm, E, options.bias, options.layer_norm_eps};
  linear1_ = {E, F, options.bias};
  if (options.gated) linear_gate_ = {E, F, options.bias};
  linear2_ = {F, E, options.bias};
}

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& options)
    : TransformerEncoderLayer(detail::Uninitialized{}, kTransformerEncoderLayerOp, options) {
  create(kTransformerEncoderLayerOp);
}

void TransformerEncoderLayer::set_variant(const detail::LayerVariant& variant) {
  variant_ = variant;
  if (variant.post_norms) post_norm1_ = post_norm2_ = {options_.norm, options_.d_model, options_.bias, options_.layer_norm_eps};
  if (variant.layer_scale) post_norm1_ = post_norm2_ = detail::Norm::scale(options_.d_model);
  for (detail::Norm* const norm : {&norm1_, &norm2_, &post_norm1_, &post_norm2_}) norm->set_offset(variant.norm_offset);
  self_attn_.set_variant(variant, options_.layer_norm_eps);
}

void TransformerEncoderLayer::visit_parameters(detail::ParameterVisitor& visitor) {
  visitor.part("self_attn.", self_attn_);
  visitor.part("linear1.", linear1_);
  visitor.part("linear2.", linear2_);
  if (options_.gated) visitor.part("linear_gate.", linear_gate_);
  visitor.part("norm1.", norm1_);
  visitor.part("norm2.", norm2_);
  visitor.part("post_norm1.", post_norm1_);
  visitor.part("post_norm2.", post_norm2_);
}

detail::EncoderPlan TransformerEncoderLayer::plan(const TensorView& x, const EncoderForwardOptions& options) const {
  detail::EncoderPlan plan = this->plan(kTransformerEncoderLayerOp, 1, x, options, {});
  if (plan.for_backward) detail::check_float32(kTransformerEncoderLayerOp, "for_backward", is_quantized());
  detail::check_memory(kTransformerEncoderLayerOp, [&] { run(plan, x, detail::counted_buffers(plan)); });
  return plan;
}

detail::EncoderPlan TransformerEncoderLayer::plan(std::string_view op, std::int64_t layers, const TensorView& x, const EncoderForwardOptions& options,
                                                  std::span<const detail::SequenceGroup> runs, KeyValueCache* cache) const {
  const std::size_t rank = x.shape.rank();
  const std::int64_t E = options_.d_model, F = options_.dim_feedforward;
  if ((rank != 2 && rank != 3) || x.shape.back(0) != E) detail::fail(ErrorCode::shape, op, "x", {"(B,L,", E, ") or (L,", E, ")"}, {x.shape});
  const Trace names = options.trace ? self_attn_.available_parts(op, options.trace->names) : Trace{};
  std::vector<std::int64_t> traced = traced_layers(op, layers, options.trace);

  detail::EncoderPlan plan{.B = rank == 3 ? x.shape[0] : 1,
                           .L = x.shape.back(1),
                           .E = E,
                           .layers = layers,
                           .attention = self_attn_.plan(op, x, x, x,
                                                        {.mask = options.mask,
                                                         .key_padding_mask = options.key_padding_mask,
                                                         .is_causal = options.is_causal,
                                                         .need_weights = options.output_attentions,
                                                         .fully_masked = options.fully_masked,
                                                         .trace = Trace::from_bits(names.bits() & Trace::of_attention().bits()),
                                                         .query_offset = options.query_offset},
                                                        runs, cache != nullptr ? cache->length() : 0),
                           .output = x.shape,
                           .has_attentions = options.output_attentions,
                           .has_hidden_states = options.output_hidden_states,
                           .has_trace = options.trace.has_value(),
                           .for_backward = options.for_backward,
                           .names = names,
                           .traced = std::move(traced),
                           .trace_shapes = {},
                           .patch = {},
                           .cache = cache};
  const Shape scores = rank == 3 ? Shape{plan.B, options_.nhead, plan.L, plan.L} : Shape{options_.nhead, plan.L, plan.L};
  Shape hidden = x.shape;
  hidden[rank - 1] = F;
  for (std::size_t i = 0; i < kTraceNames.size(); ++i) {
    const auto name = static_cast<TraceName>(i);
    if (!plan.names.has(name)) continue;
    plan.trace_shapes[i] = i < kAttentionTraceCount       ? plan.attention.trace_shapes[i]
                           : name == TraceName::ff_hidden ? hidden
                           : name >= TraceName::c2c       ? scores
                                                          : x.shape;
  }
  return plan;
}

detail::EncoderBuffers detail::counted_buffers(const EncoderPlan& plan) {
  EncoderBuffers buffers{.output = counted(plan.output, "output")};
  if (plan.has_attentions || plan.has_trace) buffers.layers.resize(static_cast<std::size_t>(plan.layers));
  if (plan.has_attentions)
    for (LayerBuffers& layer : buffers.layers) layer.attentions = counted(plan.attention.weights, "attentions");
  for (std::int64_t i = 0; i <= plan.layers && plan.has_hidden_states; ++i) buffers.hidden_states.push_back(counted(plan.output, "hidden states"));
  for_each_trace(
      plan, [&](std::size_t layer, std::size_t name) { buffers.layers[layer].trace[name] = counted(plan.trace_shapes[name], kTraceNames[name]); });
  return buffers;
}

void TransformerEncoderLayer::run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers) const {
  const detail::ForwardRandom random = next_random();
  if (keeps(plan.for_backward) && !is_quantized()) return run_for_backward(plan, x, random, buffers);
  run(plan, x, random, buffers);
}

void TransformerEncoderLayer::run(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                                  const detail::EncoderBuffers& buffers) const {
  const std::size_t size = size_of(plan.B * plan.L, plan.E);
  detail::Scratch scratch = this->scratch();
  const float* const input = detail::without_gaps(x, scratch);
  if (plan.has_hidden_states) detail::copy_values(input, size, buffers.hidden_states[0]);
  run(plan, 0, input, random, {}, buffers.layer(0), scratch, buffers.output);
  if (plan.has_hidden_states) detail::copy_values(buffers.output, size, buffers.hidden_states[1]);
}

/// Runs operations on a row as soon as a linear map has written it, while it is in the cache.
class TransformerEncoderLayer::Forward {
 public:
  Forward(const TransformerEncoderLayer& layer, const detail::EncoderPlan& plan, std::uint32_t index, const detail::ForwardRandom& random,
          const detail::LayerBuffers& buffers, detail::Scratch& scratch)
      : layer_(layer),
        plan_(plan),
        index_(index),
        random_(random),
        buffers_(buffers),
        scratch_(scratch),
        rows_(plan.B * plan.L),
        E_(static_cast<std::size_t>(plan.E)),
        F_(static_cast<std::size_t>(layer.options_.dim_feedforward)) {}

  void run(const float* x, const detail::PositionBias& position_bias, float* y) {
    const std::size_t size = size_of(rows_, plan_.E), hidden_size = size_of(rows_, options_.dim_feedforward);
    float* const sum = scratch_.take(size);  // x + attention; becomes its norm1 without norm_first
    float* const part = scratch_.take(size);
    float* const normed = options_.norm_first ? scratch_.take(size) : sum;
    attention(x, position_bias, part, sum, normed);
    float* const hidden = scratch_.take(hidden_size);
    expand(normed, hidden, options_.gated ? scratch_.take(hidden_size) : nullptr);
    contract(hidden, part, sum, y);
  }

 private:
  detail::Dropout dropout(detail::DropoutSite site) const { return detail::dropout_at(random_, options_.dropout, site, index_); }
  void drop(const detail::Dropout& site, float* values, std::size_t n, std::size_t row) const {
    const auto place = static_cast<std::int64_t>(row);
    if (site.active()) site.apply(values, n, place / plan_.L, 0, place % plan_.L);
  }
  void keep(TraceName name, const float* values, std::size_t n, std::size_t row) const {
    if (float* to = buffers_.trace[static_cast<std::size_t>(name)]) std::copy_n(values, n, to + row * n);
  }
  detail::AttentionPatch patch() const {
    const detail::PatchedValues values = plan_.patch.of(index_);
    return {.head_mask = plan_.patch.head_mask != nullptr ? plan_.patch.head_mask + index_ * options_.nhead : nullptr,
            .values = values.merged,
            .q_proj = values.q_proj,
            .k_proj = values.k_proj,
            .v_proj = values.v_proj,
            .weights = values.weights};
  }

  void attention(const float* x, const detail::PositionBias& position_bias, float* part, float* sum, float* normed);
  void expand(const float* normed, float* hidden, float* gate);
  void contract(const float* hidden, float* part, const float* sum, float* y);

  const TransformerEncoderLayer& layer_;
  const TransformerEncoderLayerOptions& options_ = layer_.options_;
  const detail::EncoderPlan& plan_;
  const std::uint32_t index_;
  const detail::ForwardRandom& random_;
  const detail::LayerBuffers& buffers_;
  detail::Scratch& scratch_;
  const std::int64_t rows_;
  const std::size_t E_, F_;
  const kernels::KernelTable& kernel_ = kernels::best(layer_.linear1_.is_quantized());
};

/// sum = x + dropout(attention(x or norm1(x))), `part`: that attention; normed = the feed-forward's input, after its norm.
void TransformerEncoderLayer::Forward::attention(const float* x, const detail::PositionBias& position_bias, float* part, float* sum, float* normed) {
  if (options_.norm_first) {
    layer_.norm1_.forward(x, rows_, normed);
    if (!detail::counts()) keep(TraceName::norm1, normed, size_of(rows_, plan_.E), 0);
  }
  const TensorView input{options_.norm_first ? normed : x, plan_.output};
  detail::AttentionBuffers to{.output = part, .weights = buffers_.attentions, .log_sum_exp = buffers_.log_sum_exp};
  to.trace = buffers_.trace;
  const detail::Dropout drop_attention = dropout(detail::DropoutSite::attention_output);
  const auto finish = [&](std::size_t row, unsigned) noexcept {
    float *const attention = part + row * E_, *const total = sum + row * E_;
    layer_.post_norm1_.forward_row(attention, attention);
    drop(drop_attention, attention, E_, row);
    kernel_.add_row(x + row * E_, attention, total, E_);
    keep(TraceName::attn_residual, total, E_, row);
    (options_.norm_first ? layer_.norm2_ : layer_.norm1_).forward_row(layer_.variant_.parallel ? x + row * E_ : total, normed + row * E_);
    keep(options_.norm_first ? TraceName::norm2 : TraceName::norm1, normed + row * E_, E_, row);
  };
  const parallel::TaskRef finish_row(finish);
  detail::PositionBias bias = position_bias;
  if (bias.relative != nullptr) bias.relative += index_;
  layer_.self_attn_.run(plan_.attention, input, input, input,
                        {.dropout = dropout(detail::DropoutSite::attention_weights),
                         .cache = plan_.cache,
                         .layer = index_,
                         .position_bias = bias,
                         .patch = patch(),
                         .finish_row = &finish_row},
                        to, scratch_);
}

/// hidden (B·L,F) = dropout(activation(linear1(normed))); if gated, dropout(activation(linear_gate(normed)) · linear1(normed)).
void TransformerEncoderLayer::Forward::expand(const float* normed, float* hidden, float* gate) {
  const detail::Dropout drop_hidden = dropout(detail::DropoutSite::hidden);
  const auto finish = [&](std::size_t row, unsigned) noexcept {
    float* const values = hidden + row * F_;
    float* const activated = options_.gated ? gate + row * F_ : values;
    if (buffers_.linear1 != nullptr) std::copy_n(values, F_, buffers_.linear1 + row * F_);
    if (buffers_.linear_gate != nullptr) std::copy_n(activated, F_, buffers_.linear_gate + row * F_);
    kernel_.activation_row(options_.activation, activated, activated, F_);
    if (options_.gated) kernel_.multiply_row(activated, values, values, F_);
    keep(TraceName::ff_hidden, values, F_, row);
    drop(drop_hidden, values, F_, row);
  };
  const parallel::TaskRef finish_row(finish);
  const detail::Linear::Output outputs[] = {{&layer_.linear1_, hidden}, {&layer_.linear_gate_, gate}};
  detail::Linear::forward({outputs, options_.gated ? 2U : 1U}, detail::Rows(normed, static_cast<std::size_t>(rows_), E_), scratch_, &finish_row);
}

/// y = sum + dropout(linear2(hidden)), then norm2 without norm_first.
void TransformerEncoderLayer::Forward::contract(const float* hidden, float* part, const float* sum, float* y) {
  const detail::Dropout drop_output = dropout(detail::DropoutSite::feed_forward_output);
  const auto finish = [&](std::size_t row, unsigned) noexcept {
    float *const values = part + row * E_, *const result = y + row * E_;
    keep(TraceName::ff_output, values, E_, row);
    layer_.post_norm2_.forward_row(values, values);
    drop(drop_output, values, E_, row);
    kernel_.add_row(sum + row * E_, values, result, E_);
    keep(TraceName::ff_residual, result, E_, row);
    if (options_.norm_first) return;
    layer_.norm2_.forward_row(result, result);
    keep(TraceName::norm2, result, E_, row);
  };
  const parallel::TaskRef finish_row(finish);
  layer_.linear2_.forward(hidden, rows_, part, scratch_, &finish_row);
}

void TransformerEncoderLayer::run(const detail::EncoderPlan& plan, std::uint32_t index, const float* x, const detail::ForwardRandom& random,
                                  const detail::PositionBias& position_bias, const detail::LayerBuffers& buffers, detail::Scratch& scratch,
                                  float* y) const {
  const detail::Scratch::Frame frame(scratch);
  Forward(*this, plan, index, random, buffers, scratch).run(x, position_bias, y);
}

}  // namespace attn
