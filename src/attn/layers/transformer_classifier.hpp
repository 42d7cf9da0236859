#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/layers/linear.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/transformer_encoder.hpp"

namespace attn {

/// N: rank of input and output.
template <std::size_t N>
struct ClassifierResult : EncoderResult<N> {
  TensorOf<kAnyBeside<N>> logits;  ///< (B,C), without pooling (B,L,C)
};

/// logits = pool(encoder(x)) Wᵀ + b: an encoder with torch.nn.Linear on top.
///
/// State, torch's names: encoder.* as TransformerEncoder, classifier.weight (C,E), classifier.bias (C).
class TransformerClassifier : public Module<TransformerClassifier> {
 public:
  /// Weights as torch's constructors would draw them, from seed 0. Throws CONFIG, MEMORY.
  explicit TransformerClassifier(const TransformerClassifierOptions& options);

  /// x (B,L,E) -> output (B,L,E), logits (B,C), without pooling (B,L,C). Without B (rank 2) nothing has it.
  /// mean and max leave out what key_padding_mask says is padding; a sequence that is all padding pools to what fully_masked says.
  /// Throws SHAPE, MASK, OUT_OF_RANGE for a layer that is not there, MEMORY.
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

  /// grad_logits, that of the logits, of their shape -> grad_x, of x's and of a rank known at run time, else as TransformerEncoderLayer::backward.
  /// Each position gets what pooling makes of it: of mean a share, of max what the first position with the largest number gets, as in torch. Padding
  /// gets 0, and so does a sequence that is all padding, but with the policy uniform, which pools all of it.
  template <TensorLike G>
  auto backward(const G& grad_logits, const EncoderBackwardOptions& options = {}) {
    const detail::Input view(grad_logits, "TransformerClassifier", "grad_logits");
    const detail::EncoderBackwardPlan plan = plan_backward(view, options);
    const auto run = [&](const detail::EncoderGradientBuffers& to) { run_backward(view, to); };
    return detail::run_encoder_backward_plan<kAnyBeside<sizeof(G)>>(plan, run);
  }

  /// For callers that own the memory: everything checked, then the work itself.
  detail::EncoderPlan plan(const TensorView& x, const EncoderForwardOptions& options) const;
  Shape logits_shape(const detail::EncoderPlan& plan) const;
  void run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers, float* logits) const;
  detail::EncoderBackwardPlan plan_backward(const TensorView& grad_logits, const EncoderBackwardOptions& options) const;
  void run_backward(const TensorView& grad_logits, const detail::EncoderGradientBuffers& to);

  bool is_quantized() const { return classifier_.is_quantized(); }

 private:
  friend class Module<TransformerClassifier>;

  TransformerClassifier(detail::Uninitialized, const TransformerClassifierOptions& options);
  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  TransformerClassifier loaded(const std::string& prefix, const StateView& state) const;
  TransformerClassifier drawn(const InitOptions& options, std::uint32_t& parameter) const;
  void make_int8();
  /// Names where its numbers will be, as TransformerEncoder.
  void add_parameters(const std::string& prefix, detail::Parameters& parameters);

  TransformerClassifierOptions options_;
  TransformerEncoder encoder_;
  detail::Linear classifier_;
};

}  // namespace attn
