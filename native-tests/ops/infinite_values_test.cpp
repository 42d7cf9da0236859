// Weights underflow in float32, but not in float64.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>

#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/reference.hpp"

namespace attn::test {
namespace ops_infinite_values_test {

/// Exact scores: q is 1, keys are integers.
AttentionCase draw(std::uint64_t seed, std::int64_t most_keys) {
  Generator random(seed);
  AttentionCase c;
  c.seed = seed;
  const std::int64_t L = 1 + random.below(4), S = 1 + random.below(most_keys), Dv = 1 + random.below(5);
  c.scale = 1.0F;
  c.query = Array({1, 1, L, 1}, 1);
  c.key = Array({1, 1, S, 1});
  const double spread = 1 + static_cast<double>(random.below(200));
  for (float& k : c.key.data) k = static_cast<float>(std::round(spread * random.normal()));
  c.value = random.normal({1, 1, S, Dv});
  for (float& v : c.value.data)
    if (random.coin(3.0 / static_cast<double>(S + 10))) v = random.coin(0.7) ? kInfinity : -kInfinity;
  if (random.coin(0.5)) c.mask = random_mask(random, random.coin(0.5) ? MaskKind::attend : MaskKind::block, {L, S});
  return c;
}

struct Expected {
  double value = 0;
  double error = 0;
  bool weight_is_zero = false;  // of an infinite value, in float32
};

Expected expected_at(const AttentionCase& c, std::int64_t i, std::int64_t d) {
  const std::int64_t S = c.key.dims[2], Dv = c.value.dims[3];
  const auto open = [&](std::int64_t j) { return !c.mask || (mask_at(*c.mask, false, 0, 0, i, j) != 0) == (c.mask->kind == MaskKind::attend); };
  double most = -static_cast<double>(kInfinity);
  for (std::int64_t j = 0; j < S; ++j)
    if (open(j)) most = std::max(most, static_cast<double>(c.key.data[static_cast<std::size_t>(j)]));
  Expected e;
  double weights = 0, sum = 0, size = 0;
  for (std::int64_t j = 0; j < S; ++j) {
    if (!open(j)) continue;
    const double difference = c.key.data[static_cast<std::size_t>(j)] - most, value = c.value.data[static_cast<std::size_t>(j * Dv + d)];
    weights += std::exp(difference);
    sum += std::exp(difference) * value;
    size += std::exp(difference) * std::abs(value);
    if (std::isinf(value) && std::exp(difference) < 0x1p-126) e.weight_is_zero = true;
  }
  if (weights == 0) return e;
  e.value = sum / weights;
  e.error = (static_cast<double>(S) + 8) * kEps * size / weights;
  return e;
}

std::string describe_entry(const AttentionCase& c, std::int64_t i, std::int64_t d, float got, const Expected& e) {
  return describe(c) + ", query " + std::to_string(i) + ", column " + std::to_string(d) + ": " + std::to_string(got) + ", in float64 " +
         std::to_string(e.value) + (e.weight_is_zero ? ", a weight of 0" : "");
}

bool agrees(float got, const Expected& e) {
  if (std::isnan(e.value)) return std::isnan(got);
  if (std::isinf(e.value)) return got == e.value;
  return std::abs(got - e.value) <= e.error;
}

TEST_CASE("an infinite value gives the result of float64, or NaN if its weight is 0 in float32", "[ops]") {
  int cases_apart = 0;
  constexpr int kCases = 6000;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const AttentionCase c = draw(seed, 24);
    const Array output = attention(c).output, beside_weights = attention(c, {.need_weights = true}).output;
    if (!(HasBitsOf(output).match(beside_weights))) FAIL_CHECK(describe(c) << ": other bits if weights are requested");
    bool apart = false;
    for (std::int64_t i = 0; i < c.query.dims[2]; ++i)
      for (std::int64_t d = 0; d < c.value.dims[3]; ++d) {
        const float got = output.data[static_cast<std::size_t>(i * c.value.dims[3] + d)];
        const Expected e = expected_at(c, i, d);
        apart = apart || !agrees(got, e);
        if (!(e.weight_is_zero ? std::isnan(got) : agrees(got, e))) FAIL_CHECK(describe_entry(c, i, d, got, e));
      }
    if (apart) ++cases_apart;
  }
  INFO(cases_apart << " of " << kCases << " cases are not float64's");
  CHECK(cases_apart > 0);
}

TEST_CASE("in rows of several blocks of keys, an infinite value gives the result of float64, or NaN if its weight is 0", "[ops][long]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const AttentionCase c = draw(seed, 4000);
    const Array output = attention(c).output;
    for (std::int64_t i = 0; i < c.query.dims[2]; ++i)
      for (std::int64_t d = 0; d < c.value.dims[3]; ++d) {
        const float got = output.data[static_cast<std::size_t>(i * c.value.dims[3] + d)];
        const Expected e = expected_at(c, i, d);
        if (!(agrees(got, e) || (e.weight_is_zero && std::isnan(got)))) FAIL_CHECK(describe_entry(c, i, d, got, e));
      }
  }
}

}  // namespace ops_infinite_values_test
}  // namespace attn::test
