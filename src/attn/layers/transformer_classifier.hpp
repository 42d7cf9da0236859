#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/transformer_encoder.hpp"

namespace attn {

/// Result of TransformerClassifier::forward(). N: rank of input and output.
template <std::size_t N>
struct ClassifierResult : EncoderResult<N> {
  TensorOf<kAnyBeside<N>> logits;  ///< (B,C), without pooling (B,L,C)
};

/// A classifier: an encoder with torch.nn.Linear on top, logits = pool(encoder(x)) Wᵀ + b.
///
/// State, torch's names: encoder.* as TransformerEncoder, classifier.weight (C,E), classifier.bias (C).
/// @code
/// const attn::TransformerEncoderLayerOptions layer{.d_model = 8, .nhead = 2, .dim_feedforward = 16};
/// attn::TransformerClassifier model(
///     {.encoder = {.layer = layer, .num_layers = 1}, .num_classes = 3, .pooling = attn::Pooling::mean});
/// xt::xtensor<float, 3> x = xt::ones<float>({2, 5, 8});
/// std::cout << model.forward(x).logits.shape(1);  // 3
/// @endcode
class TransformerClassifier : public Module {
 public:
  /// Draws weights as torch's constructors do, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads, layers or classes do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  ///
  /// @code
  /// const attn::TransformerEncoderLayerOptions layer{.d_model = 4, .nhead = 2};
  /// attn::TransformerClassifier model({.encoder = {.layer = layer, .num_layers = 1}, .num_classes = 3});
  /// std::cout << to_string(model.parameter_shapes().at("classifier.weight"));  // (3,4)
  /// @endcode
  explicit TransformerClassifier(const TransformerClassifierOptions& options);

  /// Computes logits. Mean and max pooling ignore positions that key_padding_mask marks as padding; fully_masked
  /// determines the result for a sequence that is all padding.
  ///
  /// @param x        (B,L,E), or (L,E): then no input or result has a batch dimension
  /// @param options  as TransformerEncoder
  /// @return output (B,L,E), logits (B,C), without pooling (B,L,C); the rest as TransformerEncoder
  /// @throws SHAPE, MASK, OUT_OF_RANGE, MEMORY as TransformerEncoder
  ///
  /// @code
  /// const attn::TransformerEncoderLayerOptions layer{.d_model = 4, .nhead = 2, .dim_feedforward = 8};
  /// attn::TransformerClassifier model({.encoder = {.layer = layer, .num_layers = 1}, .num_classes = 3});
  /// xt::xtensor<float, 3> x = xt::ones<float>({2, 5, 4});
  /// std::cout << to_string(attn::to_shape(model.forward(x).logits.shape()));  // (2,5,3)
  /// @endcode
  template <TensorLike X>
  auto forward(const X& x, const EncoderForwardOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<X>;
    static_assert(N == 2 || N == 3, "x is (B,L,E) or (L,E)");
    const detail::Input view(x, "TransformerClassifier", "x");
    const detail::EncoderPlan plan = this->plan(view, options);
    ClassifierResult<N> result{{}, detail::empty<kAnyBeside<N>>(logits_shape(plan))};
    static_cast<EncoderResult<N>&>(result) =
        detail::run_encoder_plan<N>(plan, [&](const detail::EncoderBuffers& buffers) { run(plan, view, buffers, result.logits.data()); });
    return result;
  }

  /// Computes gradients from those of the logits. Pooling distributes them as in torch: mean in equal shares, max to
  /// the first position with the largest value. Padding gets 0; so does a sequence that is all padding, unless
  /// fully_masked is uniform.
  ///
  /// @param grad_logits  gradient of the logits, with their shape
  /// @param options      as TransformerEncoderLayer::backward
  /// @return {grad_x, trace}; the rank of grad_x is only known at run time
  /// @throws UNSUPPORTED, ARGUMENT, SHAPE, OUT_OF_RANGE, MEMORY as TransformerEncoderLayer::backward
  ///
  /// @code
  /// const attn::TransformerEncoderLayerOptions layer{.d_model = 4, .nhead = 2, .dim_feedforward = 8};
  /// attn::TransformerClassifier model(
  ///     {.encoder = {.layer = layer, .num_layers = 1}, .num_classes = 2, .pooling = attn::Pooling::cls});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 4});
  /// xt::xtensor<float, 2> logits = model.forward(x, {.for_backward = true}).logits;
  /// model.backward(attn::cross_entropy(logits, std::vector<std::int64_t>{1}).gradient);
  /// std::cout << model.gradients().count("classifier.weight");  // 1
  /// @endcode
  template <TensorLike G>
  auto backward(const G& grad_logits, const EncoderBackwardOptions& options = {}) {
    const detail::Input view(grad_logits, "TransformerClassifier", "grad_logits");
    const detail::EncoderBackwardPlan plan = plan_backward(view, options);
    const auto run = [&](const detail::EncoderGradientBuffers& to) { run_backward(view, to); };
    return detail::run_encoder_backward_plan<kAnyBeside<sizeof(G)>>(plan, run);
  }

  /// Checks a forward whose results go to the caller's memory.
  ///
  /// @param x,options  as in TransformerEncoder::plan()
  /// @return the plan for run() and logits_shape()
  /// @throws SHAPE, MASK, CONFIG, OUT_OF_RANGE, ARGUMENT, MEMORY as TransformerEncoder::plan()
  ///
  /// @code
  /// const attn::TransformerEncoderLayerOptions layer{.d_model = 4, .nhead = 2, .dim_feedforward = 8};
  /// attn::TransformerClassifier model({.encoder = {.layer = layer, .num_layers = 1}, .num_classes = 2});
  /// const std::vector<float> numbers(3 * 4, 1);
  /// std::vector<float> output(3 * 4), logits(3 * 2), grad_x(3 * 4);
  /// const attn::TensorView x(numbers.data(), {3, 4}), grad_logits(logits.data(), {3, 2});
  /// const auto plan = model.plan(x, {.for_backward = true});
  /// model.run(plan, x, {.output = output.data()}, logits.data());
  /// model.plan_backward(grad_logits, {});
  /// model.run_backward(grad_logits, {.grad_x = grad_x.data()});
  /// std::cout << to_string(model.logits_shape(plan)) << ' ' << model.gradients().size();  // (3,2) 14
  /// @endcode
  detail::EncoderPlan plan(const TensorView& x, const EncoderForwardOptions& options) const;
  /// Returns the shape of the logits of a plan; plan() has an example.
  ///
  /// @param plan  result of plan()
  Shape logits_shape(const detail::EncoderPlan& plan) const;
  /// Computes a forward that plan() has checked; plan() has an example.
  ///
  /// @param plan,x,buffers  as in TransformerEncoder::run()
  /// @param logits          memory of logits_shape()
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers, float* logits) const;
  /// Checks a backward whose results go to the caller's memory; plan() has an example.
  ///
  /// @param grad_logits  gradient of the logits of the last run() that had for_backward or ran in train mode
  /// @param options      as in backward()
  /// @return the shapes of the results: x, trace_shapes
  /// @throws UNSUPPORTED, ARGUMENT, SHAPE, OUT_OF_RANGE, MEMORY as backward()
  detail::EncoderBackwardPlan plan_backward(const TensorView& grad_logits, const EncoderBackwardOptions& options) const;
  /// Computes a backward that plan_backward() has checked, and adds the gradients of the parameters to gradients(); plan()
  /// has an example.
  ///
  /// @param grad_logits  the one given to plan_backward()
  /// @param to           as in TransformerEncoder::run_backward()
  void run_backward(const TensorView& grad_logits, const detail::EncoderGradientBuffers& to);

  bool is_quantized() const override { return classifier_.is_quantized(); }

 private:
  friend class detail::ParameterVisitor;

  TransformerClassifier(detail::Uninitialized, const TransformerClassifierOptions& options);
  void visit_parameters(detail::ParameterVisitor& visitor) override;

  /// run_backward() without its effect on the classifier.
  detail::Gradients gradients_of(const TensorView& grad_logits, const detail::EncoderGradientBuffers& to) const;

  TransformerClassifierOptions options_;
  TransformerEncoder encoder_;
  detail::Linear classifier_;
};

}  // namespace attn
