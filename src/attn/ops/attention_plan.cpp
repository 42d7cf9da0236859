#include "attn/ops/attention_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/ops/attention_core.hpp"
#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

/// Positions are from -kLast to kLast; a window of 4 · kLast is unbounded.
constexpr std::int64_t kLast = std::int64_t{1} << 53;

void check_values(std::string_view op, std::string_view argument, const MaskView& mask) {
  if (!rows_without_gaps(mask.shape, mask.strides)) fail(ErrorCode::mask, op, argument, {"rows without gaps"}, {"strided"});
  if (mask.kind != MaskKind::additive) return;
  if (mask.flags != nullptr) fail(ErrorCode::mask, op, argument, {"float values for an additive mask"}, {"bytes"});
  const Rows rows({mask.values, mask.shape, mask.strides});
  for (std::size_t row = 0; row < rows.count(); ++row)
    for (std::size_t i = 0; i < rows.width(); ++i)
      if (const float value = rows[row][i]; std::isnan(value) || value == std::numeric_limits<float>::infinity())
        fail(ErrorCode::mask, op, argument, {"additive values that are finite or -Infinity"},
             {std::isnan(value) ? "an array with NaN" : "an array with +Infinity"});
}

bool broadcasts(std::int64_t dim, std::int64_t size) { return dim == 1 || dim == size; }

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
      fail(ErrorCode::mask, op, "mask", {Shape{S}, ", ", Shape{L, S}, ", ", Shape{B, L, S}, " or ", Shape{B, H, L, S}, ", where B, H and L may be 1"},
           {shape}, torch_form ? "Reshape torch's (B*H,L,S) to (B,H,L,S)" : "");
    }
    check_values(op, "mask", *spec.mask);
  }
  if (spec.key_padding_mask) {
    const Shape& shape = spec.key_padding_mask->shape;
    // Without B in the inputs, the mask may omit it.
    const bool fits = (shape.rank() == 2 && shape[1] == S && broadcasts(shape[0], B)) || (!sizes.has_batch && shape == Shape{S});
    if (!fits) fail(ErrorCode::mask, op, "key_padding_mask", {Shape{B, S}}, {shape});
    check_values(op, "key_padding_mask", *spec.key_padding_mask);
  }
}

/// Removes B and H from (B,H,..) if the inputs lack them.
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

/// `given` is the number of this call's keys; the last four are widths of concatenated heads.
enum Size : std::uint8_t { B, H, L, S, Hkv, given, Dq, Dk, Dv, HD, HkvD, HkvDv, HDv, end };
constexpr Size kTraceSizes[][6] = {{B, L, HD, end},       {B, given, HkvD, end}, {B, given, HkvDv, end}, {B, H, L, Dq, end}, {B, Hkv, S, Dk, end},
                                   {B, Hkv, S, Dv, end},  {B, H, L, S, end},     {B, H, L, S, end},      {B, H, L, S, end},  {B, H, L, S, end},
                                   {B, H, L, S, Dv, end}, {B, H, L, Dv, end},    {B, L, HDv, end}};

std::array<Shape, kAttentionTraceCount> shapes_of_traces(const AttentionSpec& spec, const AttentionSizes& sizes, const Shape& output) {
  std::array<Shape, kAttentionTraceCount> shapes;
  if (!spec.trace.any()) return shapes;
  // Unsigned, because products of traces that are not requested may overflow.
  const auto times = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  };
  const std::int64_t of[] = {sizes.B,
                             spec.num_heads,
                             sizes.L,
                             sizes.S,
                             spec.num_key_value_heads,
                             sizes.S - spec.extra_keys - sizes.past,
                             sizes.query_width,
                             sizes.key_width,
                             spec.value_head_dim,
                             times(spec.num_heads, spec.head_dim),
                             times(spec.num_key_value_heads, spec.head_dim),
                             times(spec.num_key_value_heads, spec.value_head_dim),
                             times(spec.num_heads, spec.value_head_dim)};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!spec.trace.has(static_cast<TraceName>(i))) continue;
    Shape shape;
    if (i + 1 < shapes.size())
      for (const Size* size = kTraceSizes[i]; *size != end; ++size) shape.push_back(of[*size]);
    shapes[i] = i + 1 < shapes.size() ? seen(sizes, shape) : output;
  }
  return shapes;
}

}  // namespace

AttentionPlan::AttentionPlan(std::string_view op, const AttentionSpec& spec_, const AttentionSizes& sizes_, const Shape& output_)
    : spec(spec_),
      sizes(sizes_),
      output(output_),
      weights(weights_shape(spec, sizes)),
      present_key(present_shape(spec, sizes, sizes.key_width)),
      present_value(present_shape(spec, sizes, spec.value_head_dim)),
      trace_shapes(shapes_of_traces(spec, sizes, output)) {
  check_masks(op, spec, sizes);
}

AttentionBuffers counted_buffers(const AttentionPlan& plan) {
  AttentionBuffers buffers{.output = counted(plan.output, "output")};
  if (plan.spec.need_weights) buffers.weights = counted(plan.weights, "weights");
  if (plan.spec.output_present) {
    buffers.present_key = counted(plan.present_key, "present keys");
    buffers.present_value = counted(plan.present_value, "present values");
  }
  for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i)
    if (plan.spec.trace.has(static_cast<TraceName>(i))) buffers.trace[i] = counted(plan.trace_shapes[i], kTraceNames[i]);
  return buffers;
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
  const FloatEnvironment environment;
  if (!scale) return static_cast<float>(1.0 / std::sqrt(static_cast<double>(D)));
  if (!std::isfinite(*scale)) fail(ErrorCode::config, op, "scale", {"a finite number"}, {std::isnan(*scale) ? "NaN" : "infinite"});
  return *scale;
}

float check_softcap(std::string_view op, float softcap) {
  // Its inverse must be finite.
  if (softcap != 0 && (!(softcap > 0) || !std::isnormal(softcap)))
    fail(ErrorCode::config, op, "softcap", {"0 or a normal number above 0"}, {softcap});
  return softcap;
}

Window check_window(std::string_view op, const Window& window) {
  for (const std::int64_t side : {window.left, window.right})
    if (side < -1) fail(ErrorCode::config, op, "window", {"whole numbers of at least -1"}, {side});
  return {std::min(window.left, 4 * kLast), std::min(window.right, 4 * kLast)};
}

std::int64_t check_query_offset(std::string_view op, std::int64_t offset) {
  if (offset < -kLast || offset > kLast) fail(ErrorCode::config, op, "query_offset", {"a number from ", -kLast, " to ", kLast}, {offset});
  return offset;
}

}  // namespace attn::detail
