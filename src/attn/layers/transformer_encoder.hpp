#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"

namespace attn {

/// A stack of num_layers encoder layers, with a norm after the last one if final_norm is set (Vaswani et al. 2017;
/// torch.nn.TransformerEncoder, batch first).
///
/// State, torch's names: layers.N.* as TransformerEncoderLayer, norm.* if final_norm.
/// @code
/// attn::TransformerEncoder encoder({.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16}, .num_layers = 2});
/// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 8});
/// auto result = encoder.forward(x, {.output_hidden_states = true});
/// std::cout << result.hidden_states->size();  // 3
/// @endcode
class TransformerEncoder : public Module {
 public:
  /// Draws the weights of every layer as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads or layers do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  ///
  /// @code
  /// attn::TransformerEncoder encoder({.layer = {.d_model = 4, .nhead = 2}, .num_layers = 2, .final_norm = true});
  /// std::cout << encoder.parameter_shapes().count("norm.weight");  // 1
  /// @endcode
  explicit TransformerEncoder(const TransformerEncoderOptions& options);

  /// Runs all layers.
  ///
  /// @param x        (B,L,E), or (L,E): then no input or result has a batch dimension, as in torch
  /// @param options  masks, causality, and which intermediate results to return
  /// @return output of the shape of x; attentions, hidden_states and trace by layer on request
  /// @throws SHAPE if widths disagree
  /// @throws MASK if a mask does not fit or holds NaN or +infinity
  /// @throws OUT_OF_RANGE if a traced layer does not exist
  /// @throws ARGUMENT if `trace` has a name that the computation does not have
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// attn::TransformerEncoder encoder({.layer = {.d_model = 4, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 4});
  /// xt::xtensor<bool, 2> tokens{{true, true, false}};
  /// auto result = encoder.forward(x, {.key_padding_mask = attn::Mask::attend(tokens), .output_attentions = true});
  /// std::cout << result.attentions->at(1)(0, 0, 0, 0) << ' ' << result.attentions->at(1)(0, 0, 0, 2);  // 0.5 0
  /// @endcode
  template <TensorLike X>
  auto forward(const X& x, const EncoderForwardOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<X>;
    static_assert(N == 2 || N == 3, "x is (B,L,E) or (L,E)");
    const detail::Input view(x, "TransformerEncoder", "x");
    const detail::EncoderPlan plan = this->plan(view, options);
    return detail::run_encoder_plan<N>(plan, [&](const detail::EncoderBuffers& buffers) { run(plan, view, buffers); });
  }

  /// Computes the gradients of all layers and the final norm, as in TransformerEncoderLayer::backward.
  ///
  /// @see torch.autograd of torch.nn.TransformerEncoder
  ///
  /// @code
  /// attn::TransformerEncoder encoder({.layer = {.d_model = 4, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 4});
  /// encoder.forward(x, {.for_backward = true});
  /// encoder.backward(xt::xtensor<float, 3>(xt::ones<float>({1, 3, 4})));
  /// std::cout << encoder.gradients().size() << ' ' << encoder.parameter_shapes().size();  // 24 24
  /// @endcode
  template <TensorLike G>
  auto backward(const G& grad, const EncoderBackwardOptions& options = {}) {
    constexpr std::size_t N = kRankOf<G>;
    static_assert(N == 2 || N == 3, "grad is (B,L,E) or (L,E)");
    const detail::Input view(grad, "TransformerEncoder", "grad");
    const detail::EncoderBackwardPlan plan = plan_backward(view, options);
    return detail::run_encoder_backward_plan<N>(plan, [&](const detail::EncoderGradientBuffers& to) { run_backward(view, to); });
  }

  /// Checks a forward whose results go to the caller's memory.
  ///
  /// @param x        as in forward()
  /// @param options  as in forward(); the plan refers to its masks
  /// @return the plan for run(), with the shapes of the results: output and hidden states, attention.weights,
  /// trace_shapes
  /// @throws SHAPE, MASK, CONFIG, OUT_OF_RANGE, ARGUMENT, MEMORY as forward()
  ///
  /// @code
  /// attn::TransformerEncoder encoder({.layer = {.d_model = 4, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2});
  /// const std::vector<float> numbers(3 * 4, 1);
  /// std::vector<float> output(3 * 4), grad_x(3 * 4);
  /// const attn::TensorView x(numbers.data(), {3, 4}), grad(output.data(), {3, 4});
  /// const auto plan = encoder.plan(x, {.for_backward = true});
  /// encoder.run(plan, x, {.output = output.data()});
  /// encoder.plan_backward(grad, {});
  /// encoder.run_backward(grad, {.grad_x = grad_x.data()});
  /// std::cout << to_string(plan.output) << ' ' << encoder.gradients().size();  // (3,4) 24
  /// @endcode
  detail::EncoderPlan plan(const TensorView& x, const EncoderForwardOptions& options) const;
  /// Computes a forward that plan() has checked; plan() has an example.
  ///
  /// @param plan     result of plan() for the same x
  /// @param x        the one given to plan()
  /// @param buffers  memory for output and for each requested result, row-major: hidden_states;
  /// layers, with attentions and trace by the number of its TraceName
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers) const;
  /// Checks a backward whose results go to the caller's memory; plan() has an example.
  ///
  /// @param grad     gradient of the output of the last run() that had for_backward or ran in train mode
  /// @param options  as in backward()
  /// @return the shapes of the results: x, trace_shapes
  /// @throws UNSUPPORTED, ARGUMENT, SHAPE, OUT_OF_RANGE, MEMORY as backward()
  detail::EncoderBackwardPlan plan_backward(const TensorView& grad, const EncoderBackwardOptions& options) const;
  /// Computes a backward that plan_backward() has checked, and adds the gradients of the parameters to gradients(); plan()
  /// has an example.
  ///
  /// @param grad  the one given to plan_backward()
  /// @param to    memory for grad_x, and in traces by layer for requested traces
  void run_backward(const TensorView& grad, const detail::EncoderGradientBuffers& to);

  bool is_quantized() const override { return layers_.front().is_quantized(); }

 private:
  friend class detail::ParameterVisitor;
  friend class TransformerClassifier;
  friend class detail::Stack;

  TransformerEncoder(detail::Uninitialized, std::string_view op, const TransformerEncoderOptions& options);
  void visit_parameters(detail::ParameterVisitor& visitor) override;
  /// For layers of checkpoints that differ from torch's.
  void set_attention_defaults(std::size_t layer, detail::AttentionDefaults defaults);
  void leave_out_norm1(std::size_t layer);
  /// Must be called before weights are allocated.
  void set_variant(const detail::LayerVariant& variant);
  /// Appends a layer to the order of execution, in which it may occur more than once. Without calls, each layer runs once.
  void add_use(std::size_t layer) { uses_.push_back(layer); }
  /// Number of places in the order of execution, and the layer at a place.
  std::size_t depth() const { return uses_.empty() ? layers_.size() : uses_.size(); }
  std::size_t layer_at(std::size_t place) const { return uses_.empty() ? place : uses_[place]; }

  /// plan() for an enclosing layer or model. runs as in AttentionSpec.
  detail::EncoderPlan plan(std::string_view op, const TensorView& x, const EncoderForwardOptions& options,
                           std::span<const detail::SequenceGroup> runs, KeyValueCache* cache = nullptr) const;
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random, const detail::PositionBias& position_bias,
           const detail::EncoderBuffers& buffers) const;
  /// As run(), but also saves and returns the data for backward().
  std::shared_ptr<detail::KeptEncoder> run_and_keep(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                                                    const detail::PositionBias& position_bias, const detail::EncoderBuffers& buffers) const;
  /// Replaces the gradient of the output in to.grad_x by that of x. Writes the gradients of parameters to `gradients` if
  /// it has room for them.
  void backward(const detail::KeptEncoder& kept, const std::string& prefix, detail::Gradients& gradients, const detail::EncoderGradientBuffers& to,
                detail::Scratch& scratch) const;

  /// run_backward() without its effect on the stack.
  detail::Gradients gradients_of(const TensorView& grad, const detail::EncoderGradientBuffers& to) const;

  TransformerEncoderOptions options_;
  std::vector<TransformerEncoderLayer> layers_;
  std::vector<std::size_t> uses_;  // layers by place; empty: each once
  detail::Norm norm_;
};

}  // namespace attn
