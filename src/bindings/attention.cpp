#include <emscripten/bind.h>

#include <memory>
#include <vector>

#include "attention_options.hpp"
#include "attn/ops/attention.hpp"
#include "errors.hpp"

namespace attn::bindings {
namespace {

Mask read_mask(Address address, std::int32_t kind_number, bool is_float) {
  const auto* descriptor = reinterpret_cast<const Descriptor*>(address);
  const std::vector<std::size_t> dims(descriptor->dims, descriptor->dims + descriptor->rank);
  const auto count = static_cast<std::size_t>(checked_size(shape_at(address), "mask", "the mask"));
  const auto kind = static_cast<MaskKind>(kind_number);
  const auto make = [&](const auto& values) { return kind == MaskKind::block ? Mask::block(values) : Mask::attend(values); };
  if (kind != MaskKind::additive && !is_float)
    return make(xt::adapt(reinterpret_cast<const std::uint8_t*>(descriptor->data), count, xt::no_ownership(), dims));
  const auto values = xt::adapt(reinterpret_cast<const float*>(descriptor->data), count, xt::no_ownership(), dims);
  return kind == MaskKind::additive ? Mask::additive(values) : make(values);
}

Address scaled_dot_product_attention(Address query, Address key, Address value, Address given) {
  return guard([&] {
    const attn::AttentionOptions options = read_attention_options(given);
    const TensorView q = view_at(query), k = view_at(key), v = view_at(value);
    const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, options);
    auto result = std::make_unique<Result>();
    detail::scaled_dot_product_attention(plan, q, k, v, options, allocate_results(plan, *result));
    return result.release()->address();
  });
}

std::string trace_names() { return join(kTraceNames); }

}  // namespace

attn::AttentionOptions read_attention_options(Address address) {
  const auto& given = *reinterpret_cast<const AttentionOptions*>(address);
  attn::AttentionOptions options{.is_causal = given.is_causal != 0,
                                 .need_weights = given.need_weights != 0,
                                 .average_weights = given.average_weights != 0,
                                 .enable_gqa = given.enable_gqa != 0,
                                 .fully_masked = static_cast<FullyMasked>(given.fully_masked),
                                 .trace = Trace::from_bits(given.trace)};
  if (given.mask != 0) options.mask = read_mask(given.mask, given.mask_kind, given.mask_is_float != 0);
  if (given.key_padding_mask != 0)
    options.key_padding_mask = read_mask(given.key_padding_mask, given.key_padding_mask_kind, given.key_padding_mask_is_float != 0);
  if (given.has_scale != 0) options.scale = given.scale;
  return options;
}

detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, Result& result) {
  detail::AttentionBuffers buffers;
  buffers.output = result.add(0, plan.output);
  if (plan.has_weights) {
    Shape shape;  // the mean over heads has no head dimension in JavaScript, as in torch
    for (std::size_t axis = 0; axis < plan.weights.rank(); ++axis)
      if (!plan.average_weights || axis + 3 != plan.weights.rank()) shape.push_back(plan.weights[axis]);
    buffers.weights = result.add(1, shape);
  }
  for (std::size_t i = 0; i < kTraceNames.size(); ++i)
    if (plan.trace.has(static_cast<TraceName>(i))) buffers.trace[i] = result.add(static_cast<std::int32_t>(2 + i), plan.trace_shapes[i]);
  return buffers;
}

}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_attention) {
  emscripten::function("scaledDotProductAttention", &attn::bindings::scaled_dot_product_attention);
  emscripten::function("traceNames", &attn::bindings::trace_names);
  emscripten::function("attentionOptionFields", +[] { return std::string(attn::bindings::kAttentionOptionFields); });
}
