#include "attn/ops/pooling.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <vector>

namespace attn::test {
namespace ops_pooling_test {

using Catch::Matchers::WithinRel;

TEST_CASE("normalized rows have length 1 however short they are, as in torch's F.normalize", "[ops]") {
  std::vector<float> rows{3, 4, 3e-6F, 4e-6F, 3e-11F, 4e-11F, 3e15F, 4e15F};
  detail::normalize_rows(rows.data(), 4, 2);
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    CHECK_THAT(rows[i], WithinRel(0.6F, 1e-6F));
    CHECK_THAT(rows[i + 1], WithinRel(0.8F, 1e-6F));
  }
  // Shorter rows than eps = 1e-12 are divided by eps.
  std::vector<float> short_rows{6e-14F, 8e-14F, 0, 0};
  detail::normalize_rows(short_rows.data(), 2, 2);
  CHECK_THAT(short_rows[0], WithinRel(0.06F, 1e-6F));
  CHECK_THAT(short_rows[1], WithinRel(0.08F, 1e-6F));
  CHECK(short_rows[2] == 0);
}

}  // namespace ops_pooling_test
}  // namespace attn::test
