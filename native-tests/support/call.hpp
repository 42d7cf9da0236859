#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "support/array.hpp"
#include "support/attention_case.hpp"

// Arrays of any rank; three files instantiate the templates, for fast compilation.
namespace attn::test {

struct Result {
  Array output;
  std::optional<Array> weights;
  std::map<TraceName, Array> trace;
};

inline constexpr Trace kWholeTrace = Trace::from_bits((1U << kLayerTraceCount) - 1);
inline constexpr Trace kAttentionTrace{TraceName::q,
                                       TraceName::k,
                                       TraceName::v,
                                       TraceName::scores,
                                       TraceName::masked_scores,
                                       TraceName::probabilities,
                                       TraceName::weights,
                                       TraceName::weighted_values,
                                       TraceName::context,
                                       TraceName::output};

Mask mask_of(const MaskInput& mask);
AttentionOptions options_of(const AttentionCase& c, AttentionOptions asked = {});

Result attention(const AttentionCase& c, const AttentionOptions& asked = {});
Result forward(const MultiHeadAttention& layer, const Array& x, const AttentionOptions& options = {});
Result forward(const MultiHeadAttention& layer, const Array& query, const Array& key, const Array& value, const AttentionOptions& options = {});
Result forward(const MultiHeadAttention& layer, const AttentionCase& c, const AttentionOptions& asked = {});
Array linear(const Array& x, const Array& weight, const Array* bias = nullptr);
Array softmax(const Array& x, std::int64_t dim = -1);

/// bias of rank 0: none.
struct AdditiveArrays {
  Array query_weight, key_weight, score_weight, bias = {};
};
Result additive_attention(const AttentionCase& c, const AdditiveArrays& params, const AttentionOptions& asked = {});
Result general_attention(const AttentionCase& c, const Array& weight, const AttentionOptions& asked = {});

Array activation(const Array& x, Activation name);
/// A bias without weight gets ones, which keep the bits.
Array layer_norm(const Array& x, const Array* weight, const Array* bias, float eps = 1e-5F);
Array rms_norm(const Array& x, const Array* weight, float eps = 0x1p-23F);
Array sinusoidal_positions(std::int64_t length, std::int64_t width);
Array apply_rotary(const Array& x, const RotaryOptions& options = {});
Array alibi_bias(std::int64_t num_heads, std::int64_t length, std::optional<std::int64_t> key_length = {});

struct EncoderOutput {
  Array output, logits = {};
  std::optional<std::vector<Array>> attentions = {}, hidden_states = {};
  std::optional<std::map<std::int64_t, std::map<TraceName, Array>>> trace = {};
};
EncoderOutput forward(const TransformerEncoderLayer& layer, const Array& x, const EncoderForwardOptions& options = {});
EncoderOutput forward(const TransformerEncoder& encoder, const Array& x, const EncoderForwardOptions& options = {});
EncoderOutput forward(const TransformerClassifier& classifier, const Array& x, const EncoderForwardOptions& options = {});
Array forward(const Embedding& embedding, const std::vector<std::int64_t>& ids, const Shape& dims);

StateDict state_of(const std::map<std::string, Array>& state);
std::map<std::string, Array> arrays_of(const StateDict& state);

}  // namespace attn::test
