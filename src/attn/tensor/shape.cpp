#include "attn/tensor/shape.hpp"

#include <atomic>
#include <cassert>
#include <limits>
#include <utility>

#include "attn/tensor/error.hpp"

namespace attn {
namespace {

// Half the address space, because pointer differences must be positive.
constexpr std::uint64_t kAddressable = static_cast<std::uint64_t>(std::numeric_limits<std::size_t>::max()) / 2 + 1;

constinit std::atomic<std::uint64_t> limit_of_process = sizeof(void*) == 4 ? std::uint64_t{1} << 32 : kAddressable;
#ifndef __wasm__
constinit thread_local const std::uint64_t* limit_in_force = nullptr;
#endif

[[noreturn]] void fail_memory(std::string_view op, const std::string& what, const std::string& needed, std::uint64_t bytes) {
  const std::string limit = detail::text({"at most ", std::to_string(bytes), " bytes"});
  ErrorDetail detail = detail::error_detail(op, what);
  detail.emplace("expected", limit);
  detail.emplace("got", needed);
  throw Error(ErrorCode::memory, detail::text({op, ": ", what, " needs ", needed, ", expected ", limit}), std::move(detail));
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (const std::int64_t dim : dims) push_back(dim);
}

void Shape::push_back(std::int64_t dim) {
  assert(rank_ < kMaxRank);
  dims_[rank_++] = dim;
}

Strides strides_of(const Shape& shape) {
  Strides strides{};
  std::uint64_t stride = 1;  // unsigned, because dimensions of an empty tensor may have any size
  for (std::size_t axis = shape.rank(); axis-- > 0; stride *= static_cast<std::uint64_t>(shape[axis]))
    strides[axis] = static_cast<std::ptrdiff_t>(stride);
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  const Strides expected = strides_of(shape);
  bool same = true, any = true;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    same = same && (shape[axis] == 1 || strides[axis] == expected[axis]);
    any = any && shape[axis] != 0;
  }
  return same || !any;
}

std::string to_string(const Shape& shape) {
  std::string dims = "(";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) dims += ',';
    dims += std::to_string(shape[axis]);
  }
  return dims + ')';
}

std::int64_t checked_size(const Shape& shape, std::string_view op, std::string_view what) {
  // A zero makes the tensor empty, however large the other dimensions are.
  for (const std::int64_t dim : shape)
    if (dim == 0) return 0;
  // One element fewer, so that the number of bytes can be represented.
  constexpr std::uint64_t kMaxElements = kAddressable / sizeof(float) * (sizeof(void*) == 4 ? 2 : 1) - 1;
  std::uint64_t size = 1;
  for (const std::int64_t dim : shape) {
    if (static_cast<std::uint64_t>(dim) > kMaxElements / size)
      fail_memory(op, detail::text({what, " ", shape}), "more bytes than can be addressed", memory_limit());
    size *= static_cast<std::uint64_t>(dim);
  }
  return static_cast<std::int64_t>(size);
}

void set_memory_limit(std::uint64_t bytes) { limit_of_process.store(bytes, std::memory_order_relaxed); }

std::uint64_t memory_limit() {
#ifndef __wasm__
  if (limit_in_force != nullptr) return *limit_in_force;
#endif
  return limit_of_process.load(std::memory_order_relaxed);
}

#ifndef __wasm__
const std::uint64_t* detail::put_memory_limit_in_force(const std::uint64_t* bytes) noexcept { return std::exchange(limit_in_force, bytes); }
#endif

void detail::check_memory_limit(std::string_view op, std::string_view what, std::uint64_t bytes) {
  const std::uint64_t limit = memory_limit();
  if (bytes > limit) fail_memory(op, std::string(what), detail::text({std::to_string(bytes), " bytes"}), limit);
}

void MemoryEstimate::add(std::string_view what, std::initializer_list<std::int64_t> dims) { add(what, Shape(dims)); }

void MemoryEstimate::check(std::string_view what) const { detail::check_memory_limit(op_, what, bytes_); }

}  // namespace attn
