#include <algorithm>
#include <utility>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/kept.hpp"
#include "attn/layers/rows_with_gradient.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace {

constexpr std::string_view kTransformerEncoderLayerBackwardOp = "TransformerEncoderLayer";

using detail::size_of;

}  // namespace

std::size_t TransformerEncoderLayer::kept_size(const detail::EncoderPlan& plan) const {
  const std::int64_t widths =
      ((options_.norm_first ? 2 : 3) + (variant_.post_norms ? 2 : 0)) * plan.E + (options_.gated ? 2 : 1) * options_.dim_feedforward;
  return size_of(plan.B * plan.L, widths) + self_attn_.kept_size(plan.attention.sizes);
}

void TransformerEncoderLayer::add_kept_memory(const detail::EncoderPlan& plan, MemoryEstimate& memory) const {
  for (std::int64_t layer = 0; layer < plan.layers; ++layer) {
    memory.add("what backward needs",
               {(variant_.post_norms ? 5 : 3) + (options_.gated ? 2 : 1), plan.B, plan.L, std::max(plan.E, options_.dim_feedforward)});
    memory.add("q, k, v and merged heads for backward",
               {4, plan.B, plan.L, std::max(plan.E, plan.attention.spec.num_heads * plan.attention.spec.head_dim)});
  }
  memory.add("the last layer's for backward", {2, plan.B, plan.L, plan.E});
}

float* TransformerEncoderLayer::place_kept(const detail::EncoderPlan& plan, std::uint32_t index, const detail::KeptEncoder& stack,
                                           const detail::PositionBias& position_bias, detail::KeptLayer& kept, float* to) const {
  const std::size_t size = size_of(plan.B * plan.L, plan.E), hidden = size_of(plan.B * plan.L, options_.dim_feedforward);
  const auto take = [&](std::size_t count) { return std::exchange(to, to + count); };
  kept.x = take(size);
  kept.attn_residual = take(size);
  if (!options_.norm_first) kept.ff_residual = take(size);
  if (variant_.post_norms) {
    kept.attention_output = take(size);
    kept.ff_output = take(size);
  }
  kept.linear1 = take(hidden);
  if (options_.gated) kept.linear_gate = take(hidden);
  kept.attention.dropout = detail::dropout_at(stack.random, options_.dropout, detail::DropoutSite::attention_weights, index);
  kept.attention.position_bias = position_bias;
  if (position_bias.relative != nullptr) kept.attention.position_bias.relative += index;
  to = self_attn_.place_kept(plan.attention.sizes, kept.attention, to);
  if (plan.patch.layer == index && plan.patch.merged != nullptr) kept.attention.patch.values = kept.attention.merged;
  return to;
}

void TransformerEncoderLayer::keep(const detail::EncoderPlan& plan, const detail::KeptLayer& kept, detail::LayerBuffers& buffers,
                                   detail::KeptPlaces& places) const {
  const std::size_t size = size_of(plan.B * plan.L, plan.E), hidden = size_of(plan.B * plan.L, options_.dim_feedforward);
  const auto place = [&](TraceName name) -> float*& { return buffers.trace[static_cast<std::size_t>(name)]; };
  self_attn_.keep(plan.attention.sizes, kept.attention, buffers.trace, places);
  places.keep(place(TraceName::attn_residual), kept.attn_residual, size);
  if (kept.ff_residual != nullptr) places.keep(place(TraceName::ff_residual), kept.ff_residual, size);
  if (variant_.post_norms) {
    places.keep(place(TraceName::output), kept.attention_output, size);
    places.keep(place(TraceName::ff_output), kept.ff_output, size);
  }
  places.keep(buffers.linear1, kept.linear1, hidden);
  if (kept.linear_gate != nullptr) places.keep(buffers.linear_gate, kept.linear_gate, hidden);
}

void TransformerEncoderLayer::run_for_backward(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                                               const detail::EncoderBuffers& buffers) const {
  auto kept = std::make_shared<detail::KeptEncoder>(plan, random);
  kept->numbers = AlignedFloats(kept_size(plan));
  kept->layers.resize(1);
  place_kept(plan, 0, *kept, {}, kept->layers[0], kept->numbers.data());
  detail::EncoderBuffers with_kept = buffers;
  detail::KeptPlaces places;
  with_kept.layers.resize(1);
  keep(plan, kept->layers[0], with_kept.layers[0], places);
  detail::copy_rows(x, kept->layers[0].x);
  run(plan, {kept->layers[0].x, x.shape}, random, with_kept);
  places.copy();
  share_gradients()->kept = std::move(kept);
}

detail::EncoderBackwardPlan TransformerEncoderLayer::plan_backward(const TensorView& grad, const EncoderBackwardOptions& options) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderLayerBackwardOp);
  if (grad.shape != kept.x) detail::fail(ErrorCode::shape, kTransformerEncoderLayerBackwardOp, "grad", {kept.x}, {grad.shape});
  MemoryEstimate memory(kTransformerEncoderLayerBackwardOp);
  detail::EncoderBackwardPlan plan = plan_backward(kTransformerEncoderLayerBackwardOp, kept, options, parameter_shapes(), memory);
  memory.check();
  return plan;
}

detail::EncoderBackwardPlan TransformerEncoderLayer::plan_backward(std::string_view op, const detail::KeptEncoder& kept,
                                                                   const EncoderBackwardOptions& options,
                                                                   const std::map<std::string, Shape>& parameters, MemoryEstimate& memory) const {
  // The plan of a forward of the same size has the traces, and its work space is part of a backward's.
  const detail::EncoderPlan forward =
      this->plan(op, static_cast<std::int64_t>(kept.layers.size()), {nullptr, kept.x}, {.trace = options.trace}, {}, memory);
  const detail::EncoderBackwardPlan plan{.x = kept.x,
                                         .layers = forward.layers,
                                         .has_trace = forward.has_trace,
                                         .names = forward.names,
                                         .traced = forward.traced,
                                         .trace_shapes = forward.trace_shapes};
  for (const auto& [name, shape] : parameters) memory.add(name, shape);
  const std::int64_t E = kept.E, F = options_.dim_feedforward;
  memory.add("gradients between the parts", {5 + (variant_.parallel ? 1 : 0) + (variant_.post_norms ? 2 : 0), kept.B, kept.L, E});
  memory.add("the feed-forward's hidden layer and its gradients", {options_.gated ? 3 : 2, kept.B, kept.L, F});
  // A product of two arrays of rows packs one, transposes the other, and may need a copy with non-finite rows zeroed.
  memory.add("work space of products", {kept.B, kept.L, 2 * (E + F + 32)});
  memory.add("a weight, packed", {E + 32, F + 32});
  self_attn_.add_backward_memory(kept.call.spec, kept.call.sizes, memory);
  return plan;
}

void TransformerEncoderLayer::run_backward(const TensorView& grad, const detail::EncoderGradientBuffers& to) {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderLayerBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.room(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  detail::copy_rows(grad, to.grad_x);
  backward(kept, 0, to.grad_x, "", gradients, to, scratch);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

void TransformerEncoderLayer::backward(const detail::KeptEncoder& stack, std::uint32_t index, float* grad, const std::string& prefix,
                                       detail::Gradients& gradients, const detail::EncoderGradientBuffers& to, detail::Scratch& scratch) const {
  const detail::FloatEnvironment environment;
  const detail::KeptLayer& kept = stack.layers[index];
  const std::int64_t rows = stack.B * stack.L;
  const auto E = static_cast<std::size_t>(stack.E), F = static_cast<std::size_t>(options_.dim_feedforward);
  const std::size_t size = size_of(rows, stack.E), hidden_size = size_of(rows, options_.dim_feedforward);
  const kernels::KernelTable& kernel = kernels::best();
  const kernels::BackwardTable& backward_kernel = kernels::best_backward();
  const detail::Scratch::Frame frame(scratch);

  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    float* const trace = to.traces.empty() ? nullptr : to.traces[index][static_cast<std::size_t>(name)];
    if (trace != nullptr) std::copy_n(from, count, trace);
  };
  // Costs about ten multiply-adds per value.
  const auto each_row = [&](std::size_t width, const auto& change) {
    const auto count = static_cast<std::size_t>(rows);
    const double cost = 10.0 * static_cast<double>(count) * static_cast<double>(width);
    parallel::run(count, parallel::workers_for(count, cost), [&](std::size_t row, unsigned) noexcept { change(row); });
  };
  const auto dropout = [&](detail::DropoutSite site) { return detail::dropout_at(stack.random, options_.dropout, site, index); };
  /// Returns the gradient of the input of a dropout, rows of E; of_dropped itself if the dropout is inactive.
  const auto before_dropout = [&](detail::DropoutSite place, const float* of_dropped) {
    const detail::Dropout site = dropout(place);
    if (!site.active()) return of_dropped;
    float* const result = scratch.take(size);
    std::copy_n(of_dropped, size, result);
    detail::drop_rows(site, result, rows, stack.L, stack.E);
    return static_cast<const float*>(result);
  };
  /// Returns the gradient of the input of a post norm; of_normed itself without one.
  const auto before_norm = [&](const detail::Norm& norm, const float* of_normed, const float* x, const char* name) {
    if (norm.is_identity()) return of_normed;
    float* const result = scratch.take(size);
    norm.backward(of_normed, x, rows, result, prefix + name, gradients, scratch);
    return static_cast<const float*>(result);
  };
  const auto add_to_grad = [&](const float* more) {
    each_row(E, [&](std::size_t row) noexcept { kernel.add_row(grad + row * E, more + row * E, grad + row * E, E); });
  };

  // y = norm2(ff_residual), or ff_residual itself if norm_first
  if (!options_.norm_first) {
    copy(TraceName::norm2, grad, size);
    norm2_.backward(grad, kept.ff_residual, rows, grad, prefix + "norm2.", gradients, scratch);
  }
  copy(TraceName::ff_residual, grad, size);

  const float* const ff_input = variant_.parallel ? kept.x : kept.attn_residual;  // before its norm

  // ff_residual = input of the feed-forward part + dropout(linear2(dropout(ff_hidden)))
  float* const of_part = scratch.take(size);
  {
    const detail::Scratch::Frame of_feed_forward(scratch);
    const float* const of_dropped = before_dropout(detail::DropoutSite::feed_forward_output, grad);
    const float* const of_output = before_norm(post_norm2_, of_dropped, kept.ff_output, "post_norm2.");
    copy(TraceName::ff_output, of_output, size);
    float* const hidden = scratch.take(hidden_size);
    const detail::Dropout drop_hidden = dropout(detail::DropoutSite::hidden);
    each_row(F, [&](std::size_t row) noexcept {
      const std::size_t at = row * F;
      float* const values = hidden + at;
      kernel.activation_row(options_.activation, (options_.gated ? kept.linear_gate : kept.linear1) + at, values, F);
      if (options_.gated) kernel.multiply_row(values, kept.linear1 + at, values, F);
    });
    detail::drop_rows(drop_hidden, hidden, rows, stack.L, options_.dim_feedforward);
    float* const of_hidden = scratch.take(hidden_size);
    linear2_.backward(of_output, hidden, rows, of_hidden, prefix + "linear2.", gradients, scratch);

    float* const of_gate = options_.gated ? scratch.take(hidden_size) : nullptr;
    detail::drop_rows(drop_hidden, of_hidden, rows, stack.L, options_.dim_feedforward);
    copy(TraceName::ff_hidden, of_hidden, hidden_size);
    each_row(F, [&](std::size_t row) noexcept {
      const std::size_t at = row * F;
      float *const values = of_hidden + at, *const product = hidden + at;  // product reuses hidden
      if (!detail::has_gradient(values, F)) {                              // the row may hold any values
        std::fill_n(values, F, 0.0F);
        if (options_.gated) std::fill_n(of_gate + at, F, 0.0F);
      } else if (options_.gated) {
        kernel.activation_row(options_.activation, kept.linear_gate + at, of_gate + at, F);
        kernel.multiply_row(values, kept.linear1 + at, product, F);
        kernel.multiply_row(values, of_gate + at, values, F);
        backward_kernel.activation_backward_row(options_.activation, product, kept.linear_gate + at, of_gate + at, F);
      } else {
        backward_kernel.activation_backward_row(options_.activation, values, kept.linear1 + at, values, F);
      }
    });

    float* const input = scratch.take(size);
    (options_.norm_first ? norm2_ : norm1_).forward(ff_input, rows, input);
    linear1_.backward(of_hidden, input, rows, of_part, prefix + "linear1.", gradients, scratch);
    if (options_.gated) {
      float* const more = scratch.take(size);
      linear_gate_.backward(of_gate, input, rows, more, prefix + "linear_gate.", gradients, scratch);
      kernel.add_row(of_part, more, of_part, size);
    }
  }

  // The input is norm1(attn_residual) or, if norm_first, attn_residual, which reaches linear1 through norm2. A parallel one is x.
  float* of_x = nullptr;
  if (options_.norm_first) {
    copy(TraceName::norm2, of_part, size);
    norm2_.backward(of_part, ff_input, rows, of_part, prefix + "norm2.", gradients, scratch);
    if (variant_.parallel)
      std::copy_n(of_part, size, of_x = scratch.take(size));
    else
      add_to_grad(of_part);
  } else {
    add_to_grad(of_part);
    copy(TraceName::norm1, grad, size);
    norm1_.backward(grad, kept.attn_residual, rows, grad, prefix + "norm1.", gradients, scratch);
  }
  copy(TraceName::attn_residual, grad, size);

  // attn_residual = x + dropout(attention(x or norm1(x)))
  const float* const of_dropped = before_dropout(detail::DropoutSite::attention_output, grad);
  const float* const of_output = before_norm(post_norm1_, of_dropped, kept.attention_output, "post_norm1.");
  detail::KeptAttention attention = kept.attention;
  attention.query = kept.x;
  if (options_.norm_first) {
    float* const input = scratch.take(size);
    norm1_.forward(kept.x, rows, input);
    attention.query = input;
  }
  attention.key = attention.value = attention.query;
  detail::MultiHeadAttentionGradientBuffers of_attention{.grad_query = of_part, .position_bias = to.position_bias, .relative = to.relative};
  if (!to.traces.empty()) of_attention.trace = to.traces[index];
  self_attn_.backward(self_attn_.of_layer(stack.call.spec), stack.call.sizes, attention, of_output, prefix + "self_attn.", gradients, of_attention,
                      scratch);
  if (options_.norm_first) {
    copy(TraceName::norm1, of_part, size);
    norm1_.backward(of_part, kept.x, rows, of_part, prefix + "norm1.", gradients, scratch);
  }
  add_to_grad(of_part);
  if (of_x != nullptr) add_to_grad(of_x);
}

}  // namespace attn
