#include "attn/ops/tree_sum.hpp"

#include <bit>
#include <cstddef>

namespace attn::detail {

double tree_sum(std::span<const double> x) {
  constexpr std::size_t kLeaf = 8;
  if (x.size() > kLeaf) {
    const std::size_t left = std::bit_floor(x.size() - 1);
    return tree_sum(x.first(left)) + tree_sum(x.subspan(left));
  }
  double sum = 0;
  for (const double term : x) sum += term;
  return sum;
}

}  // namespace attn::detail
