#include "attn/ops/attention_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/ops/attention_core.hpp"

namespace attn::detail {
namespace {

/// Positions go from -kLast to kLast; a window of four times that has no end.
constexpr std::int64_t kLast = std::int64_t{1} << 53;

void check_values(std::string_view op, std::string_view argument, const MaskView& mask) {
  if (!rows_without_gaps(mask.shape, mask.strides)) fail(ErrorCode::mask, op, argument, {"rows without gaps"}, {"strided"});
  if (mask.kind != MaskKind::additive) return;
  if (mask.flags != nullptr) fail(ErrorCode::mask, op, argument, {"float values, since it is additive"}, {"of bytes"});
  const std::size_t rank = mask.shape.rank();
  const std::int64_t width = mask.shape.back(0);
  // All rows, whatever lies between them; an axis that is not there has one element.
  const auto dim = [&](std::size_t axis) { return axis + 1 < rank ? mask.shape[axis] : 1; };
  for (std::int64_t i = 0; i < dim(0); ++i)
    for (std::int64_t j = 0; j < dim(1); ++j)
      for (std::int64_t k = 0; k < dim(2); ++k) {
        const float* const row = mask.values + i * mask.strides[0] + (rank > 2 ? j * mask.strides[1] : 0) + (rank > 3 ? k * mask.strides[2] : 0);
        for (std::int64_t at = 0; at < width; ++at)
          if (std::isnan(row[at]) || row[at] == std::numeric_limits<float>::infinity())
            fail(ErrorCode::mask, op, argument, {"additive values that are finite or -Infinity"},
                 {std::isnan(row[at]) ? "holding NaN" : "holding +Infinity"});
      }
}

bool broadcasts(std::int64_t dim, std::int64_t size) { return dim == 1 || dim == size; }

/// Throws MASK where a mask of the spec does not fit (B,H,L,S) or has values that it must not have.
void check_masks(std::string_view op, const AttentionSpec& spec, const AttentionSizes& sizes) {
  const std::int64_t B = sizes.B, H = spec.num_heads, L = sizes.L, S = sizes.S - spec.extra_keys;
  if (spec.mask) {
    const Shape& shape = spec.mask->shape;
    const std::size_t rank = shape.rank();
    bool fits = rank >= 1 && rank <= 4 && shape.back(0) == S;
    if (fits && rank >= 2) fits = broadcasts(shape.back(1), L);
    if (fits && rank == 4) fits = broadcasts(shape[1], H);
    if (fits && rank >= 3) fits = broadcasts(shape[0], B);
    if (!fits) {
      const bool torch_form = rank == 3 && shape[0] == B * H && H > 1;
      fail(ErrorCode::mask, op, "mask",
           {Shape{S}, ", ", Shape{L, S}, ", ", Shape{B, L, S}, " or ", Shape{B, H, L, S}, ", where B, H and L may be 1",
            torch_form ? "; torch's (B*H,L,S) has to be reshaped to (B,H,L,S)" : ""},
           {shape});
    }
    check_values(op, "mask", *spec.mask);
  }
  if (spec.key_padding_mask) {
    const Shape& shape = spec.key_padding_mask->shape;
    // Inputs that came without B may have such a mask, too.
    const bool fits = (shape.rank() == 2 && shape[1] == S && broadcasts(shape[0], B)) || (!sizes.has_batch && shape == Shape{S});
    if (!fits) fail(ErrorCode::mask, op, "key_padding_mask", {Shape{B, S}}, {shape});
    check_values(op, "key_padding_mask", *spec.key_padding_mask);
  }
}

/// The shape without B or H where the inputs have none.
Shape seen(const AttentionSizes& sizes, const Shape& shape) {
  Shape rest;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if ((axis != 0 || sizes.has_batch) && (axis != 1 || sizes.has_heads)) rest.push_back(shape[axis]);
  return rest;
}

Shape weights_shape(const AttentionSpec& spec, const AttentionSizes& sizes) {
  if (!spec.need_weights) return {};
  return seen(sizes, {sizes.B, spec.average_weights ? 1 : spec.num_heads, sizes.L, sizes.S});
}

Shape present_shape(const AttentionSpec& spec, const AttentionSizes& sizes, std::int64_t width) {
  if (!spec.output_present) return {};
  return seen(sizes, {sizes.B, spec.num_key_value_heads, sizes.S, width});
}

Shape trace_shape(TraceName name, const AttentionSpec& spec, const AttentionSizes& sizes, const Shape& output) {
  const std::int64_t B = sizes.B, H = spec.num_heads, Hkv = spec.num_key_value_heads, L = sizes.L, S = sizes.S;
  const std::int64_t D = spec.head_dim, Dv = spec.value_head_dim, given = S - spec.extra_keys - sizes.past;
  switch (name) {
    case TraceName::q_proj:
      return seen(sizes, {B, L, H * D});
    case TraceName::k_proj:
      return seen(sizes, {B, given, Hkv * D});
    case TraceName::v_proj:
      return seen(sizes, {B, given, Hkv * Dv});
    case TraceName::q:
      return seen(sizes, {B, H, L, sizes.query_width});
    case TraceName::k:
      return seen(sizes, {B, Hkv, S, sizes.key_width});
    case TraceName::v:
      return seen(sizes, {B, Hkv, S, Dv});
    case TraceName::scores:
    case TraceName::masked_scores:
    case TraceName::probabilities:
    case TraceName::weights:
      return seen(sizes, {B, H, L, S});
    case TraceName::weighted_values:
      return seen(sizes, {B, H, L, S, Dv});
    case TraceName::context:
      return seen(sizes, {B, H, L, Dv});
    case TraceName::merged:
      return seen(sizes, {B, L, H * Dv});
    default:
      return output;
  }
}

std::array<Shape, kAttentionTraceCount> shapes_of_traces(const AttentionSpec& spec, const AttentionSizes& sizes, const Shape& output) {
  std::array<Shape, kAttentionTraceCount> shapes;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (const auto name = static_cast<TraceName>(i); spec.trace.has(name)) shapes[i] = trace_shape(name, spec, sizes, output);
  return shapes;
}

}  // namespace

AttentionPlan::AttentionPlan(std::string_view op, const AttentionSpec& spec_, const AttentionSizes& sizes_, const Shape& output_,
                             MemoryEstimate& memory)
    : spec(spec_),
      sizes(sizes_),
      output(output_),
      weights(weights_shape(spec, sizes)),
      present_key(present_shape(spec, sizes, sizes.key_width)),
      present_value(present_shape(spec, sizes, spec.value_head_dim)),
      trace_shapes(shapes_of_traces(spec, sizes, output)) {
  check_masks(op, spec, sizes);
  if (spec.need_weights && spec.average_weights) memory.add("weights of every head", {sizes.B, spec.num_heads, sizes.L, sizes.S});
  if (spec.need_weights) memory.add("weights", weights);
  if (spec.output_present) {
    memory.add("present keys", present_key);
    memory.add("present values", present_value);
  }
  for (std::size_t i = 0; i < trace_shapes.size(); ++i)
    if (spec.trace.has(static_cast<TraceName>(i))) memory.add(kTraceNames[i], trace_shapes[i]);
  memory.add("output", output);
  add_core_memory(spec, sizes, memory);
}

HeadDims head_dims(std::string_view op, std::string_view name, const TensorView& x) {
  const std::size_t rank = x.shape.rank();
  if (rank < 2 || rank > 4) fail(ErrorCode::shape, op, name, {"rank 2, 3 or 4"}, {x.shape});
  return {.B = rank >= 3 ? x.shape[0] : 1, .H = rank == 4 ? x.shape[1] : 1, .rows = x.shape.back(1), .width = x.shape.back(0)};
}

Trace available_traces(std::string_view op, Trace asked, Trace available, std::string_view names) {
  constexpr Trace kAttention = Trace::of_attention();
  const std::uint32_t complete = asked.bits() | Trace{TraceName::weighted_values}.bits();
  if ((complete & kAttention.bits()) == kAttention.bits()) return Trace::from_bits(asked.bits() & available.bits());
  for (std::size_t i = 0; i < kTraceNames.size(); ++i)
    if (const auto name = static_cast<TraceName>(i); asked.has(name) && !available.has(name))
      fail(ErrorCode::argument, op, "trace", {"names among ", names},
           {"a list with ", kTraceNames[i], ", which only ", i < kAttentionTraceCount ? "MultiHeadAttention and " : "", "encoder layers have"});
  return asked;
}

float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D) {
  if (!scale) return static_cast<float>(1.0 / std::sqrt(static_cast<double>(D)));
  if (!std::isfinite(*scale)) fail(ErrorCode::config, op, "scale", {"a finite number"}, {std::isnan(*scale) ? "NaN" : "infinite"});
  return *scale;
}

float check_softcap(std::string_view op, float softcap) {
  // Its inverse has to be finite, too.
  if (softcap != 0 && (!(softcap > 0) || !std::isnormal(softcap))) fail(ErrorCode::config, op, "softcap", {"0 or a finite number above"}, {softcap});
  return softcap;
}

Window check_window(std::string_view op, const Window& window) {
  for (const std::int64_t side : {window.left, window.right})
    if (side < -1) fail(ErrorCode::config, op, "window", {"whole numbers from 0 on, or -1"}, {side});
  return {std::min(window.left, 4 * kLast), std::min(window.right, 4 * kLast)};
}

std::int64_t check_query_offset(std::string_view op, std::int64_t offset) {
  if (offset < -kLast || offset > kLast) fail(ErrorCode::config, op, "query_offset", {-kLast, " to ", kLast}, {offset});
  return offset;
}

}  // namespace attn::detail
