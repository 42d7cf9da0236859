#include "c/handles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <variant>

namespace attn {

namespace c {

namespace {

/// Reported if memory for a report is missing. Never freed.
attn_error out_of_memory{ATTN_ERROR_MEMORY, "not enough memory", "{}"};

constexpr attn_status status_of(ErrorCode code) { return static_cast<attn_status>(static_cast<int>(code) + 1); }
static_assert(status_of(ErrorCode::argument) == ATTN_ERROR_ARGUMENT && status_of(ErrorCode::busy) == ATTN_ERROR_BUSY);

std::string to_json(const ErrorDetail& detail) {
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [name, fact] : detail) std::visit([&, &key = name](const auto& value) { facts[key] = value; }, fact);
  return facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

attn_status report(attn_error** error, attn_status code, const char* message, const ErrorDetail& detail = {}) {
  if (error != nullptr) *error = std::make_unique<attn_error>(code, message, to_json(detail)).release();
  return code;
}

}  // namespace

attn_status status_of_exception(attn_error** error) noexcept {
  try {
    try {
      throw;
    } catch (const Error& e) {
      return report(error, status_of(e.code()), e.what(), e.detail());
    } catch (const std::bad_alloc&) {
      if (error != nullptr) *error = &out_of_memory;
      return ATTN_ERROR_MEMORY;
    } catch (const std::exception& e) {
      return report(error, ATTN_ERROR_INTERNAL, e.what());
    }
  } catch (...) {
    if (error != nullptr) *error = &out_of_memory;
    return ATTN_ERROR_MEMORY;
  }
}

void check_pointer(std::string_view op, const void* pointer, std::string_view argument) {
  if (pointer == nullptr) detail::fail(ErrorCode::argument, op, argument, {"a pointer"}, {"NULL"});
}

namespace {

Shape to_dims(std::string_view op, std::string_view argument, std::size_t rank, const std::int64_t* dims) {
  if (rank > Shape::kMaxRank) detail::fail(ErrorCode::shape, op, argument, {"a rank of at most 8"}, {"rank ", rank});
  if (rank > 0) check_pointer(op, dims, std::string(argument) + ".dims");
  Shape shape;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (dims[axis] < 0) detail::fail(ErrorCode::shape, op, argument, {"dims of at least 0"}, {dims[axis]});
    shape.push_back(dims[axis]);
  }
  return shape;
}

void check_data(std::string_view op, std::string_view argument, const void* data, const Shape& shape) {
  if (checked_size(shape, op, argument) > 0) check_pointer(op, data, std::string(argument) + ".data");
}

}  // namespace

TensorView to_view(std::string_view op, std::string_view argument, const attn_view& given) {
  const Shape shape = to_dims(op, argument, given.rank, given.dims);
  check_data(op, argument, given.data, shape);
  if (given.strides == nullptr) return {given.data, shape};
  Strides strides{};
  for (std::size_t axis = 0; axis < given.rank; ++axis) strides[axis] = static_cast<std::ptrdiff_t>(given.strides[axis]);
  return {given.data, shape, strides};
}

void copy_numbers(const TensorView& from, std::span<float> to) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (float& number : to) {
    std::ptrdiff_t place = 0;
    for (std::size_t axis = 0; axis < from.shape.rank(); ++axis) place += static_cast<std::ptrdiff_t>(index[axis]) * from.strides[axis];
    number = from.data[place];
    for (std::size_t axis = from.shape.rank(); axis-- > 0 && ++index[axis] == from.shape[axis];) index[axis] = 0;
  }
}

Given::Given(std::string_view op, std::string_view argument, const attn_view* given) {
  check_pointer(op, given, argument);
  const TensorView view = to_view(op, argument, *given);
  TensorView::operator=(view);
  if (rows_without_gaps(view.shape, view.strides)) return;
  copy_.resize(static_cast<std::size_t>(checked_size(view.shape, op, argument)));
  copy_numbers(view, copy_);
  TensorView::operator=({copy_.data(), view.shape});
}

std::optional<Mask> to_mask(std::string_view op, std::string_view argument, const attn_mask* given) {
  if (given == nullptr) return std::nullopt;
  if (given->kind < ATTN_MASK_ATTEND || given->kind > ATTN_MASK_ADDITIVE)
    detail::fail(ErrorCode::mask, op, argument, {"the kind ATTN_MASK_ATTEND, _BLOCK or _ADDITIVE"}, {static_cast<int>(given->kind)});
  const auto kind = static_cast<MaskKind>(given->kind);
  const Shape shape = to_dims(op, argument, given->rank, given->dims);
  if ((given->flags != nullptr) == (given->values != nullptr))
    detail::fail(ErrorCode::mask, op, argument, {"flags or values"}, {given->flags == nullptr ? "neither" : "both"});
  if (given->flags != nullptr && kind == MaskKind::additive) detail::fail(ErrorCode::mask, op, argument, {"values for an additive mask"}, {"flags"});
  return given->flags != nullptr ? MaskView(kind, given->flags, shape) : MaskView(kind, given->values, shape);
}

std::size_t find_name(std::string_view op, std::string_view argument, const char* name, std::span<const std::string_view> names) {
  check_pointer(op, name, argument);
  const auto found = std::ranges::find(names, std::string_view(name));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string all;
  for (const std::string_view each : names) all.append(all.empty() ? "" : ", ").append(each);
  detail::fail(ErrorCode::argument, op, argument, {"one of ", all}, {name});
}

Trace to_trace(std::string_view op, const char* const* names, std::size_t count) {
  if (count > 0) check_pointer(op, names, "trace");
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits |= 1U << find_name(op, "trace", names[i], kTraceNames);
  return Trace::from_bits(bits);
}

std::optional<float> given_or_none(float value) { return std::isnan(value) ? std::nullopt : std::optional(value); }
std::optional<std::int64_t> given_or_none(std::int64_t value) { return value == 0 ? std::nullopt : std::optional(value); }
std::optional<std::string> given_or_none(const char* text) { return text != nullptr ? std::optional<std::string>(text) : std::nullopt; }

AttentionOptions to_options(std::string_view op, const attn_attention_options* given) {
  const attn_attention_options from = to_known(op, "options", given, attn_attention_options_init);
  if (from.fully_masked < ATTN_FULLY_MASKED_ZERO || from.fully_masked > ATTN_FULLY_MASKED_UNIFORM)
    detail::fail(ErrorCode::config, op, "fully_masked", {"ATTN_FULLY_MASKED_ZERO, _NAN or _UNIFORM"}, {static_cast<int>(from.fully_masked)});
  AttentionOptions options;
  options.mask = to_mask(op, "mask", from.mask);
  options.key_padding_mask = to_mask(op, "key_padding_mask", from.key_padding_mask);
  options.is_causal = from.is_causal;
  options.scale = given_or_none(from.scale);
  options.dropout = given_or_none(from.dropout);
  if (options.dropout) options.seed = from.seed;
  options.need_weights = from.need_weights;
  options.average_weights = from.average_weights;
  options.enable_gqa = from.enable_gqa;
  options.fully_masked = static_cast<FullyMasked>(from.fully_masked);
  options.trace = to_trace(op, from.trace, from.trace_count);
  options.softcap = given_or_none(from.softcap);
  if (from.window_left >= 0 || from.window_right >= 0) options.window = Window{from.window_left, from.window_right};
  return options;
}

}  // namespace c

}  // namespace attn

attn::StateView attn_tensors::state() const {
  attn::StateView views;
  for (const auto& [name, entry] : entries)
    if (entry.dtype == ATTN_FLOAT32) views.emplace(name, attn::TensorView(static_cast<const float*>(entry.data.get()), attn::to_shape(entry.dims)));
  return views;
}

extern "C" {

attn_status attn_error_code(const attn_error* error) { return error != nullptr ? error->code : ATTN_OK; }
const char* attn_error_message(const attn_error* error) { return error != nullptr ? error->message.c_str() : ""; }
const char* attn_error_detail(const attn_error* error) { return error != nullptr ? error->detail.c_str() : "{}"; }
void attn_error_free(attn_error* error) {
  if (error != &attn::c::out_of_memory) delete error;
}

const char* attn_status_name(attn_status status) {
  if (status == ATTN_OK) return "OK";
  if (status == ATTN_ERROR_INTERNAL) return "INTERNAL";
  const auto code = static_cast<std::size_t>(status) - 1;
  return code < attn::kErrorCodeNames.size() ? attn::kErrorCodeNames[code].data() : nullptr;
}

}  // extern "C"
