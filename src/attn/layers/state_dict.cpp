#include "attn/layers/state_dict.hpp"

#include <algorithm>
#include <cmath>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// For a tensor `parameter` is its first piece.
void draw(const ParameterRef& parameter, std::int64_t rows, const InitOptions& options, std::span<float> values) {
  const auto width = static_cast<std::int64_t>(parameter.row_size());
  const bool is_torch = options.scheme == InitScheme::torch;
  InitOptions scheme = options;
  Random random(options.seed, parameter.stream);
  std::fill(values.begin(), values.end(), parameter.kind == ParameterKind::ones ? 1.0F : 0.0F);
  switch (parameter.kind) {
    case ParameterKind::projection:
      if (is_torch) scheme.scheme = InitScheme::xavier_uniform;
      [[fallthrough]];
    case ParameterKind::weight:
      return random.weight(values.data(), rows, width, scheme);
    case ParameterKind::bias:
      if (is_torch) random.uniform(values.data(), values.size(), 1 / std::sqrt(static_cast<double>(parameter.linear->in_features())));
      return;
    case ParameterKind::row:  // torch's xavier_normal_ has fan-in = fan-out = width
      if (is_torch) scheme.scheme = InitScheme::xavier_normal;
      return random.row(values.data(), width, scheme);
    case ParameterKind::embedding:
    case ParameterKind::table:
      is_torch ? random.normal(values.data(), values.size(), 1) : random.weight(values.data(), rows, width, scheme);
      if (parameter.zero_row >= 0) std::fill_n(values.data() + parameter.zero_row * width, width, 0.0F);
      return;
    case ParameterKind::zeros:
    case ParameterKind::ones:
      return;
  }
}

}  // namespace

std::map<std::string, Shape> shapes_of(const StateTensors& tensors) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : tensors) shapes.emplace(name, tensor.shape());
  return shapes;
}

void create(std::string_view op, const StateTensors& tensors) {
  check_parameter_memory(op, shapes_of(tensors));
  for (const auto& [name, tensor] : tensors)
    for (const ParameterRef& parameter : tensor.pieces) parameter.allocate();
  initialize(tensors, {});
}

void load_state(const StateTensors& tensors, const StateView& state, bool strict) {
  constexpr std::string_view kOp = "load_state_dict";
  check_state_dict(kOp, shapes_of(tensors), state, strict);
  convert(kOp, tensors, false);
  set_state(tensors, state);
}

void set_state(const StateTensors& tensors, const StateView& state) {
  for (const auto& [name, tensor] : tensors)
    if (const float* const values = find_data(state, name)) tensor.set_rows(0, {values, tensor.size()});
}

void save_state(const StateTensors& tensors, const StateTarget& target) {
  for (const auto& [name, tensor] : tensors)
    if (const auto found = target.find(name); found != target.end()) {
      const auto& [values, data, scale] = found->second;
      data != nullptr ? tensor.get_quantized("state_dict", name, data, scale) : tensor.get(values);
    }
}

std::map<std::string, Int8Weight> int8_state(const StateTensors& tensors) {
  std::map<std::string, Int8Weight> state;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_quantized()) continue;
    Int8Weight& weight = state[name];
    weight.shape = tensor.shape();
    weight.data.resize(tensor.size());
    weight.scale.resize(static_cast<std::size_t>(weight.shape[0]));
    tensor.get_quantized("int8_state_dict", name, weight.data.data(), weight.scale.data());
  }
  return state;
}

void initialize(const StateTensors& tensors, const InitOptions& options) {
  const FloatEnvironment environment;
  // Panels are drawn row-major first, everything else in place.
  std::size_t largest = 0;
  for (const auto& [name, tensor] : tensors)
    if (tensor.pieces.front().has_panels()) largest = std::max(largest, tensor.size());
  std::vector<float> numbers(largest);
  convert("initialize", tensors, false);
  for (const auto& [name, tensor] : tensors) {
    // torch draws in_proj_weight as one tensor; named schemes draw each projection with its own fan-in and fan-out.
    const bool is_whole = options.scheme == InitScheme::torch && tensor.pieces.front().kind == ParameterKind::projection;
    if (is_whole) {
      const std::span<float> values = std::span(numbers).first(tensor.size());
      draw(tensor.pieces.front(), tensor.shape()[0], options, values);
      tensor.set_rows(0, values);
      continue;
    }
    for (const ParameterRef& piece : tensor.pieces) {
      float* const values = piece.values();
      draw(piece, piece.shape[0], options, {values != nullptr ? values : numbers.data(), piece.size()});
      if (values == nullptr) piece.set_rows(0, std::span(numbers).first(piece.size()));
    }
  }
}

void quantize(const StateTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.can_be_int8()) continue;
    const StateTensor rows = tensor.by_rows();
    std::vector<float> values(rows.size());
    rows.get(values.data());
    check_int8_weight("quantize", name, rows.shape(), values);
  }
  convert("quantize", tensors, true);
}

void convert(std::string_view op, const StateTensors& tensors, bool to_int8) {
  struct Next {
    const ParameterRef* of;
    Linear linear;
    Table table;
  };
  std::vector<Next> all;
  for (const auto& [name, tensor] : tensors)
    for (const ParameterRef& parameter : tensor.pieces) {
      if (!parameter.can_be_int8() || parameter.is_quantized() == to_int8) continue;
      if (all.empty() && !to_int8) check_parameter_memory(op, shapes_of(tensors));
      Next& next = all.emplace_back(Next{&parameter, {}, {}});
      if (parameter.linear != nullptr)
        next.linear = parameter.linear->converted(to_int8);
      else
        next.table = parameter.table->converted(to_int8);
    }
  for (auto& [of, linear, table] : all)
    if (of->linear != nullptr)
      *of->linear = std::move(linear);
    else
      *of->table = std::move(table);
  for (const auto& [name, tensor] : tensors)
    for (const ParameterRef& parameter : tensor.pieces)
      if (parameter.reproducible != nullptr) *parameter.reproducible = to_int8;
}

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
  check_finite(op, name, values);
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
