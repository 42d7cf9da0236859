#include "support/call.hpp"
#include "support/call_arrays.hpp"

namespace attn::test {
namespace {

template <std::size_t N>
EncoderOutput output_of(const EncoderResult<N>& r) {
  EncoderOutput result{array_of(r.output)};
  if (r.attentions)
    for (result.attentions.emplace(); const auto& tensor : *r.attentions) result.attentions->push_back(array_of(tensor));
  if (r.hidden_states)
    for (result.hidden_states.emplace(); const auto& tensor : *r.hidden_states) result.hidden_states->push_back(array_of(tensor));
  if (r.trace)
    for (result.trace.emplace(); const auto& [layer, traces] : *r.trace)
      for (const auto& [name, tensor] : traces) (*result.trace)[layer].emplace(name, array_of(tensor));
  return result;
}

}  // namespace

EncoderOutput forward(const TransformerEncoderLayer& layer, const Array& x, const EncoderForwardOptions& options) {
  return with_rank<2, 3>(x.dims.rank(), [&]<std::size_t N>() { return output_of(layer.forward(view<N>(x), options)); });
}

EncoderOutput forward(const TransformerEncoder& encoder, const Array& x, const EncoderForwardOptions& options) {
  return with_rank<2, 3>(x.dims.rank(), [&]<std::size_t N>() { return output_of(encoder.forward(view<N>(x), options)); });
}

EncoderOutput forward(const TransformerClassifier& classifier, const Array& x, const EncoderForwardOptions& options) {
  return with_rank<2, 3>(x.dims.rank(), [&]<std::size_t N>() {
    const auto r = classifier.forward(view<N>(x), options);
    EncoderOutput result = output_of<N>(r);
    result.logits = array_of(r.logits);
    return result;
  });
}

Array forward(const Embedding& embedding, const std::vector<std::int64_t>& ids, const Shape& dims) {
  return with_rank<1, 4>(dims.rank(), [&]<std::size_t N>() {
    std::array<std::size_t, N> shape{};
    for (std::size_t axis = 0; axis < N; ++axis) shape[axis] = static_cast<std::size_t>(dims[axis]);
    return array_of(embedding.forward(xt::adapt(ids.data(), ids.size(), xt::no_ownership(), shape)));
  });
}

}  // namespace attn::test
