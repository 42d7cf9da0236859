#pragma once

#include <map>
#include <string>

#include "attn/attn.hpp"
#include "support/array.hpp"
#include "support/attention_case.hpp"
#include "support/call.hpp"

namespace attn::test {

/// Traces are "trace." and the intermediate.
using Gradients = std::map<std::string, Array>;

Gradients linear_backward(const Array& grad, const Array& x, const Array& weight);
Gradients layer_norm_backward(const Array& grad, const Array& x, const Array* weight, float eps = 1e-5F);
Gradients rms_norm_backward(const Array& grad, const Array& x, const Array* weight, float eps = 0x1p-23F);
Array softmax_backward(const Array& grad, const Array& y, std::int64_t dim = -1);
Array activation_backward(const Array& grad, const Array& x, Activation name);
Array apply_rotary_backward(const Array& grad, const RotaryOptions& options = {});
Gradients attention_backward(const Array& grad, const AttentionCase& c, const AttentionOptions& asked = {});
Gradients additive_attention_backward(const Array& grad, const AttentionCase& c, const AdditiveArrays& params, const AttentionOptions& asked = {});
Gradients general_attention_backward(const Array& grad, const AttentionCase& c, const Array& weight, const AttentionOptions& asked = {});
/// Parameters are "state." and their names.
Gradients backward(MultiHeadAttention& layer, const Array& grad, Trace trace = {});
Gradients backward(TransformerEncoderLayer& layer, const Array& grad, const EncoderBackwardOptions& options = {});
Gradients backward(TransformerEncoder& encoder, const Array& grad, const EncoderBackwardOptions& options = {});
Gradients backward(TransformerClassifier& classifier, const Array& grad, const EncoderBackwardOptions& options = {});
Gradients backward(Embedding& embedding, const Array& grad);

}  // namespace attn::test
