#include "attn/layers/state_dict.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"

namespace attn::detail {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateView& state, bool strict) {
  Mismatch mismatch;
  auto& [missing, unexpected, mis_shaped] = mismatch;
  for (const auto& [name, shape] : expected) {
    const auto found = state.find(name);
    if (found == state.end()) {
      if (strict) missing.push_back(name);
    } else if (const Shape& got = found->second.shape; got != shape) {
      mis_shaped.push_back(text({name, " has shape ", got, ", expected ", shape}));
    } else if (!is_contiguous(shape, found->second.strides)) {
      fail(ErrorCode::shape, op, name, {"row-major numbers without gaps"}, {"strided"});
    }
  }
  if (strict)
    for (const auto& [name, tensor] : state)
      if (!expected.contains(name)) unexpected.push_back(name);
  mismatch.check(op, "state");
}

void Mismatch::check(std::string_view op, std::string_view argument) {
  if (missing.empty() && unexpected.empty() && mis_shaped.empty()) return;
  std::string message = text({op, ": ", argument, " does not fit"});
  const auto list = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) message += text({"; ", title, ": ", join(names)});
  };
  list("missing", missing);
  list("unexpected", unexpected);
  list("mis-shaped", mis_shaped);
  ErrorDetail detail = error_detail(op, argument);
  detail.emplace("missing", std::move(missing));
  detail.emplace("unexpected", std::move(unexpected));
  detail.emplace("mis_shaped", std::move(mis_shaped));
  throw Error(ErrorCode::mismatch, message, std::move(detail));
}

void check_parameter_memory(std::string_view op, const std::map<std::string, Shape>& shapes, std::int64_t copies) {
  constexpr std::string_view kWhat = "the state";
  MemoryEstimate memory(op);
  Shape largest{0, 0};
  for (const auto& [name, shape] : shapes) {
    const bool matrix = shape.rank() == 2;
    memory.add(kWhat, matrix ? Shape{copies, shape[0] + 64, shape[1] + 1} : Shape{copies, shape.back(0)});
    if (matrix && checked_size(shape, op, kWhat) > largest[0] * largest[1]) largest = shape;
  }
  memory.add(kWhat, largest);
  memory.check(kWhat);
}

void check_int8_weight(std::string_view op, std::string_view name, const Shape& shape, std::span<const float> values) {
  if (shape.back(0) > kernels::kMostInt8Terms)
    fail(ErrorCode::unsupported, op, name, {"rows of at most ", kernels::kMostInt8Terms, " numbers"}, {shape},
         "Sums of longer rows could leave 32 bits");
  if (!kernels::best().all_finite(values.data(), 1, values.size())) fail(ErrorCode::format, op, name, {"finite numbers"}, {"NaN or infinity"});
}

void check_float32(std::string_view op, std::string_view name, bool is_quantized) {
  if (is_quantized)
    fail(ErrorCode::unsupported, op, name, {"float32 weights"}, {"int8, which has no gradients"},
         "load_state_dict() and initialize() make them float32");
}

std::int64_t check_positive(std::string_view op, std::string_view name, std::int64_t value) {
  if (value <= 0 || value > 0x7fffffff) fail(ErrorCode::config, op, name, {"a whole number from 1 to 2147483647"}, {value});
  return value;
}

const float* find_data(const StateView& state, const std::string& name) {
  const auto found = state.find(name);
  return found == state.end() ? nullptr : found->second.data;
}

void save_data(const StateTarget& target, const std::string& name, std::span<const float> values) {
  if (const auto found = target.find(name); found != target.end()) std::copy(values.begin(), values.end(), found->second.values);
}

}  // namespace attn::detail
