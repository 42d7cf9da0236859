#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/parameter.hpp"
#include "attn/ops/init.hpp"
#include "attn/tensor/state.hpp"

namespace attn::detail {

/// Names of a state that do not match.
struct Mismatch {
  std::vector<std::string> missing, unexpected, mis_shaped;

  /// Throws one MISMATCH that lists all of them, if there are any: "op: argument does not fit; missing: ...".
  void check(std::string_view op, std::string_view argument);
};

/// Throws one MISMATCH that lists every mis-shaped tensor and, if strict, every missing and unexpected name.
void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateView& state, bool strict);

/// Returns the values of that name, or null if the state does not have it.
const float* find_data(const StateView& state, const std::string& name);
/// Copies values to the buffer of that name, if the target has one.
void save_data(const StateTarget& target, const std::string& name, std::span<const float> values);

// Operations of Module on the parameters of a layer, by the names of its state.
std::map<std::string, Shape> shapes_of(const StateTensors& tensors);
/// Allocates all parameters and initializes them as torch does, from seed 0. Throws MEMORY if they exceed the limit.
void create(std::string_view op, const StateTensors& tensors);
/// Throws MISMATCH, SHAPE, and MEMORY as convert(); nothing has changed then.
void load_state(const StateTensors& tensors, const StateView& state, bool strict);
/// Loads the tensors that the state has, which the caller has checked.
void set_state(const StateTensors& tensors, const StateView& state);
void save_state(const StateTensors& tensors, const StateTarget& target);
std::map<std::string, Int8Weight> int8_state(const StateTensors& tensors);
/// Draws new float32 weights. Throws MEMORY as convert(); nothing has changed then.
void initialize(const StateTensors& tensors, const InitOptions& options);
/// Converts weights to int8. Throws FORMAT for NaN and infinity, UNSUPPORTED for rows that are too long; nothing has changed then.
void quantize(const StateTensors& tensors);
/// Converts all weights that can be int8 to int8 or back to float32. Throws MEMORY, naming `op`; nothing has changed then.
void convert(std::string_view op, const StateTensors& tensors, bool to_int8);

/// Throws MEMORY if `copies` packed copies of these parameters, plus the largest of them row-major for drawing it, exceed the limit.
void check_parameter_memory(std::string_view op, const std::map<std::string, Shape>& shapes, std::int64_t copies = 1);

/// Throws FORMAT for NaN and infinity, UNSUPPORTED for more columns than exact sums of int8 allow.
void check_int8_weight(std::string_view op, std::string_view name, const Shape& shape, std::span<const float> values);

/// Throws UNSUPPORTED for int8, which has no gradients.
void check_float32(std::string_view op, std::string_view name, bool is_quantized);

/// Throws CONFIG unless the value is within 1 .. 2³¹ - 1, so that products of two such values fit in 64 bits.
std::int64_t check_positive(std::string_view op, std::string_view name, std::int64_t value);

}  // namespace attn::detail
