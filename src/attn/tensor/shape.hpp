#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace attn {

/// Dimensions of a row-major tensor, outermost first. Sizes are 64 bits wide also where std::size_t is not, so that a
/// product can be checked before anything is allocated.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return dims_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return dims_[axis]; }
  /// Size of the axis counted from the last one: back(0) is the width.
  std::int64_t back(std::size_t axis) const { return dims_[rank_ - 1 - axis]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  void push_back(std::int64_t dim);

  bool operator==(const Shape& other) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// How far neighbours along each dimension lie apart, in elements.
using Strides = std::array<std::ptrdiff_t, Shape::kMaxRank>;

/// Of a row-major tensor without gaps.
Strides strides_of(const Shape& shape);

/// Whether the numbers of a row, which is what the last dimension counts, lie side by side.
inline bool rows_without_gaps(const Shape& shape, const Strides& strides) {
  return shape.rank() == 0 || shape.back(0) <= 1 || strides[shape.rank() - 1] == 1;
}

/// Whether elements lie in row-major order without gaps.
bool is_contiguous(const Shape& shape, const Strides& strides);

/// "(2,8,384)".
std::string to_string(const Shape& shape);

/// Number of elements. Throws MEMORY, naming `op` and `what`, where the bytes of that many floats could not be addressed.
std::int64_t checked_size(const Shape& shape, std::string_view op, std::string_view what);

/// Bytes that one call may ask for, in the whole process but where a context says otherwise. Requests above are MEMORY before anything is
/// allocated. Default: what the address space holds. May change while other threads work.
void set_memory_limit(std::uint64_t bytes);
/// Of the context in force here, else the process's.
std::uint64_t memory_limit();

namespace detail {

/// What this thread's calls may ask for from now on, null: what the process may. Returns what it was. Natively only.
const std::uint64_t* put_memory_limit_in_force(const std::uint64_t* bytes) noexcept;

}  // namespace detail

/// Collects what a call is going to allocate, in 64 bits, and refuses it in one piece when it is too much.
class MemoryEstimate {
 public:
  /// `op` outlives the estimate.
  explicit MemoryEstimate(std::string_view op) : op_(op) {}
  void add(std::string_view what, const Shape& shape) {
    bytes_ = saturating_add(bytes_, 4 * static_cast<std::uint64_t>(checked_size(shape, op_, what)));
  }
  /// Throws MEMORY when the sum is above the limit.
  void check(std::string_view what = "the result with its work space") const;

 private:
  static std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

  std::string_view op_;
  std::uint64_t bytes_ = 0;
};

}  // namespace attn
