#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "attn/c.h"
#include "attn/core.hpp"
#include "attn/tensor/large_pages.hpp"

namespace attn::c {

template <class T>
class Numbers {
 public:
  using value_type = T;

  Numbers() = default;
  explicit Numbers(const Shape& dims)
      : dims_(dims.begin(), dims.end()),
        size_(static_cast<std::size_t>(checked_size(dims, "attn", "a result"))),
        values_(std::make_unique_for_overwrite<T[]>(size_)) {
    detail::prefer_large_pages(values_.get(), size_ * sizeof(T));
  }
  Numbers(const T* from, const Shape& dims) : Numbers(dims) { std::copy_n(from, size_, values_.get()); }

  const std::vector<std::int64_t>& shape() const { return dims_; }
  std::size_t dimension() const { return dims_.size(); }
  std::size_t size() const { return size_; }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  T* begin() { return data(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  std::vector<std::int64_t> dims_;
  std::size_t size_ = 0;
  std::unique_ptr<T[]> values_;
};

}  // namespace attn::c

namespace attn {

// Redefines tensor.hpp's name: the library must not export attn's C++ (check-symbols --c).
template <std::size_t N, class T>
struct TensorType {
  using type = c::Numbers<T>;
};

template <class>
struct StateDictType {
  using type = std::map<std::string, c::Numbers<float>>;
};

namespace detail {

template <std::size_t N, class T>
TensorOf<N, T> empty(const Shape& shape) {
  return c::Numbers<T>(shape);
}

template <class E>
void copy_elements(const E& expression, float* to) {
  std::copy(expression.begin(), expression.end(), to);
}

}  // namespace detail

}  // namespace attn

struct attn_error {
  attn_status code;
  std::string message, detail;
};

struct attn_tensors {
  struct Entry {
    attn_dtype dtype = ATTN_FLOAT32;
    std::shared_ptr<const void> data;
    std::vector<std::int64_t> dims;
  };

  template <class T>
  void put(std::string name, attn::c::Numbers<T>&& numbers) {
    constexpr attn_dtype dtype = std::is_same_v<T, float>          ? ATTN_FLOAT32
                                 : std::is_same_v<T, std::int32_t> ? ATTN_INT32
                                 : std::is_same_v<T, std::int64_t> ? ATTN_INT64
                                                                   : ATTN_UINT8;
    auto kept = std::make_shared<const attn::c::Numbers<T>>(std::move(numbers));
    entries[std::move(name)] = {dtype, std::shared_ptr<const void>(kept, kept->data()), kept->shape()};
  }
  void put_all(const std::string& name, std::vector<attn::c::Numbers<float>>&& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) put(name + "." + std::to_string(i), std::move(numbers[i]));
  }
  void put_trace(const std::string& name, std::map<attn::TraceName, attn::c::Numbers<float>>&& trace) {
    for (auto& [of, numbers] : trace) put(name + "." + std::string(to_string(of)), std::move(numbers));
  }
  attn::StateView state() const;

  std::map<std::string, Entry, std::less<>> entries;
  std::map<std::string, std::vector<std::string>, std::less<>> texts;
};

namespace attn::c {

void check_pointer(std::string_view op, const void* pointer, std::string_view argument);

attn_status status_of_exception(attn_error** error) noexcept;

/// Postpones cancellation: its exception must not be caught, nor leave threads of the library running.
class NotCancelled {
 public:
#ifdef _WIN32
  NotCancelled() {}
#else
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
#endif
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = 0;
};

template <class F>
attn_status guarded(attn_error** error, F&& run) noexcept {
  const NotCancelled not_cancelled;
  try {
    run();
    return ATTN_OK;
  } catch (...) {
    return status_of_exception(error);
  }
}

template <class T, class F>
attn_status making(std::string_view op, T** to, attn_error** error, F&& make) noexcept {
  return guarded(error, [&] {
    check_pointer(op, to, "the place of the result");
    *to = make().release();
  });
}

/// Throws ARGUMENT if data is missing, SHAPE for a negative dimension or a rank above 8.
TensorView to_view(std::string_view op, std::string_view argument, const attn_view& given);

void copy_numbers(const TensorView& from, std::span<float> to);

/// Copies rows with gaps.
class Given : public TensorView {
 public:
  Given(std::string_view op, std::string_view argument, const attn_view* given);
  Given(const Given&) = delete;  // the view may point to copy_
  Given& operator=(const Given&) = delete;

 private:
  std::vector<float> copy_;
};

std::optional<Mask> to_mask(std::string_view op, std::string_view argument, const attn_mask* given);
Trace to_trace(std::string_view op, const char* const* names, std::size_t count);
std::size_t find_name(std::string_view op, std::string_view argument, const char* name, std::span<const std::string_view> names);
/// `size` may be that of an older or newer header.
template <class Options>
void init_options(Options* options, std::size_t size, Options defaults) {
  defaults.size = size;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(options, &defaults, std::min(size, sizeof(Options)));
}
/// Defaults for NULL. Throws ARGUMENT without init_options() or for another version of the struct; a version with more
/// fields would accept earlier sizes here.
template <class Options>
Options to_known(std::string_view op, std::string_view argument, const Options* given, void (*init)(Options*, std::size_t)) {
  Options options;
  init(&options, sizeof(Options));
  if (given == nullptr) return options;
  if (given->size != sizeof(Options))
    detail::fail(ErrorCode::argument, op, std::string(argument) + ".size", {sizeof(Options), " bytes"}, {given->size},
                 "Call the _init() function of the struct before you set its fields, and use the header of this version of the library");
  return *given;
}
AttentionOptions to_options(std::string_view op, const attn_attention_options* given);
/// None for NaN.
std::optional<float> given_or_none(float value);
/// None for 0.
std::optional<std::int64_t> given_or_none(std::int64_t value);
std::optional<std::string> given_or_none(const char* text);

template <std::size_t N, std::size_t W>
std::unique_ptr<attn_tensors> to_tensors(AttentionResult<N, W>&& result) {
  auto tensors = std::make_unique<attn_tensors>();
  tensors->put("output", std::move(result.output));
  if (result.weights) tensors->put("weights", std::move(*result.weights));
  if (result.trace) tensors->put_trace("trace", std::move(*result.trace));
  return tensors;
}

template <class Result>
void put_layers(attn_tensors& tensors, Result&& result) {
  if (result.attentions) tensors.put_all("attentions", std::move(*result.attentions));
  if (result.hidden_states) tensors.put_all("hidden_states", std::move(*result.hidden_states));
  if (result.trace)
    for (auto& [layer, trace] : *result.trace) tensors.put_trace("trace." + std::to_string(layer), std::move(trace));
}

template <class State>
std::unique_ptr<attn_tensors> to_tensors(State&& state) {
  auto tensors = std::make_unique<attn_tensors>();
  for (auto& [name, numbers] : state) tensors->put(name, std::move(numbers));
  return tensors;
}

template <class Handle>
attn_status load_state_dict(Handle* handle, std::string_view argument, const attn_tensors* state, bool strict, attn_error** error) {
  return guarded(error, [&] {
    check_pointer("load_state_dict", handle, argument);
    check_pointer("load_state_dict", state, "state");
    handle->module.load_state(state->state(), strict);
  });
}
template <class Handle>
attn_status state_dict(const Handle* handle, std::string_view argument, attn_tensors** state, attn_error** error) {
  return making("state_dict", state, error, [&] {
    check_pointer("state_dict", handle, argument);
    return to_tensors(handle->module.state_dict());
  });
}

}  // namespace attn::c
