#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attn/kernels/dispatch.hpp"
#include "attn/kernels/kernels.hpp"
#include "support/random.hpp"
#include "support/reference_int8.hpp"

namespace attn::test {
namespace kernels_int8_test {

using kernels::KernelTable;

std::vector<const KernelTable*> architectures() { return kernels::available("test"); }

std::vector<float> random_values(Generator& random, std::size_t n) {
  std::vector<float> x(n);
  for (float& value : x) value = random.normal();
  return x;
}

std::vector<float> product(const KernelTable& table, const std::vector<float>& x, std::size_t m, const QuantizedWeights& w, const float* bias) {
  const std::size_t group = table.int8.group, words = kernels::int8_words(group, w.k);
  std::vector<std::int8_t> panels(kernels::int8_packed_size(table.nr, group, w.n, w.k));
  for (std::size_t j = 0; j < w.n; ++j) kernels::pack_int8_row(w.q.data() + j * w.k, j, w.k, table.nr, group, panels.data());
  std::vector<std::int32_t> a(m * words), corrections(m);
  std::vector<float> scales(m), c(m * w.n + 1, 7);
  for (std::size_t i = 0; i < m; ++i) {
    const kernels::Int8RowLayout place = kernels::int8_row_layout({m, table.int8.mr}, i, words);
    table.int8.quantize_row(x.data() + i * w.k, w.k, a.data() + place.first, place.step, &scales[i], &corrections[i]);
  }
  table.int8.gemm({.a = a.data(),
                   .scales = scales.data(),
                   .corrections = corrections.data(),
                   .panels = panels.data(),
                   .weight_scales = w.scales.data(),
                   .weight_sums = w.sums.data(),
                   .bias = bias,
                   .c = c.data(),
                   .ldc = w.n,
                   .m = m,
                   .n = w.n,
                   .k = w.k});
  CHECK(c.back() == 7);
  c.pop_back();
  return c;
}

void check_product(const std::vector<float>& x, std::size_t m, const QuantizedWeights& w, const float* bias) {
  const std::vector<float> expected = defined_product(x, m, w, bias);
  for (const KernelTable* const table : architectures()) {
    const std::vector<float> got = product(*table, x, m, w, bias);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::isnan(expected[i]) ? !std::isnan(got[i]) : got[i] != expected[i]) ++wrong;
    INFO(table->architecture << ", " << m << " x " << w.k << " x " << w.n);
    CHECK(wrong == 0);
  }
}

TEST_CASE("int8 products equal their definition exactly for every k", "[kernels][int8]") {
  Generator random(1);
  for (std::size_t k = 1; k <= 300; ++k) {
    const std::size_t m = 1 + k % 14, n = 1 + k * 7 % 70;
    const std::vector<float> x = random_values(random, m * k), w = random_values(random, n * k), bias = random_values(random, n);
    check_product(x, m, quantized(w, n, k), k % 3 == 0 ? nullptr : bias.data());
  }
}

TEST_CASE("int8 products are right for every number of rows and columns", "[kernels][int8]") {
  Generator random(2);
  constexpr std::size_t kDepth = 37;
  for (std::size_t m = 0; m <= 26; ++m)
    for (std::size_t n = 1; n <= 66; n += m % 3 + 1) {
      const std::vector<float> x = random_values(random, m * kDepth), bias = random_values(random, n);
      check_product(x, m, quantized(random_values(random, n * kDepth), n, kDepth), bias.data());
    }
}

TEST_CASE("int8 products are exact at the ends of the range", "[kernels][int8]") {
  // Files may contain -128. Rows of one sign, both, zeros, NaN and infinities.
  for (const std::size_t k : {1, 3, 64, 1537, 65536})
    for (const int q : {127, -127, -128}) {
      QuantizedWeights w{3, k, std::vector<std::int8_t>(3 * k, static_cast<std::int8_t>(q)), {1, 0.5F, 0x1p-149F}, {}};
      for (std::size_t p = 0; p < k; p += 2) w.q[k + p] = static_cast<std::int8_t>(-q - 1);
      for (std::size_t j = 0; j < 3; ++j) {
        std::int32_t sum = 0;
        for (std::size_t p = 0; p < k; ++p) sum += w.q[j * k + p];
        w.sums.push_back(sum);
      }
      std::vector<float> x(9 * k);
      const auto row = [&](std::size_t i) { return x.begin() + static_cast<std::ptrdiff_t>(i * k); };
      const auto fill = [&](std::size_t i, float value) { std::fill_n(row(i), k, value); };
      fill(0, 255);
      fill(1, -255);
      fill(2, 0);
      fill(3, 3e38F);
      *row(3) = -3e38F;
      fill(4, 0x1p-149F);
      fill(5, 1);
      *row(5) = kNaN;
      fill(6, -1);
      row(6)[static_cast<std::ptrdiff_t>(k) - 1] = kInfinity;
      fill(7, 0x1p-140F);
      for (std::size_t p = 0; p < k; ++p) row(8)[static_cast<std::ptrdiff_t>(p)] = p % 2 == 0 ? 127.5F : -127.5F;
      check_product(x, 9, w, nullptr);
    }
}

TEST_CASE("int8 products round values at and near a half as the definition does", "[kernels][int8]") {
  // Quotients by multiplication may cross a half; k leaves a remainder.
  constexpr std::size_t kDepth = 3 * 254 + 2, kRows = 40;
  Generator random(4);
  const QuantizedWeights w = quantized(random_values(random, 3 * kDepth), 3, kDepth);
  for (const int exponent : {-120, -3, 0, 90}) {
    std::vector<float> x;
    for (std::size_t row = 0; row < kRows; ++row) {
      const float high = std::ldexp(random.uniform(1, 2), exponent), low = row % 2 == 0 ? 0 : -high * random.uniform(0, 1);
      const float step = high / 255 - low / 255;
      x.push_back(low);
      x.push_back(high);
      const float first = std::nearbyint(low / step);
      for (int i = 0; i < 254; ++i) {
        const float half = std::clamp((first + static_cast<float>(i) + 0.5F) * step, low, high);
        for (const float value : {half, std::nextafter(half, low), std::nextafter(half, high)}) x.push_back(value);
      }
    }
    check_product(x, kRows, w, nullptr);
  }
}

TEST_CASE("int8 weights are the nearest multiples of the scale of their row", "[kernels][int8]") {
  const auto q_of = [](const std::vector<float>& w, float* scale = nullptr) {
    std::vector<std::int8_t> expected(w.size()), values(w.size() + 1, 99);
    float expected_scale = 0, found = 0;
    const std::int32_t expected_sum = quantize_weights(w.data(), w.size(), expected.data(), &expected_scale);
    for (const KernelTable* const table : architectures()) {
      INFO(table->architecture << ", " << w.size());
      CHECK(table->quantize_weights(w.data(), w.size(), values.data(), &found) == expected_sum);
      CHECK(found == expected_scale);
      CHECK(std::equal(expected.begin(), expected.end(), values.begin()));
      CHECK(values.back() == 99);
      std::vector<float> numbers(w.size() + 1, 99);
      table->dequantize_row(expected.data(), found, numbers.data(), w.size());
      for (std::size_t i = 0; i < w.size(); ++i) REQUIRE(numbers[i] == found * static_cast<float>(expected[i]));
      CHECK(numbers.back() == 99);
    }
    if (scale != nullptr) *scale = found;
    return std::vector<int>(expected.begin(), expected.end());
  };
  float scale = 0;
  CHECK(q_of({127, -127, 0.5F, 1.5F, -2.5F, 0}, &scale) == std::vector<int>{127, -127, 0, 2, -2, 0});  // halves to even
  CHECK(scale == 1);
  CHECK(q_of({0, 0, -0.0F}, &scale) == std::vector<int>{0, 0, 0});
  CHECK(scale == 0);
  CHECK(q_of({0x1p-149F, -0x1p-149F}, &scale) == std::vector<int>{0, 0});  // the scale underflows
  CHECK(scale == 0);
  CHECK(q_of({0x1.7cp-142F, 0x1p-149F}, &scale) == std::vector<int>{127, 1});  // the scale rounds to 1: 190 would be nearest
  CHECK(scale == 0x1p-149F);
  CHECK(q_of({3.4e38F, -1.7e38F}) == std::vector<int>{127, -64});
  Generator random(6);
  for (const std::size_t n : {0U, 1U, 3U, 15U, 16U, 17U, 63U, 64U, 65U, 200U, 1000U}) q_of(random_values(random, n));
  std::vector<float> halves;
  for (int i = -254; i <= 254; ++i) halves.push_back(static_cast<float>(i) / 2);
  q_of(halves);
}

TEST_CASE("int8 panels return the packed rows", "[kernels][int8]") {
  for (const std::size_t group : {2, 4})
    for (const std::size_t nr : {8, 16, 32})
      for (const std::size_t k : {1, 2, 3, 4, 5, 63})
        for (const std::size_t n : {1, 7, 8, 33}) {
          std::vector<std::int8_t> w(n * k), panels(kernels::int8_packed_size(nr, group, n, k)), again(k);
          for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
          for (std::size_t j = 0; j < n; ++j) kernels::pack_int8_row(w.data() + j * k, j, k, nr, group, panels.data());
          for (std::size_t j = 0; j < n; ++j) {
            const auto row = w.begin() + static_cast<std::ptrdiff_t>(j * k);
            kernels::unpack_int8_row(panels.data(), j, k, nr, group, 0, k, again.data());
            CHECK(std::equal(again.begin(), again.end(), row));
            if (k <= group) continue;
            kernels::unpack_int8_row(panels.data(), j, k, nr, group, group, k - group, again.data());
            CHECK(std::equal(row + static_cast<std::ptrdiff_t>(group), row + static_cast<std::ptrdiff_t>(k), again.begin()));
          }
        }
}

}  // namespace kernels_int8_test
}  // namespace attn::test
