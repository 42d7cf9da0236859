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

struct Mismatch {
  std::vector<std::string> missing, unexpected, mis_shaped;

  /// Throws one MISMATCH that lists all of them, if there are any.
  void check(std::string_view op, std::string_view argument);
};

/// Missing and unexpected names are errors only if strict.
void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateView& state, bool strict);

/// Null if the state does not have the name.
const float* find_data(const StateView& state, const std::string& name);
void save_data(const StateTarget& target, const std::string& name, std::span<const float> values);

// Operations of Module. load_state(), initialize(), quantize() and convert() change nothing if they throw.
std::map<std::string, Shape> shapes_of(const StateTensors& tensors);
/// Allocates and initializes as torch does, from seed 0.
void create(std::string_view op, const StateTensors& tensors);
void load_state(const StateTensors& tensors, const StateView& state, bool strict);
/// The caller has checked the state.
void set_state(const StateTensors& tensors, const StateView& state);
void save_state(const StateTensors& tensors, const StateTarget& target);
std::map<std::string, Int8Weight> int8_state(const StateTensors& tensors);
void initialize(const StateTensors& tensors, const InitOptions& options);
void quantize(const StateTensors& tensors);
void convert(std::string_view op, const StateTensors& tensors, bool to_int8);

/// Throws MEMORY if `copies` packed copies, plus the largest parameter row-major for drawing it, exceed the limit.
void check_parameter_memory(std::string_view op, const std::map<std::string, Shape>& shapes, std::int64_t copies = 1);

/// Throws FORMAT for NaN and infinity, UNSUPPORTED for more columns than exact sums of int8 allow.
void check_int8_weight(std::string_view op, std::string_view name, const Shape& shape, std::span<const float> values);

/// int8 has no gradients.
void check_float32(std::string_view op, std::string_view name, bool is_quantized);

/// Throws CONFIG outside 1 .. 2³¹ - 1, so that products of two such values fit in 64 bits.
std::int64_t check_positive(std::string_view op, std::string_view name, std::int64_t value);

}  // namespace attn::detail
