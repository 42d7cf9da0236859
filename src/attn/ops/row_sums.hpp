#pragma once

#include <cstddef>

#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"

// Sums in a fixed tree: the order of additions does not depend on threads. Internal.
namespace attn::detail {

/// Rows summed sequentially; the partial sums are added in pairs.
inline constexpr std::size_t kRowsOfASum = 64;

constexpr std::size_t partial_sums(std::size_t rows) { return (rows + kRowsOfASum - 1) / kRowsOfASum; }

/// Adds a row's contribution to a sum.
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

/// sum (width); `cost`: multiply-adds of all rows.
void add_up_rows(std::size_t rows, std::size_t width, double cost, const AddRow& add, float* sum, Scratch& scratch);

}  // namespace attn::detail
