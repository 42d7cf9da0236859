#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace attn {

/// Uninitialised memory that starts at a cache line.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t size) : data_(static_cast<T*>(::operator new(bytes_of(size), kAlignment))), size_(size) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static std::size_t bytes_of(std::size_t size) {
    if (size > ~std::size_t{0} / sizeof(T)) throw std::bad_alloc();
    return size * sizeof(T);
  }
  struct Free {
    void operator()(T* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

using AlignedFloats = AlignedArray<float>;
using AlignedBytes = AlignedArray<std::int8_t>;

}  // namespace attn
