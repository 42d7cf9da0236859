#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "attn/tensor/dry_run.hpp"

namespace attn {
namespace detail {

/// Memory that starts at a cache line; in a dry run it is only counted.
void* allocate_lines(std::uint64_t bytes);
void free_lines(void* block, std::uint64_t bytes) noexcept;

}  // namespace detail

/// Uninitialised memory that starts at a cache line.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::uint64_t size)
      : data_(static_cast<T*>(detail::allocate_lines(detail::saturating_product(size, sizeof(T)))), Free{static_cast<std::size_t>(size)}) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return data_.get_deleter().size; }

 private:
  struct Free {
    std::size_t size = 0;
    void operator()(T* p) const { detail::free_lines(p, detail::saturating_product(size, sizeof(T))); }
  };
  std::unique_ptr<T[], Free> data_;
};

using AlignedFloats = AlignedArray<float>;
using AlignedBytes = AlignedArray<std::int8_t>;

}  // namespace attn
