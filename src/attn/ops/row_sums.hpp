#pragma once

#include <cstddef>

#include "attn/parallel/thread_pool.hpp"
#include "attn/store/scratch.hpp"

// Sums over rows in a fixed tree: the order of additions depends only on the row indices, not on threads or other results. Internal to ops.
namespace attn::detail {

/// Number of rows that are summed sequentially; the partial sums are added in pairs.
inline constexpr std::size_t kRowsOfASum = 64;

/// Number of partial sums that add_up_rows takes from the scratch.
constexpr std::size_t partial_sums(std::size_t rows) { return (rows + kRowsOfASum - 1) / kRowsOfASum; }

/// Callback that adds the contribution of a row to a sum that started at 0.
class AddRow {
 public:
  template <class F>
  AddRow(const F& f)
      : object_(&f), call_([](const void* object, std::size_t row, float* sum) noexcept { (*static_cast<const F*>(object))(row, sum); }) {}
  void operator()(std::size_t row, float* sum) const noexcept { call_(object_, row, sum); }

 private:
  const void* object_;
  void (*call_)(const void*, std::size_t, float*) noexcept;
};

/// Computes sum (width) of the contributions of all rows; cost is the approximate number of multiply-adds of all of them.
void add_up_rows(std::size_t rows, std::size_t width, double cost, const AddRow& add, float* sum, Scratch& scratch);

}  // namespace attn::detail
