#pragma once

#include <cstdint>
#include <string_view>

#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// Counts the memory that calls of this thread would take during its lifetime: they run the same code, but Scratch,
/// AlignedArray and counted() only add up sizes, and parallel::run() runs no task. All other code that reads or writes
/// numbers, or changes a module, must first return if counts(). See check_memory() in memory/scratch.hpp.
class DryRun {
 public:
  /// @param op  function whose name errors get; must outlive the dry run
  explicit DryRun(std::string_view op) noexcept;
  ~DryRun() { end(); }
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// Null if this thread's calls are real.
  static DryRun* current() noexcept;

  /// Adds `bytes`, which until remove() exist together with others or, if lasting, during the whole call. Returns an
  /// address that no other memory has.
  void* add(std::uint64_t bytes, bool is_lasting = false) noexcept;
  void remove(std::uint64_t bytes) noexcept { bytes_ -= bytes < bytes_ ? bytes : bytes_; }
  std::string_view op() const { return op_; }
  /// Makes the thread's calls real again.
  void end() noexcept;
  /// Throws MEMORY if the most bytes at a time exceed memory_limit().
  void check(std::string_view what) const;

 private:
  std::string_view op_;
  std::uint64_t lasting_ = 0, bytes_ = 0, most_ = 0, all_ = 0;
};

/// Whether this thread only counts memory: numbers must not be touched then.
bool counts() noexcept;

/// In a dry run: counts a float32 result of the caller. Throws MEMORY, with `what` in the message, if its bytes alone could
/// not be addressed.
float* counted(const Shape& shape, std::string_view what);

/// a · b, or 2⁶⁴ - 1 if that is less.
inline std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

}  // namespace attn::detail
