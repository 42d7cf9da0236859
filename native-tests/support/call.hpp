#pragma once

#include <map>
#include <optional>
#include <string>

#include "attn/layers/multi_head_attention.hpp"
#include "support/array.hpp"
#include "support/attention_case.hpp"

// The library's public functions called with plain arrays of any rank. They are templates over tensors of fixed rank;
// one file makes them, so that the tests compile quickly.
namespace attn::test {

struct Result {
  Array output;
  std::optional<Array> weights;
  std::map<TraceName, Array> trace;
};

inline constexpr Trace kWholeTrace = Trace::from_bits((1U << kTraceNames.size()) - 1);
/// Those that scaled_dot_product_attention has.
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
/// Masks, scale and policy of the case, and what `asked` wants to see.
AttentionOptions options_of(const AttentionCase& c, AttentionOptions asked = {});

Result attention(const AttentionCase& c, const AttentionOptions& asked = {});
Result forward(const MultiHeadAttention& layer, const Array& x, const AttentionOptions& options = {});
Result forward(const MultiHeadAttention& layer, const Array& query, const Array& key, const Array& value, const AttentionOptions& options = {});
Result forward(const MultiHeadAttention& layer, const AttentionCase& c, const AttentionOptions& asked = {});
Array linear(const Array& x, const Array& weight, const Array* bias = nullptr);
Array softmax(const Array& x, std::int64_t dim = -1);

StateDict state_of(const std::map<std::string, Array>& state);
std::map<std::string, Array> arrays_of(const StateDict& state);

}  // namespace attn::test
