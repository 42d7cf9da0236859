#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace attn {

/// Uninitialised float32 memory that starts at a cache line, for packed weights and scratch.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t size) : data_(static_cast<float*>(::operator new(size * sizeof(float), kAlignment))), size_(size) {}

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<float[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace attn
