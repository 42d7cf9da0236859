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
#include "attn/layers/linear.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/layers/norm.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/pooling.hpp"

namespace attn {

struct TransformerEncoderLayerOptions {
  std::int64_t d_model = 0;                  ///< E, a multiple of nhead
  std::int64_t nhead = 0;                    ///< H
  std::int64_t dim_feedforward = 2048;       ///< F
  float dropout = 0.1F;                      ///< at torch's four places, in [0,1); in training only
  Activation activation = Activation::relu;  ///< of the feed-forward part
  float layer_norm_eps = 1e-5F;              ///< of both norms
  bool norm_first = false;                   ///< norms before attention and feed-forward, not after the sums
  bool bias = true;                          ///< on all linear maps and layer norms
  NormKind norm = NormKind::layer_norm;
  bool gated = false;                                              ///< feed-forward is linear2(activation(linear_gate x) · linear1 x)  (Shazeer 2020)
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;  ///< as MultiHeadAttentionOptions
  std::optional<RotaryOptions> rotary = std::nullopt;              ///< positions of queries and keys; default none
  std::optional<Window> window = std::nullopt;                     ///< keys that a query sees, as AttentionOptions; default all
  float softcap = 0;                                               ///< as AttentionOptions; 0: none
};

/// Those of a layer, and:
struct TransformerEncoderOptions {
  std::int64_t d_model = 0;
  std::int64_t nhead = 0;
  std::int64_t dim_feedforward = 2048;
  float dropout = 0.1F;
  Activation activation = Activation::relu;
  float layer_norm_eps = 1e-5F;
  bool norm_first = false;
  bool bias = true;
  NormKind norm = NormKind::layer_norm;
  bool gated = false;
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;
  std::optional<RotaryOptions> rotary = std::nullopt;
  std::optional<Window> window = std::nullopt;
  float softcap = 0;
  std::int64_t num_layers = 0;  ///< 1 to 10 000
  bool final_norm = false;      ///< one more norm after the last layer
};

/// Those of an encoder, and:
struct TransformerClassifierOptions {
  std::int64_t d_model = 0;
  std::int64_t nhead = 0;
  std::int64_t dim_feedforward = 2048;
  float dropout = 0.1F;
  Activation activation = Activation::relu;
  float layer_norm_eps = 1e-5F;
  bool norm_first = false;
  bool bias = true;
  NormKind norm = NormKind::layer_norm;
  bool gated = false;
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;
  std::optional<RotaryOptions> rotary = std::nullopt;
  std::optional<Window> window = std::nullopt;
  float softcap = 0;
  std::int64_t num_layers = 0;  ///< 1 to 10 000
  bool final_norm = false;
  std::int64_t num_classes = 0;  ///< C
  Pooling pooling = Pooling::none;
};

namespace detail {

/// The options of the layers that a stack consists of, and of the stack in a classifier. C++ has no flat structs that
/// share members.
template <class Options>
TransformerEncoderLayerOptions layer_options(const Options& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .norm_first = o.norm_first,
          .bias = o.bias,
          .norm = o.norm,
          .gated = o.gated,
          .num_key_value_heads = o.num_key_value_heads,
          .rotary = o.rotary,
          .window = o.window,
          .softcap = o.softcap};
}
inline TransformerEncoderOptions encoder_options(const TransformerClassifierOptions& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .norm_first = o.norm_first,
          .bias = o.bias,
          .norm = o.norm,
          .gated = o.gated,
          .num_key_value_heads = o.num_key_value_heads,
          .rotary = o.rotary,
          .window = o.window,
          .softcap = o.softcap,
          .num_layers = o.num_layers,
          .final_norm = o.final_norm};
}

}  // namespace detail

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
class TransformerEncoderLayer : public Module<TransformerEncoderLayer> {
 public:
  /// Draws weights as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);

  /// Runs the layer.
  ///
  /// @param x        (B,L,E), or (L,E): without a batch nothing has one, as in torch
  /// @param options  masks, causality, and which intermediates to return
  /// @return output of the shape of x; attentions, hidden_states and trace on request
  /// @throws SHAPE if widths disagree
  /// @throws MASK if a mask does not fit or holds NaN or +infinity
  /// @throws CONFIG if an option is outside its range
  /// @throws OUT_OF_RANGE if a traced layer does not exist
  /// @throws MEMORY if the call would exceed the memory limit
  template <TensorLike X>
  auto forward(const X& x, const EncoderForwardOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<X>;
    static_assert(N == 2 || N == 3, "x is (B,L,E) or (L,E)");
    const detail::Input view(x, "TransformerEncoderLayer", "x");
    const detail::EncoderPlan plan = this->plan(view, options);
    return detail::run_encoder_plan<N>(plan, [&](const detail::EncoderBuffers& buffers) { run(plan, view, buffers); });
  }

  /// Computes gradients of the last forward that had for_backward or ran in train mode, and adds those of the
  /// parameters to gradients(). It uses up what that forward saved, all of it linear in L: copies of x and masks, q,
  /// k, v, the merged heads, the sums before norms, linear1 and linear_gate. Everything else, dropout included, is
  /// computed again to the same bits. Rows whose gradient is 0 (padding, for example) take no part in any gradient,
  /// whatever they hold. Masked keys and queries without keys are treated as by
  /// scaled_dot_product_attention_backward. Any number of threads gives the same bits.
  ///
  /// @param grad     gradient of the output, its shape
  /// @param options  which intermediates to return gradients of
  /// @return {grad_x, trace}
  /// @throws UNSUPPORTED for an int8 layer
  /// @throws ARGUMENT if there was no such forward since the last backward or since weights changed
  /// @throws SHAPE if grad does not have the shape of the output
  /// @throws OUT_OF_RANGE if a traced layer does not exist
  /// @throws MEMORY if the call would exceed the memory limit; nothing has changed after an error
  /// @see torch.autograd of torch.nn.TransformerEncoderLayer
  template <TensorLike G>
  auto backward(const G& grad, const EncoderBackwardOptions& options = {}) {
    constexpr std::size_t N = kRankOf<G>;
    static_assert(N == 2 || N == 3, "grad is (B,L,E) or (L,E)");
    const detail::Input view(grad, "TransformerEncoderLayer", "grad");
    const detail::EncoderBackwardPlan plan = plan_backward(view, options);
    return detail::run_encoder_backward_plan<N>(plan, [&](const detail::EncoderGradientBuffers& to) { run_backward(view, to); });
  }

  /// For callers that own the memory: everything checked, then the work itself.
  detail::EncoderPlan plan(const TensorView& x, const EncoderForwardOptions& options) const;
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers) const;
  detail::EncoderBackwardPlan plan_backward(const TensorView& grad, const EncoderBackwardOptions& options) const;
  void run_backward(const TensorView& grad, const detail::EncoderGradientBuffers& to);

  bool is_quantized() const { return linear1_.is_quantized(); }

 private:
  friend class Module<TransformerEncoderLayer>;
  friend class TransformerEncoder;
  friend class TransformerClassifier;
  friend class EncoderModel;

  TransformerEncoderLayer(detail::Uninitialized, std::string_view op, const TransformerEncoderLayerOptions& options);
  static MultiHeadAttention attention_of(std::string_view op, const TransformerEncoderLayerOptions& options);
  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  TransformerEncoderLayer loaded(const std::string& prefix, const StateView& state) const;
  TransformerEncoderLayer drawn(const InitOptions& options, std::uint32_t& parameter) const;
  void make_int8();
  /// Names where its numbers will be: self_attn.* in the separate form, the others as in the state.
  void add_parameters(const std::string& prefix, detail::Parameters& parameters);

  /// Calls visit(name, member) for everything that has parameters, in torch's order.
  template <class Visit>
  void each_part(Visit visit) const;

  /// Of a stack of such layers. runs as in AttentionSpec.
  detail::EncoderPlan plan(std::string_view op, std::int64_t layers, const TensorView& x, const EncoderForwardOptions& options,
                           std::span<const detail::SequenceRun> runs, MemoryEstimate& memory) const;
  /// x -> y (B·L,E), which may be the same, as layer `index` of its stack.
  void run(const detail::EncoderPlan& plan, std::uint32_t index, const float* x, const detail::ForwardRandom& random,
           const detail::PositionBias& position_bias, const detail::LayerBuffers& buffers, detail::Scratch& scratch, float* y) const;
  /// As a layer alone.
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random, const detail::EncoderBuffers& buffers) const;

  // For backward, of the layer that has `index` in its stack.
  void run_for_backward(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                        const detail::EncoderBuffers& buffers) const;
  /// Adds what all layers of a stack keep.
  void add_kept_memory(const detail::EncoderPlan& plan, MemoryEstimate& memory) const;
  /// Numbers that it keeps.
  std::size_t kept_size(const detail::EncoderPlan& plan) const;
  /// Gives `kept` places for them, the first of which is at `to`; gives the end.
  float* place_kept(const detail::EncoderPlan& plan, std::uint32_t index, const detail::KeptEncoder& stack, const detail::PositionBias& position_bias,
                    detail::KeptLayer& kept, float* to) const;
  /// A run with these buffers leaves there all but x.
  void keep(const detail::EncoderPlan& plan, const detail::KeptLayer& kept, detail::LayerBuffers& buffers, detail::KeptPlaces& places) const;
  /// Of a stack of such layers.
  detail::EncoderBackwardPlan plan_backward(std::string_view op, const detail::KeptEncoder& kept, const EncoderBackwardOptions& options,
                                            const std::map<std::string, Shape>& parameters, MemoryEstimate& memory) const;
  /// grad (B·L,E), of what the layer gave, becomes that of x. Gradients of parameters go where `gradients` has room
  /// for them.
  void backward(const detail::KeptEncoder& stack, std::uint32_t index, float* grad, const std::string& prefix, detail::Gradients& gradients,
                const detail::EncoderGradientBuffers& to, detail::Scratch& scratch) const;

  TransformerEncoderLayerOptions options_;
  MultiHeadAttention self_attn_;
  detail::Linear linear1_, linear2_, linear_gate_;
  detail::Norm norm1_, norm2_;
};

}  // namespace attn
