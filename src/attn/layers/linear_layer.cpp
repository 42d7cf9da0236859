#include "attn/layers/linear_layer.hpp"

#include <algorithm>

namespace attn::detail {

void Linear::visit_parameters(ParameterVisitor& visitor, ParameterKind bias) {
  visitor.add("weight", weight_ref(ParameterKind::weight));
  ++visitor.stream;
  if (bias_) visitor.add("bias", bias_ref(bias));
  ++visitor.stream;
}

Linear Linear::converted(bool to_int8) const {
  Linear next(in_, out_, bias_);
  if (to_int8) next.packed_.emplace<QuantizedLinear>();
  const auto convert = [&](const auto& from, auto& to) {
    to.bias() = from.bias();
    if (from.out_features() != out_) return;
    to.allocate_weight(out_, in_);
    // Pieces of 4 MB are large enough for all threads.
    const auto in = static_cast<std::size_t>(in_), out = static_cast<std::size_t>(out_);
    const std::size_t most = std::min(out, (std::size_t{1} << 20) / in + 1);
    std::vector<float> rows(most * in);
    for (std::size_t first = 0; first < out; first += most) {
      const std::size_t count = std::min(most, out - first);
      for (std::size_t i = 0; i < count; ++i) from.weight().get_row(first + i, in, rows.data() + i * in);
      to.set_weight_rows(first, {rows.data(), count * in});
    }
  };
  std::visit(convert, packed_, next.packed_);
  return next;
}

void Linear::forward(const Rows& x, float* y, Scratch& scratch, const parallel::TaskRef* finish_row) const {
  const Output output{this, y};
  forward({&output, 1}, x, scratch, finish_row);
}

void Linear::forward(std::span<const Output> outputs, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row) {
  const auto forward_all = [&]<class Weight>(const BasicPackedLinear<Weight>&) {
    PanelProduct<Weight> all[3];
    for (std::size_t i = 0; i < outputs.size(); ++i)
      all[i] = std::get_if<BasicPackedLinear<Weight>>(&outputs[i].linear->packed_)->product(outputs[i].y);
    multiply<Weight>({all, outputs.size()}, x, scratch, finish_row);
  };
  std::visit(forward_all, outputs.front().linear->packed_);
}

}  // namespace attn::detail
