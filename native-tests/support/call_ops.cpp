#include "support/call.hpp"
#include "support/call_arrays.hpp"
#include "support/tensors.hpp"

namespace attn::test {

Result additive_attention(const AttentionCase& c, const AdditiveArrays& params, const AttentionOptions& asked) {
  AdditiveAttentionParams tensors{tensor_of<2>(params.query_weight), tensor_of<2>(params.key_weight), tensor_of<1>(params.score_weight)};
  if (params.bias.dims.rank() > 0) tensors.bias = tensor_of<1>(params.bias);
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    return result_of(attn::additive_attention(view<N>(c.query), any_of(c.key), any_of(c.value), tensors, options_of(c, asked)));
  });
}

Result general_attention(const AttentionCase& c, const Array& weight, const AttentionOptions& asked) {
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    return result_of(attn::general_attention(view<N>(c.query), any_of(c.key), any_of(c.value), any_of(weight), options_of(c, asked)));
  });
}

Array activation(const Array& x, Activation name) {
  return with_rank<0, 5>(x.dims.rank(), [&]<std::size_t N>() { return array_of(attn::activation(tensor_of<N>(x), name)); });
}

Array layer_norm(const Array& x, const Array* weight, const Array* bias, float eps) {
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    const auto tensor = view<N>(x);
    if (weight == nullptr && bias == nullptr) return array_of(attn::layer_norm(tensor, eps));
    const AnyTensor w = any_of(weight != nullptr ? *weight : Array(bias->dims, 1));
    return array_of(bias == nullptr ? attn::layer_norm(tensor, w, eps) : attn::layer_norm(tensor, w, any_of(*bias), eps));
  });
}

Array rms_norm(const Array& x, const Array* weight, float eps) {
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    return array_of(weight == nullptr ? attn::rms_norm(view<N>(x), eps) : attn::rms_norm(view<N>(x), any_of(*weight), eps));
  });
}

Array sinusoidal_positions(std::int64_t length, std::int64_t width) { return array_of(attn::sinusoidal_positions(length, width)); }

Array apply_rotary(const Array& x, const RotaryOptions& options) {
  return with_rank<2, 4>(x.dims.rank(), [&]<std::size_t N>() { return array_of(attn::apply_rotary(view<N>(x), options)); });
}

Array alibi_bias(std::int64_t num_heads, std::int64_t length, std::optional<std::int64_t> key_length) {
  return array_of(attn::alibi_bias(num_heads, length, key_length));
}

}  // namespace attn::test
