#pragma once

#include <cstddef>

#include "attn/parallel/thread_pool.hpp"
#include "attn/store/scratch.hpp"

// Sums over rows in a fixed tree: which row is added to which follows from their numbers alone, neither from threads nor from what else is
// computed. Internal to ops.
namespace attn::detail {

/// Rows that are added one after the other; what they give is added up in pairs.
inline constexpr std::size_t kRowsOfASum = 64;

/// Partial sums that add_up_rows takes from the scratch.
constexpr std::size_t partial_sums(std::size_t rows) { return (rows + kRowsOfASum - 1) / kRowsOfASum; }

/// Adds a row's part to the sum that it is given, which began with zeros.
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

/// sum (width) = what add(row, sum) adds for all rows; cost is about how many multiply-adds all of them are.
void add_up_rows(std::size_t rows, std::size_t width, double cost, const AddRow& add, float* sum, Scratch& scratch);

}  // namespace attn::detail
