#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace attn {

/// Dimensions of a row-major tensor, outermost first. Sizes are always 64-bit, even if std::size_t is not, so that a
/// product can be checked before anything is allocated.
/// @code
/// attn::Shape shape{2, 8, 384};
/// std::cout << shape.rank() << ' ' << shape[1] << ' ' << shape.back(0) << ' ' << to_string(shape);  // 3 8 384 (2,8,384)
/// @endcode
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  /// Creates a shape of these sizes, at most kMaxRank.
  Shape(std::initializer_list<std::int64_t> dims);

  /// Returns the number of axes. Shape has an example of this and the next two functions.
  std::size_t rank() const { return rank_; }
  /// Returns the size of an axis counted from the first.
  std::int64_t operator[](std::size_t axis) const { return dims_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return dims_[axis]; }
  /// Returns the size of an axis counted from the last: back(0) is the width.
  std::int64_t back(std::size_t axis) const { return dims_[rank_ - 1 - axis]; }
  /// Returns the begin of the sizes, outermost first.
  /// @code
  /// std::int64_t count = 1;
  /// for (const std::int64_t size : attn::Shape{2, 8, 384}) count *= size;
  /// std::cout << count;  // 6144
  /// @endcode
  const std::int64_t* begin() const { return dims_.data(); }
  /// Returns the end of the sizes; begin() has an example.
  const std::int64_t* end() const { return dims_.data() + rank_; }
  /// Appends an axis as the last. The rank must be below kMaxRank.
  /// @code
  /// attn::Shape shape{2, 8};
  /// shape.push_back(384);
  /// std::cout << to_string(shape);  // (2,8,384)
  /// @endcode
  void push_back(std::int64_t dim);

  bool operator==(const Shape& other) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// Distances between neighbours along each dimension, in elements.
using Strides = std::array<std::ptrdiff_t, Shape::kMaxRank>;

/// Returns the strides of a row-major tensor without gaps.
/// @code
/// const attn::Strides strides = attn::strides_of({2, 3, 4});
/// std::cout << strides[0] << ' ' << strides[1] << ' ' << strides[2];  // 12 4 1
/// @endcode
Strides strides_of(const Shape& shape);

/// Returns whether the elements of each row (the last dimension) are adjacent.
/// @code
/// std::cout << attn::rows_without_gaps({2, 3}, {4, 1}) << ' ' << attn::rows_without_gaps({2, 3}, {1, 2});  // 1 0
/// @endcode
inline bool rows_without_gaps(const Shape& shape, const Strides& strides) {
  return shape.rank() == 0 || shape.back(0) <= 1 || strides[shape.rank() - 1] == 1;
}

/// Returns whether the elements are in row-major order without gaps.
/// @code
/// std::cout << attn::is_contiguous({2, 3}, {3, 1}) << ' ' << attn::is_contiguous({2, 3}, {4, 1});  // 1 0
/// @endcode
bool is_contiguous(const Shape& shape, const Strides& strides);

/// Formats a shape: "(2,8,384)".
/// @code
/// std::cout << to_string(attn::Shape{2, 8, 384});  // (2,8,384)
/// @endcode
std::string to_string(const Shape& shape);

/// Returns the number of elements. Throws MEMORY, with `op` and `what` in the message, if the bytes of that many floats
/// could not be addressed.
/// @code
/// std::cout << attn::checked_size({2, 8, 384}, "my_op", "x");  // 6144
/// @endcode
std::int64_t checked_size(const Shape& shape, std::string_view op, std::string_view what);

/// Sets the maximum number of bytes per call for the whole process; a Context can override it. A call that needs more
/// throws MEMORY before it allocates anything. Default: all addressable memory. Can be called while other threads work.
/// @code
/// const std::uint64_t before = attn::memory_limit();
/// attn::set_memory_limit(1 << 20);
/// std::cout << attn::memory_limit();  // 1048576
/// attn::set_memory_limit(before);
/// @endcode
void set_memory_limit(std::uint64_t bytes);
/// Returns the limit of the current context or, without one, of the process.
/// @code
/// attn::Context context({.memory_limit = 1 << 20});
/// attn::Context::Scope scope(context);
/// std::cout << attn::memory_limit();  // 1048576
/// @endcode
std::uint64_t memory_limit();

namespace detail {

/// Sets the limit for this thread's calls (null: the limit of the process) and returns the previous one. Native builds
/// only.
const std::uint64_t* put_memory_limit_in_force(const std::uint64_t* bytes) noexcept;

/// Throws MEMORY, with `op` and `what` in the message, if `bytes` exceed memory_limit().
void check_memory_limit(std::string_view op, std::string_view what, std::uint64_t bytes);

}  // namespace detail

/// Adds up, in 64 bits, the memory of data whose sizes are known before it is read or made: files, parameters, caches. It
/// refuses them as a whole if they are too much. Calls measure themselves instead: detail::check_memory().
/// @code
/// attn::MemoryEstimate memory("my_op");
/// memory.add("the scores", {1 << 20, 1 << 20});
/// memory.add("the output", {1 << 20, 64});
/// attn::Context context({.memory_limit = 1 << 30});
/// attn::Context::Scope scope(context);
/// try {
///   memory.check();
/// } catch (const attn::Error& error) {
///   std::cout << to_string(error.code());  // MEMORY
/// }
/// @endcode
class MemoryEstimate {
 public:
  /// Begins at 0 bytes. MemoryEstimate has an example of all members.
  ///
  /// @param op  function whose name errors get; must outlive the estimate
  explicit MemoryEstimate(std::string_view op) : op_(op) {}
  /// Adds the bytes of a float32 tensor.
  ///
  /// @param what   name of the tensor in the error
  /// @param shape  shape of the tensor
  /// @throws MEMORY if these bytes alone could not be addressed
  void add(std::string_view what, const Shape& shape) {
    bytes_ = saturating_add(bytes_, 4 * static_cast<std::uint64_t>(checked_size(shape, op_, what)));
  }
  void add(std::string_view what, std::initializer_list<std::int64_t> dims);
  /// Checks the sum.
  ///
  /// @param what  name of the sum in the error
  /// @throws MEMORY if the sum exceeds memory_limit()
  void check(std::string_view what = "the result with its work space") const;

 private:
  static std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

  std::string_view op_;
  std::uint64_t bytes_ = 0;
};

}  // namespace attn
