#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/pooling.hpp"

namespace attn {

/// Options for the constructor of TransformerEncoderLayer.
struct TransformerEncoderLayerOptions {
  std::int64_t d_model = 0;                  ///< E, a multiple of nhead unless head_dim is given
  std::int64_t nhead = 0;                    ///< H
  std::int64_t dim_feedforward = 2048;       ///< F
  float dropout = 0.1F;                      ///< at the same four sites as in torch, in [0,1); in training only
  Activation activation = Activation::relu;  ///< of the feed-forward part
  float layer_norm_eps = 1e-5F;              ///< of both norms
  bool norm_first = false;                   ///< norms before attention and feed-forward instead of after the residual sums
  bool bias = true;                          ///< on all linear maps and layer norms
  NormKind norm = NormKind::layer_norm;
  bool gated = false;                                              ///< feed-forward is linear2(activation(linear_gate x) · linear1 x)  (Shazeer 2020)
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;  ///< as in MultiHeadAttentionOptions
  std::optional<std::int64_t> head_dim = std::nullopt;             ///< D, default E / H
  std::optional<RotaryOptions> rotary = std::nullopt;              ///< RoPE of queries and keys; default none
  std::optional<Window> window = std::nullopt;                     ///< keys visible to a query, as in AttentionOptions; default all
  float softcap = 0;                                               ///< as in AttentionOptions; 0: none
};

/// Options of TransformerEncoder.
struct TransformerEncoderOptions {
  TransformerEncoderLayerOptions layer = {};  ///< of every layer
  std::int64_t num_layers = 0;                ///< 1 to 10 000
  bool final_norm = false;                    ///< norm after the last layer
};

/// Options of TransformerClassifier.
struct TransformerClassifierOptions {
  TransformerEncoderOptions encoder = {};
  std::int64_t num_classes = 0;  ///< C
  Pooling pooling = Pooling::none;
};

/// One layer of the encoder of Vaswani et al. 2017, as torch.nn.TransformerEncoderLayer with batch_first. Post-norm:
/// x = norm1(x + attention(x)); x = norm2(x + ff(x)). norm_first: x += attention(norm1(x)); x += ff(norm2(x)). ff(x)
/// = linear2(activation(linear1(x))); if gated, linear2(activation(linear_gate(x)) · linear1(x)).
///
/// State, torch's names: self_attn.* (as MultiHeadAttention), linear1.*, linear2.*, linear_gate.* if gated, norm1.*,
/// norm2.*.
/// @code
/// attn::TransformerEncoderLayer layer({.d_model = 8, .nhead = 2, .dim_feedforward = 16});
/// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 8});
/// auto result = layer.forward(x, {.output_attentions = true});
/// std::cout << result.attentions->at(0).shape(3);  // 3
/// @endcode
class TransformerEncoderLayer : public Module {
 public:
  /// Draws weights as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  ///
  /// @code
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8, .gated = true});
  /// std::cout << to_string(layer.parameter_shapes().at("linear_gate.weight"));  // (8,4)
  /// @endcode
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);

  /// Runs the layer.
  ///
  /// @param x        (B,L,E), or (L,E): then no input or result has a batch dimension, as in torch
  /// @param options  masks, causality, and which intermediate results to return
  /// @return output of the shape of x; attentions, hidden_states and trace on request
  /// @throws SHAPE if widths disagree
  /// @throws MASK if a mask does not fit or holds NaN or +infinity
  /// @throws CONFIG if an option is outside its range
  /// @throws OUT_OF_RANGE if a traced layer does not exist
  /// @throws ARGUMENT if `trace` has a name that the computation does not have
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8, .norm_first = true});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 4});
  /// auto result = layer.forward(x, {.is_causal = true, .output_attentions = true});
  /// std::cout << result.attentions->at(0)(0, 0, 1, 0) << ' ' << result.attentions->at(0)(0, 0, 1, 2);  // 0.5 0
  /// @endcode
  template <TensorLike X>
  auto forward(const X& x, const EncoderForwardOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<X>;
    static_assert(N == 2 || N == 3, "x is (B,L,E) or (L,E)");
    const detail::Input view(x, "TransformerEncoderLayer", "x");
    const detail::EncoderPlan plan = this->plan(view, options);
    return detail::run_encoder_plan<N>(plan, [&](const detail::EncoderBuffers& buffers) { run(plan, view, buffers); });
  }

  /// Computes gradients of the last forward that had for_backward or ran in train mode, and adds those of the
  /// parameters to gradients(). It consumes the data that this forward saved, all of it linear in L: copies of x and
  /// masks, q, k, v, the merged heads, the sums before norms, linear1 and linear_gate. Everything else, dropout
  /// included, is recomputed to the same bits. Rows whose gradient is 0 (padding, for example) do not contribute to any
  /// gradient, whatever values they hold. Masked keys and queries without keys are treated as in
  /// scaled_dot_product_attention_backward. Results have the same bits for any number of threads.
  ///
  /// @param grad     gradient of the output, with the output's shape
  /// @param options  intermediate results whose gradients to return
  /// @return {grad_x, trace}
  /// @throws UNSUPPORTED for an int8 layer
  /// @throws ARGUMENT if there was no such forward since the last backward or since weights changed
  /// @throws SHAPE if grad does not have the shape of the output
  /// @throws OUT_OF_RANGE if a traced layer does not exist
  /// @throws MEMORY if the call would exceed the memory limit; nothing has changed after an error
  /// @see torch.autograd of torch.nn.TransformerEncoderLayer
  ///
  /// @code
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 4});
  /// layer.forward(x, {.for_backward = true});
  /// auto result = layer.backward(xt::xtensor<float, 3>(xt::ones<float>({1, 3, 4})));
  /// std::cout << result.grad_x.shape(1) << ' ' << layer.gradients().count("linear1.weight");  // 3 1
  /// @endcode
  template <TensorLike G>
  auto backward(const G& grad, const EncoderBackwardOptions& options = {}) {
    constexpr std::size_t N = kRankOf<G>;
    static_assert(N == 2 || N == 3, "grad is (B,L,E) or (L,E)");
    const detail::Input view(grad, "TransformerEncoderLayer", "grad");
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
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8});
  /// const std::vector<float> numbers(3 * 4, 1);
  /// std::vector<float> output(3 * 4), grad_x(3 * 4);
  /// const attn::TensorView x(numbers.data(), {3, 4}), grad(output.data(), {3, 4});
  /// const auto plan = layer.plan(x, {.for_backward = true});
  /// layer.run(plan, x, {.output = output.data()});
  /// layer.plan_backward(grad, {});
  /// layer.run_backward(grad, {.grad_x = grad_x.data()});
  /// std::cout << to_string(plan.output) << ' ' << layer.gradients().size();  // (3,4) 12
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

  bool is_quantized() const override { return linear1_.is_quantized(); }

 private:
  friend class detail::ParameterVisitor;
  friend class TransformerEncoder;
  friend class TransformerClassifier;
  friend class detail::Stack;

  TransformerEncoderLayer(detail::Uninitialized, std::string_view op, const TransformerEncoderLayerOptions& options);
  static MultiHeadAttention attention_of(std::string_view op, const TransformerEncoderLayerOptions& options);
  void visit_parameters(detail::ParameterVisitor& visitor) override;
  void set_variant(const detail::LayerVariant& variant);

  /// Plans a forward of a stack of such layers. runs as in AttentionSpec; the cache, if given, must have room for x.
  detail::EncoderPlan plan(std::string_view op, std::int64_t layers, const TensorView& x, const EncoderForwardOptions& options,
                           std::span<const detail::SequenceGroup> runs, KeyValueCache* cache = nullptr) const;
  /// Computes y from x as layer `index` of a stack, both (B·L,E); they may be the same memory.
  void run(const detail::EncoderPlan& plan, std::uint32_t index, const float* x, const detail::ForwardRandom& random,
           const detail::PositionBias& position_bias, const detail::LayerBuffers& buffers, detail::Scratch& scratch, float* y) const;
  /// Runs as a single layer.
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random, const detail::EncoderBuffers& buffers) const;

  // For backward; `index` is the layer's index in its stack.
  void run_for_backward(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                        const detail::EncoderBuffers& buffers) const;
  /// Returns how many floats one layer saves.
  std::uint64_t kept_size(const detail::EncoderPlan& plan) const;
  /// Points `kept` to consecutive memory that begins at `to`; returns the end.
  float* place_kept(const detail::EncoderPlan& plan, std::uint32_t index, const detail::KeptEncoder& stack, const detail::PositionBias& position_bias,
                    detail::KeptLayer& kept, float* to) const;
  /// Makes a run with these buffers store everything in `kept` except x.
  void keep(const detail::EncoderPlan& plan, const detail::KeptLayer& kept, detail::LayerBuffers& buffers, detail::CaptureBuffers& places) const;
  /// Plans a backward of a stack of such layers.
  detail::EncoderBackwardPlan plan_backward(std::string_view op, const detail::KeptEncoder& kept, const EncoderBackwardOptions& options) const;
  /// run_backward() without its effect on the layer.
  detail::Gradients gradients_of(const TensorView& grad, const detail::EncoderGradientBuffers& to) const;
  /// Replaces grad (B·L,E), the gradient of the layer's output, by that of x. Writes the gradients of parameters to
  /// `gradients` if it has room for them.
  void backward(const detail::KeptEncoder& stack, std::uint32_t index, float* grad, const std::string& prefix, detail::Gradients& gradients,
                const detail::EncoderGradientBuffers& to, detail::Scratch& scratch) const;
  // The steps of run() and backward().
  class Forward;
  class Backward;

  TransformerEncoderLayerOptions options_;
  detail::LayerVariant variant_;
  MultiHeadAttention self_attn_;
  detail::Linear linear1_, linear2_, linear_gate_;
  detail::Norm norm1_, norm2_;
  detail::Norm post_norm1_ = detail::Norm::identity(0), post_norm2_ = detail::Norm::identity(0);
};

}  // namespace attn
