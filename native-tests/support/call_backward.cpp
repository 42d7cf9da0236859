#include "support/call_backward.hpp"

#include "support/call_arrays.hpp"
#include "support/tensors.hpp"

namespace attn::test {

Gradients linear_backward(const Array& grad, const Array& x, const Array& weight) {
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    const auto found = attn::linear_backward(any_of(grad), view<N>(x), any_of(weight));
    return Gradients{{"grad_x", array_of(found.grad_x)}, {"grad_weight", array_of(found.grad_weight)}, {"grad_bias", array_of(found.grad_bias)}};
  });
}

namespace {

template <class Found>
Gradients of_norm(const Found& found) {
  Gradients gradients{{"grad_x", array_of(found.grad_x)}};
  if (found.grad_weight) gradients.emplace("grad_weight", array_of(*found.grad_weight));
  if (found.grad_bias) gradients.emplace("grad_bias", array_of(*found.grad_bias));
  return gradients;
}

}  // namespace

Gradients layer_norm_backward(const Array& grad, const Array& x, const Array* weight, float eps) {
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    const AnyTensor g = any_of(grad);
    return of_norm(weight == nullptr ? attn::layer_norm_backward(g, view<N>(x), eps)
                                     : attn::layer_norm_backward(g, view<N>(x), any_of(*weight), eps));
  });
}

Gradients rms_norm_backward(const Array& grad, const Array& x, const Array* weight, float eps) {
  return with_rank<1, 4>(x.dims.rank(), [&]<std::size_t N>() {
    const AnyTensor g = any_of(grad);
    return of_norm(weight == nullptr ? attn::rms_norm_backward(g, view<N>(x), eps) : attn::rms_norm_backward(g, view<N>(x), any_of(*weight), eps));
  });
}

Array softmax_backward(const Array& grad, const Array& y, std::int64_t dim) {
  return with_rank<1, 4>(y.dims.rank(), [&]<std::size_t N>() { return array_of(attn::softmax_backward(any_of(grad), view<N>(y), dim)); });
}

Array activation_backward(const Array& grad, const Array& x, Activation name) {
  return with_rank<0, 5>(x.dims.rank(), [&]<std::size_t N>() { return array_of(attn::activation_backward(any_of(grad), tensor_of<N>(x), name)); });
}

Array apply_rotary_backward(const Array& grad, const RotaryOptions& options) {
  return with_rank<2, 4>(grad.dims.rank(), [&]<std::size_t N>() { return array_of(attn::apply_rotary_backward(view<N>(grad), options)); });
}

namespace {

template <class Found>
Gradients of_attention(const Found& found) {
  Gradients gradients{{"grad_query", array_of(found.grad_query)}, {"grad_key", array_of(found.grad_key)}, {"grad_value", array_of(found.grad_value)}};
  if (found.trace)
    for (const auto& [name, tensor] : *found.trace) gradients.emplace("trace." + std::string(to_string(name)), array_of(tensor));
  return gradients;
}

}  // namespace

Gradients attention_backward(const Array& grad, const AttentionCase& c, const AttentionOptions& asked) {
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    return of_attention(
        attn::scaled_dot_product_attention_backward(any_of(grad), view<N>(c.query), any_of(c.key), any_of(c.value), options_of(c, asked)));
  });
}

Gradients additive_attention_backward(const Array& grad, const AttentionCase& c, const AdditiveArrays& params, const AttentionOptions& asked) {
  AdditiveAttentionParams tensors{tensor_of<2>(params.query_weight), tensor_of<2>(params.key_weight), tensor_of<1>(params.score_weight)};
  if (params.bias.dims.rank() > 0) tensors.bias = tensor_of<1>(params.bias);
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    const auto found =
        attn::additive_attention_backward(any_of(grad), view<N>(c.query), any_of(c.key), any_of(c.value), tensors, options_of(c, asked));
    Gradients gradients = of_attention(found);
    gradients.emplace("grad_query_weight", array_of(found.grad_query_weight));
    gradients.emplace("grad_key_weight", array_of(found.grad_key_weight));
    gradients.emplace("grad_score_weight", array_of(found.grad_score_weight));
    if (found.grad_bias) gradients.emplace("grad_bias", array_of(*found.grad_bias));
    return gradients;
  });
}

Gradients general_attention_backward(const Array& grad, const AttentionCase& c, const Array& weight, const AttentionOptions& asked) {
  return with_rank<2, 4>(c.query.dims.rank(), [&]<std::size_t N>() {
    const auto found =
        attn::general_attention_backward(any_of(grad), view<N>(c.query), any_of(c.key), any_of(c.value), any_of(weight), options_of(c, asked));
    Gradients gradients = of_attention(found);
    gradients.emplace("grad_weight", array_of(found.grad_weight));
    return gradients;
  });
}

namespace {

template <class Layer>
void add_state(const Layer& layer, Gradients& gradients) {
  for (const auto& [name, gradient] : arrays_of(layer.gradients())) gradients.emplace("state." + name, gradient);
}

}  // namespace

Gradients backward(MultiHeadAttention& layer, const Array& grad, Trace trace) {
  return with_rank<2, 3>(grad.dims.rank(), [&]<std::size_t N>() {
    const auto found = layer.backward(view<N>(grad), {.trace = trace});
    Gradients gradients{{"grad_query", array_of(found.grad_query)}};
    if (found.grad_key) gradients.emplace("grad_key", array_of(*found.grad_key));
    if (found.grad_value) gradients.emplace("grad_value", array_of(*found.grad_value));
    if (found.trace)
      for (const auto& [name, tensor] : *found.trace) gradients.emplace("trace." + std::string(to_string(name)), array_of(tensor));
    add_state(layer, gradients);
    return gradients;
  });
}

namespace {

template <class Layer, class Grad>
Gradients of_encoder(Layer& layer, const Grad& grad, const EncoderBackwardOptions& options) {
  const auto found = layer.backward(grad, options);
  Gradients gradients{{"grad_x", array_of(found.grad_x)}};
  if (found.trace)
    for (const auto& [index, traces] : *found.trace)
      for (const auto& [name, tensor] : traces)
        gradients.emplace("trace." + std::to_string(index) + "." + std::string(to_string(name)), array_of(tensor));
  add_state(layer, gradients);
  return gradients;
}

}  // namespace

Gradients backward(TransformerEncoderLayer& layer, const Array& grad, const EncoderBackwardOptions& options) {
  return with_rank<2, 3>(grad.dims.rank(), [&]<std::size_t N>() { return of_encoder(layer, view<N>(grad), options); });
}

Gradients backward(TransformerEncoder& encoder, const Array& grad, const EncoderBackwardOptions& options) {
  return with_rank<2, 3>(grad.dims.rank(), [&]<std::size_t N>() { return of_encoder(encoder, view<N>(grad), options); });
}

Gradients backward(TransformerClassifier& classifier, const Array& grad, const EncoderBackwardOptions& options) {
  return of_encoder(classifier, any_of(grad), options);
}

Gradients backward(Embedding& embedding, const Array& grad) {
  embedding.backward(any_of(grad));
  Gradients gradients;
  add_state(embedding, gradients);
  return gradients;
}

}  // namespace attn::test
