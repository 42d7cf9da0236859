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

std::uint64_t TransformerEncoderLayer::kept_size(const detail::EncoderPlan& plan) const {
  const std::int64_t widths =
      ((options_.norm_first ? 2 : 3) + (variant_.post_norms ? 2 : 0)) * plan.E + (options_.gated ? 2 : 1) * options_.dim_feedforward;
  return size_of(plan.B * plan.L, widths) + self_attn_.kept_size(plan.attention.sizes);
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
  const detail::PatchedValues patched = plan.patch.of(index);
  kept.is_patched = patched.hidden_state != nullptr;
  if (patched.merged != nullptr) kept.attention.patch.values = kept.attention.merged;
  return to;
}

void TransformerEncoderLayer::keep(const detail::EncoderPlan& plan, const detail::KeptLayer& kept, detail::LayerBuffers& buffers,
                                   detail::CaptureBuffers& places) const {
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
  detail::CaptureBuffers places;
  with_kept.layers.resize(1);
  keep(plan, kept->layers[0], with_kept.layers[0], places);
  detail::copy_rows(x, kept->layers[0].x);
  run(plan, {kept->layers[0].x, x.shape}, random, with_kept);
  places.copy();
  if (!detail::counts()) share_gradients()->kept = std::move(kept);
}

detail::EncoderBackwardPlan TransformerEncoderLayer::plan_backward(const TensorView& grad, const EncoderBackwardOptions& options) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderLayerBackwardOp);
  if (grad.shape != kept.x) detail::fail(ErrorCode::shape, kTransformerEncoderLayerBackwardOp, "grad", {kept.x}, {grad.shape});
  detail::EncoderBackwardPlan plan = plan_backward(kTransformerEncoderLayerBackwardOp, kept, options);
  detail::check_memory(kTransformerEncoderLayerBackwardOp, [&] { gradients_of(grad, detail::counted_buffers(plan)); });
  return plan;
}

detail::EncoderGradientBuffers detail::counted_buffers(const EncoderBackwardPlan& plan) {
  EncoderGradientBuffers buffers{.grad_x = counted(plan.x, "grad_x")};
  if (plan.has_trace) buffers.traces.resize(static_cast<std::size_t>(plan.layers));
  for_each_trace(plan,
                 [&](std::size_t layer, std::size_t name) { buffers.traces[layer][name] = counted(plan.trace_shapes[name], kTraceNames[name]); });
  return buffers;
}

detail::EncoderBackwardPlan TransformerEncoderLayer::plan_backward(std::string_view op, const detail::KeptEncoder& kept,
                                                                   const EncoderBackwardOptions& options) const {
  // A forward's plan has the traces.
  const detail::EncoderPlan forward = this->plan(op, static_cast<std::int64_t>(kept.layers.size()), {nullptr, kept.x}, {.trace = options.trace}, {});
  return {.x = kept.x,
          .layers = forward.layers,
          .has_trace = forward.has_trace,
          .names = forward.names,
          .traced = forward.traced,
          .trace_shapes = forward.trace_shapes};
}

void TransformerEncoderLayer::run_backward(const TensorView& grad, const detail::EncoderGradientBuffers& to) {
  detail::Gradients gradients = gradients_of(grad, to);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

detail::Gradients TransformerEncoderLayer::gradients_of(const TensorView& grad, const detail::EncoderGradientBuffers& to) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderLayerBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.staging(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  detail::copy_rows(grad, to.grad_x);
  backward(kept, 0, to.grad_x, "", gradients, to, scratch);
  return gradients;
}

/// `grad` changes from the gradient of the output to that of x.
class TransformerEncoderLayer::Backward {
 public:
  Backward(const TransformerEncoderLayer& layer, const detail::KeptEncoder& stack, std::uint32_t index, float* grad, const std::string& prefix,
           detail::Gradients& gradients, const detail::EncoderGradientBuffers& to, detail::Scratch& scratch)
      : layer_(layer),
        stack_(stack),
        kept_(stack.layers[index]),
        index_(index),
        grad_(grad),
        prefix_(prefix),
        gradients_(gradients),
        to_(to),
        scratch_(scratch),
        rows_(stack.B * stack.L),
        E_(static_cast<std::size_t>(stack.E)),
        F_(static_cast<std::size_t>(layer.options_.dim_feedforward)),
        size_(size_of(rows_, stack.E)),
        hidden_size_(size_of(rows_, layer.options_.dim_feedforward)) {}

  void run() {
    // y = norm2(ff_residual); ff_residual if norm_first
    if (!options_.norm_first) {
      copy(TraceName::norm2, grad_, size_);
      norm_backward(layer_.norm2_, grad_, kept_.ff_residual, "norm2.");
    }
    copy(TraceName::ff_residual, grad_, size_);
    float* const of_part = scratch_.take(size_);
    feed_forward_backward(of_part);
    const float* const of_x = feed_forward_input_backward(of_part);
    copy(TraceName::attn_residual, grad_, size_);
    attention_backward(of_part);
    if (of_x != nullptr) add_to_grad(of_x);
  }

 private:
  void copy(TraceName name, const float* from, std::size_t count) const {
    float* const trace = to_.traces.empty() ? nullptr : to_.traces[index_][static_cast<std::size_t>(name)];
    if (trace != nullptr) detail::copy_values(from, count, trace);
  }
  /// About ten multiply-adds per value.
  template <class Change>
  void each_row(std::size_t width, const Change& change) const {
    const auto count = static_cast<std::size_t>(rows_);
    const double cost = 10.0 * static_cast<double>(count) * static_cast<double>(width);
    parallel::run(count, parallel::workers_for(count, cost), [&](std::size_t row, unsigned) noexcept { change(row); });
  }
  void add_to_grad(const float* more) const {
    each_row(E_, [&](std::size_t row) noexcept { kernel_.add_row(grad_ + row * E_, more + row * E_, grad_ + row * E_, E_); });
  }
  detail::Dropout dropout(detail::DropoutSite site) const { return detail::dropout_at(stack_.random, options_.dropout, site, index_); }
  void norm_backward(const detail::Norm& norm, float* grad, const float* x, const char* name) {
    norm.backward(grad, x, rows_, grad, prefix_ + name, gradients_, scratch_);
  }

  const float* before_dropout(detail::DropoutSite place, const float* of_dropped);
  const float* before_norm(const detail::Norm& norm, const float* of_normed, const float* x, const char* name);
  void feed_forward_backward(float* of_input);
  void activate(float* hidden) const;
  void activation_backward(float* of_hidden, float* of_gate, float* product) const;
  float* feed_forward_input_backward(float* of_part);
  void attention_backward(float* of_input);

  const TransformerEncoderLayer& layer_;
  const TransformerEncoderLayerOptions& options_ = layer_.options_;
  const detail::KeptEncoder& stack_;
  const detail::KeptLayer& kept_;
  const std::uint32_t index_;
  float* const grad_;  // (B·L,E)
  const std::string& prefix_;
  detail::Gradients& gradients_;
  const detail::EncoderGradientBuffers& to_;
  detail::Scratch& scratch_;
  const std::int64_t rows_;
  const std::size_t E_, F_, size_, hidden_size_;  // of (B·L,E) and (B·L,F)
  const kernels::KernelTable& kernel_ = kernels::best();
  const kernels::BackwardTable& backward_kernel_ = kernels::best_backward();
  /// Before its norm.
  const float* const ff_input_ = layer_.variant_.parallel ? kept_.x : kept_.attn_residual;
};

/// Returns of_dropped itself if the dropout is inactive.
const float* TransformerEncoderLayer::Backward::before_dropout(detail::DropoutSite place, const float* of_dropped) {
  const detail::Dropout site = dropout(place);
  if (!site.active()) return of_dropped;
  float* const result = scratch_.take(size_);
  detail::copy_values(of_dropped, size_, result);
  detail::drop_rows(site, result, rows_, stack_.L, stack_.E);
  return result;
}

const float* TransformerEncoderLayer::Backward::before_norm(const detail::Norm& norm, const float* of_normed, const float* x, const char* name) {
  if (norm.is_identity()) return of_normed;
  float* const result = scratch_.take(size_);
  norm.backward(of_normed, x, rows_, result, prefix_ + name, gradients_, scratch_);
  return result;
}

/// ff_residual = input + dropout(linear2(dropout(ff_hidden))); of_input (B·L,E) is the gradient of the input of linear1.
void TransformerEncoderLayer::Backward::feed_forward_backward(float* of_input) {
  const detail::Scratch::Frame frame(scratch_);
  const float* const of_dropped = before_dropout(detail::DropoutSite::feed_forward_output, grad_);
  const float* const of_output = before_norm(layer_.post_norm2_, of_dropped, kept_.ff_output, "post_norm2.");
  copy(TraceName::ff_output, of_output, size_);
  float* const hidden = scratch_.take(hidden_size_);
  const detail::Dropout drop_hidden = dropout(detail::DropoutSite::hidden);
  activate(hidden);
  detail::drop_rows(drop_hidden, hidden, rows_, stack_.L, options_.dim_feedforward);
  float* const of_hidden = scratch_.take(hidden_size_);
  layer_.linear2_.backward(of_output, hidden, rows_, of_hidden, prefix_ + "linear2.", gradients_, scratch_);

  float* const of_gate = options_.gated ? scratch_.take(hidden_size_) : nullptr;
  detail::drop_rows(drop_hidden, of_hidden, rows_, stack_.L, options_.dim_feedforward);
  copy(TraceName::ff_hidden, of_hidden, hidden_size_);
  activation_backward(of_hidden, of_gate, hidden);

  float* const input = scratch_.take(size_);
  (options_.norm_first ? layer_.norm2_ : layer_.norm1_).forward(ff_input_, rows_, input);
  layer_.linear1_.backward(of_hidden, input, rows_, of_input, prefix_ + "linear1.", gradients_, scratch_);
  if (options_.gated) {
    float* const more = scratch_.take(size_);
    layer_.linear_gate_.backward(of_gate, input, rows_, more, prefix_ + "linear_gate.", gradients_, scratch_);
    if (!detail::counts()) kernel_.add_row(of_input, more, of_input, size_);
  }
}

/// Recomputes ff_hidden (B·L,F) before its dropout.
void TransformerEncoderLayer::Backward::activate(float* hidden) const {
  each_row(F_, [&](std::size_t row) noexcept {
    const std::size_t at = row * F_;
    float* const values = hidden + at;
    kernel_.activation_row(options_.activation, (options_.gated ? kept_.linear_gate : kept_.linear1) + at, values, F_);
    if (options_.gated) kernel_.multiply_row(values, kept_.linear1 + at, values, F_);
  });
}

/// of_hidden, of ff_hidden, becomes that of linear1; of_gate gets that of linear_gate. `product` is (B·L,F).
void TransformerEncoderLayer::Backward::activation_backward(float* of_hidden, float* of_gate, float* product) const {
  each_row(F_, [&](std::size_t row) noexcept {
    const std::size_t at = row * F_;
    float* const values = of_hidden + at;
    if (!detail::has_gradient(values, F_)) {  // the row may hold any values
      std::fill_n(values, F_, 0.0F);
      if (options_.gated) std::fill_n(of_gate + at, F_, 0.0F);
    } else if (options_.gated) {
      kernel_.activation_row(options_.activation, kept_.linear_gate + at, of_gate + at, F_);
      kernel_.multiply_row(values, kept_.linear1 + at, product + at, F_);
      kernel_.multiply_row(values, of_gate + at, values, F_);
      backward_kernel_.activation_backward_row(options_.activation, product + at, kept_.linear_gate + at, of_gate + at, F_);
    } else {
      backward_kernel_.activation_backward_row(options_.activation, values, kept_.linear1 + at, values, F_);
    }
  });
}

/// Returns the gradient of x, to be added at the end, if the layer is parallel; else null.
float* TransformerEncoderLayer::Backward::feed_forward_input_backward(float* of_part) {
  if (options_.norm_first) {
    copy(TraceName::norm2, of_part, size_);
    norm_backward(layer_.norm2_, of_part, ff_input_, "norm2.");
    if (layer_.variant_.parallel) {
      float* const of_x = scratch_.take(size_);
      detail::copy_values(of_part, size_, of_x);
      return of_x;
    }
    add_to_grad(of_part);
  } else {
    add_to_grad(of_part);
    copy(TraceName::norm1, grad_, size_);
    norm_backward(layer_.norm1_, grad_, kept_.attn_residual, "norm1.");
  }
  return nullptr;
}

/// attn_residual = x + dropout(attention(x or norm1(x))). Overwrites of_input (B·L,E).
void TransformerEncoderLayer::Backward::attention_backward(float* of_input) {
  const float* const of_dropped = before_dropout(detail::DropoutSite::attention_output, grad_);
  const float* const of_output = before_norm(layer_.post_norm1_, of_dropped, kept_.attention_output, "post_norm1.");
  detail::KeptAttention attention = kept_.attention;
  attention.query = kept_.x;
  if (options_.norm_first) {
    float* const input = scratch_.take(size_);
    layer_.norm1_.forward(kept_.x, rows_, input);
    attention.query = input;
  }
  attention.key = attention.value = attention.query;
  detail::MultiHeadAttentionGradientBuffers of_attention{.grad_query = of_input, .position_bias = to_.position_bias, .relative = to_.relative};
  if (!to_.traces.empty()) of_attention.trace = to_.traces[index_];
  const MultiHeadAttention& self_attn = layer_.self_attn_;
  self_attn.backward(self_attn.of_layer(stack_.call.spec), stack_.call.sizes, attention, of_output, prefix_ + "self_attn.", gradients_, of_attention,
                     scratch_);
  if (options_.norm_first) {
    copy(TraceName::norm1, of_input, size_);
    norm_backward(layer_.norm1_, of_input, kept_.x, "norm1.");
  }
  add_to_grad(of_input);
}

void TransformerEncoderLayer::backward(const detail::KeptEncoder& stack, std::uint32_t index, float* grad, const std::string& prefix,
                                       detail::Gradients& gradients, const detail::EncoderGradientBuffers& to, detail::Scratch& scratch) const {
  const detail::FloatEnvironment environment;
  const detail::Scratch::Frame frame(scratch);
  Backward(*this, stack, index, grad, prefix, gradients, to, scratch).run();
}

}  // namespace attn
