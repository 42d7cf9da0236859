#include "attn/ops/pooling_backward.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "support/random.hpp"

namespace attn::test {
namespace ops_pooling_backward_test {

constexpr Pooling kPoolings[] = {Pooling::mean, Pooling::cls, Pooling::max, Pooling::lasttoken, Pooling::weightedmean, Pooling::mean_sqrt_len};

TEST_CASE("gradients of each pooling are its slopes, and 0 for padding and for positions before the first pooled one", "[ops][backward]") {
  constexpr std::int64_t B = 3, L = 7, E = 4;
  Generator random(1);
  std::vector<std::uint8_t> attend(B * L, 1);
  for (const std::size_t i : {5, 6, 7, 10, 12, 13}) attend[i] = 0;
  const MaskView padding(MaskKind::attend, attend.data(), {B, L});
  for (const Pooling pooling : kPoolings)
    for (const std::int64_t first : {0, 2}) {
      INFO("pooling " << kPoolingNames[static_cast<std::size_t>(pooling)] << " from " << first);
      const Array x = random.normal({B, L, E}), grad = random.normal({B, E});
      std::vector<float> of_x(B * L * E, 1.0F);
      detail::pool_backward(grad.data.data(), E, x.data.data(), B, L, E, pooling, &padding, FullyMasked::zero, of_x.data(), first);
      const auto loss = [&](const std::vector<float>& values) {
        std::vector<float> pooled(B * E);
        detail::pool(values.data(), B, L, E, pooling, &padding, FullyMasked::zero, pooled.data(), E, first);
        double sum = 0;
        for (std::size_t i = 0; i < pooled.size(); ++i) sum += static_cast<double>(pooled[i]) * static_cast<double>(grad.data[i]);
        return sum;
      };
      for (std::size_t i = 0; i < of_x.size(); ++i) {
        constexpr float kStep = 0x1p-6F;
        std::vector<float> more = x.data, less = x.data;
        more[i] += kStep;
        less[i] -= kStep;
        const double slope = (loss(more) - loss(less)) / (2.0 * static_cast<double>(kStep));
        CHECK(std::abs(slope - static_cast<double>(of_x[i])) < 1e-4);
        const auto position = static_cast<std::int64_t>(i / E) % L;
        if (position < first || (attend[i / E] == 0 && pooling != Pooling::cls)) CHECK(of_x[i] == 0);
      }
    }
}

TEST_CASE("the gradient of a maximum goes to its first occurrence, and to NaN before all numbers, as in torch", "[ops][backward]") {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{1, 2, kNone, kNone, 1, 2, 3, kNone, 0, 2, kNone, 4};
  const std::vector<float> grad{5, 6, 7, 8};
  std::vector<float> of_x(12, 1.0F);
  detail::pool_backward(grad.data(), 4, x.data(), 1, 3, 4, Pooling::max, nullptr, FullyMasked::zero, of_x.data());
  CHECK(of_x == std::vector<float>{5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a sequence of padding alone shares its gradient among all positions if they were pooled, else it has none", "[ops][backward]") {
  const std::vector<std::uint8_t> attend(2, 0);
  const MaskView padding(MaskKind::attend, attend.data(), {1, 2});
  const std::vector<float> x{1, 2, 3, 4}, grad{6, 8};
  for (const FullyMasked policy : {FullyMasked::zero, FullyMasked::nan, FullyMasked::uniform}) {
    std::vector<float> of_x(4, 1.0F);
    detail::pool_backward(grad.data(), 2, x.data(), 1, 2, 2, Pooling::mean, &padding, policy, of_x.data());
    CHECK(of_x == (policy == FullyMasked::uniform ? std::vector<float>{3, 4, 3, 4} : std::vector<float>(4, 0.0F)));
  }
}

}  // namespace ops_pooling_backward_test
}  // namespace attn::test
