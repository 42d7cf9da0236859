#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/state.hpp"

namespace attn::detail {

/// Names that do not fit together.
struct Mismatch {
  std::vector<std::string> missing, unexpected, mis_shaped;

  /// Throws one MISMATCH that lists them all, unless there are none: "op: argument does not fit; missing: ...".
  void check(std::string_view op, std::string_view argument);
};

/// Throws one MISMATCH that lists every missing and unexpected name (where strict) and every mis-shaped one (always).
void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateView& state, bool strict);

/// Data of that name, null where the state does not have it.
const float* find_data(const StateView& state, const std::string& name);
/// Copies the numbers to where the target has the name, if it has.
void save_data(const StateTarget& target, const std::string& name, std::span<const float> values);

/// Throws MEMORY where so many copies of these parameters, packed, and the largest of them row-major while it is drawn would be
/// above the limit.
void check_parameter_memory(std::string_view op, const std::map<std::string, Shape>& shapes, std::int64_t copies = 1);

/// Throws FORMAT for a weight that has NaN or infinity, UNSUPPORTED for one with more columns than exact sums of int8 have room for.
void check_int8_weight(std::string_view op, std::string_view name, const Shape& shape, std::span<const float> values);

/// Throws UNSUPPORTED for what is int8: it has no gradients.
void check_float32(std::string_view op, std::string_view name, bool is_quantized);

/// Throws CONFIG unless 1 .. 2³¹ - 1: products of two of them stay within 64 bits.
std::int64_t check_positive(std::string_view op, std::string_view name, std::int64_t value);

}  // namespace attn::detail
