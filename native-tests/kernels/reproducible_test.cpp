#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attn/kernels/dispatch.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/ops/activation.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace kernels_reproducible_test {

using kernels::KernelTable;

std::vector<float> random_row(Generator& random, std::size_t n) {
  std::vector<float> x(n);
  for (float& value : x)
    value = random.coin(0.02) ? random.pick<float>({0.0F, -0.0F, 1e30F, -1e-40F, kNaN, kInfinity, -kInfinity}) : 3 * random.normal();
  return x;
}

std::vector<std::uint32_t> results(const KernelTable& table, const std::vector<float>& x, const std::vector<float>& y) {
  const std::size_t n = x.size();
  std::vector<std::uint32_t> bits;
  const auto take = [&](float value) { bits.push_back(value == value ? std::bit_cast<std::uint32_t>(value) : 1); };
  std::vector<float> z(n);
  const auto take_all = [&] {
    for (const float value : z) take(value);
  };
  take(table.dot(x.data(), y.data(), n));
  take(table.exp_row(x.data(), table.max_row(x.data(), n), z.data(), n));
  take_all();
  table.softmax_row(y.data(), z.data(), n);
  take_all();
  table.layer_norm_row(x.data(), y.data(), y.data(), 1e-5F, z.data(), n);
  take_all();
  table.layer_norm_row(y.data(), nullptr, nullptr, 1e-5F, z.data(), n);
  take_all();
  table.rms_norm_row(x.data(), y.data(), 1e-6F, z.data(), n);
  take_all();
  table.rms_norm_row(y.data(), nullptr, 1e-6F, z.data(), n);
  take_all();
  for (const Activation name : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::tanh, Activation::sigmoid}) {
    table.activation_row(name, x.data(), z.data(), n);
    take_all();
  }
  table.mask_row(y.data(), x.data(), z.data(), n);
  take_all();
  table.scale_row(x.data(), 0.3F, z.data(), n);
  take_all();
  table.add_row(x.data(), y.data(), z.data(), n);
  take_all();
  table.multiply_row(x.data(), y.data(), z.data(), n);
  take_all();
  return bits;
}

std::vector<std::uint32_t> product(const KernelTable& table, const std::vector<float>& a, const std::vector<float>& w, const std::vector<float>& bias,
                                   std::size_t m, std::size_t k) {
  const std::size_t n = bias.size();
  std::vector<float> panels(kernels::packed_size(table.nr, n, k)), c(m * n);
  kernels::pack(w.data(), static_cast<std::ptrdiff_t>(k), 1, n, k, table.nr, panels.data());
  table.gemm({.a = a.data(),
              .lda = static_cast<std::ptrdiff_t>(k),
              .panels = panels.data(),
              .panel_stride = kernels::panel_size(table.nr, k),
              .bias = bias.data(),
              .c = c.data(),
              .ldc = static_cast<std::ptrdiff_t>(n),
              .m = m,
              .n = n,
              .k = k,
              .alpha = 0.7F});
  std::vector<std::uint32_t> bits;
  for (const float value : c) bits.push_back(value == value ? std::bit_cast<std::uint32_t>(value) : 1);
  return bits;
}

TEST_CASE("bit-reproducible kernels give the same bits on every architecture for rows of every length", "[kernels][int8]") {
  Generator random(1);
  const std::vector<const KernelTable*> tables = kernels::available("test");
  for (std::size_t n = 0; n <= 200; ++n) {
    const std::vector<float> x = random_row(random, n), y = random.normal({static_cast<std::int64_t>(n)}).data;
    const std::vector<std::uint32_t> first = results(*tables.front()->reproducible, x, y);
    for (const KernelTable* const table : tables)
      if (results(*table->reproducible, x, y) != first) FAIL_CHECK(table->architecture << " differs at " << n);
  }
  // Longer than a first block.
  const std::vector<float> x = random.normal({(1 << 16) + 77}).data;
  const std::vector<std::uint32_t> first = results(*tables.front()->reproducible, x, x);
  for (const KernelTable* const table : tables) CHECK(results(*table->reproducible, x, x) == first);
}

TEST_CASE("bit-reproducible products give the same bits on every architecture", "[kernels][int8]") {
  Generator random(2);
  const std::vector<const KernelTable*> tables = kernels::available("test");
  for (std::size_t k = 0; k <= 70; ++k) {
    const std::size_t m = 1 + k % 15, n = 1 + k * 11 % 75;
    const auto row = [&](std::size_t size) { return random.normal({static_cast<std::int64_t>(size)}).data; };
    const std::vector<float> a = random_row(random, m * k), w = row(n * k), bias = row(n);
    const std::vector<std::uint32_t> first = product(*tables.front()->reproducible, a, w, bias, m, k);
    for (const KernelTable* const table : tables)
      if (product(*table->reproducible, a, w, bias, m, k) != first) FAIL_CHECK(table->architecture << " differs at " << k);
  }
}

}  // namespace kernels_reproducible_test
}  // namespace attn::test
