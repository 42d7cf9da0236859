#include "support/call.hpp"

#include "support/call_arrays.hpp"

namespace attn::test {

Mask mask_of(const MaskInput& mask) {
  AnyTensor data = any_of(mask.data);
  if (mask.kind == MaskKind::additive) return Mask::additive(std::move(data));
  return mask.kind == MaskKind::attend ? Mask::attend(std::move(data)) : Mask::block(std::move(data));
}

AttentionOptions options_of(const AttentionCase& c, AttentionOptions asked) {
  if (c.mask) asked.mask = mask_of(*c.mask);
  if (c.key_padding_mask) asked.key_padding_mask = mask_of(*c.key_padding_mask);
  asked.is_causal = c.is_causal;
  asked.scale = c.scale;
  asked.enable_gqa = c.enable_gqa;
  asked.fully_masked = c.fully_masked;
  if (c.softcap != 0) asked.softcap = c.softcap;
  if (!c.window.open()) asked.window = c.window;
  if (c.query_offset != 0) asked.query_offset = c.query_offset;
  return asked;
}

Result attention(const AttentionCase& c, const AttentionOptions& asked) {
  const AttentionOptions options = options_of(c, asked);
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    return with_rank<2, 4>(c.key.dims.rank(), [&]<std::size_t K>() {
      if (c.value.dims.rank() != K) return result_of(scaled_dot_product_attention(view<N>(c.query), view<K>(c.key), any_of(c.value), options));
      return result_of(scaled_dot_product_attention(view<N>(c.query), view<K>(c.key), view<K>(c.value), options));
    });
  });
}

Result forward(const MultiHeadAttention& layer, const Array& x, const AttentionOptions& options) {
  return with_rank<2, 3>(x.dims.rank(), [&]<std::size_t N>() { return result_of(layer.forward(view<N>(x), options)); });
}

Result forward(const MultiHeadAttention& layer, const Array& query, const Array& key, const Array& value, const AttentionOptions& options) {
  return with_rank<2, 3>(query.dims.rank(), [&]<std::size_t N>() {
    const AnyTensor k = any_of(key), v = any_of(value);
    return result_of(layer.forward(view<N>(query), k, v, options));
  });
}

Result forward(const MultiHeadAttention& layer, const AttentionCase& c, const AttentionOptions& asked) {
  return forward(layer, c.query, c.key, c.value, options_of(c, asked));
}

Array linear(const Array& x, const Array& weight, const Array* bias) {
  const AnyTensor w = any_of(weight);
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    return array_of(bias == nullptr ? attn::linear(view<N>(x), w) : attn::linear(view<N>(x), w, any_of(*bias)));
  });
}

Array softmax(const Array& x, std::int64_t dim) {
  return with_rank<1, 5>(x.dims.rank(), [&]<std::size_t N>() { return array_of(attn::softmax(view<N>(x), dim)); });
}

StateDict state_of(const std::map<std::string, Array>& state) {
  StateDict tensors;
  for (const auto& [name, array] : state) tensors.emplace(name, any_of(array));
  return tensors;
}

std::map<std::string, Array> arrays_of(const StateDict& state) {
  std::map<std::string, Array> arrays;
  for (const auto& [name, tensor] : state) arrays.emplace(name, array_of(tensor));
  return arrays;
}

}  // namespace attn::test
