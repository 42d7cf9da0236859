#include "attn/layers/linear_layer.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "attn/memory/panels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "support/random.hpp"
#include "support/reference_int8.hpp"

namespace attn::test {
namespace layers_linear_test {

std::vector<float> random_values(Generator& random, std::size_t n) {
  std::vector<float> x(n);
  for (float& value : x) value = random.normal();
  return x;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); });
}

TEST_CASE("an int8 linear map equals its definition for any number of rows and threads", "[layers][int8][threads]") {
  Generator random(3);
  const unsigned threads_before = num_threads();
  detail::Workspace workspace;
  for (const std::size_t m : {1, 2, 3, 7, 95, 96, 97, 200})
    for (const unsigned threads : {1U, 3U}) {
      set_num_threads(threads);
      constexpr std::size_t kIn = 45;
      const std::vector<float> x = random_values(random, m * kIn);
      const std::vector<float> weights[] = {random_values(random, 70 * kIn), random_values(random, 33 * kIn)};
      const std::vector<float> bias = random_values(random, 33);
      detail::Linear first(kIn, 70, false), second(kIn, 33, true);
      first.packed() = PackedLinear(weights[0].data(), nullptr, 70, kIn);
      second.packed() = PackedLinear(weights[1].data(), bias.data(), 33, kIn);
      first = first.converted(true);
      second = second.converted(true);
      std::vector<float> y[] = {std::vector<float>(m * 70), std::vector<float>(m * 33)};
      const detail::Linear::Output outputs[] = {{&first, y[0].data()}, {&second, y[1].data()}};
      detail::Scratch scratch(&workspace);
      detail::Linear::forward(outputs, detail::Rows(x.data(), m, kIn), scratch);
      INFO(m << " rows, " << threads << " threads");
      CHECK(same_bits(y[0], defined_product(x, m, quantized(weights[0], 70, kIn), nullptr)));
      CHECK(same_bits(y[1], defined_product(x, m, quantized(weights[1], 33, kIn), bias.data())));
    }
  set_num_threads(threads_before);
}

TEST_CASE("blocks cover all rows, and padding is less than one block", "[layers]") {
  std::vector<std::size_t> all{642094, 642095, 700000, 1U << 24U, 0x3fffffff, 0x40000000};
  for (std::size_t rows = 1; rows < 10000; ++rows) all.push_back(rows);
  for (const std::size_t rows : all) {
    CAPTURE(rows);
    const detail::RowBlocks blocks(rows);
    const std::size_t tried = std::min<std::size_t>(blocks.count, 100);
    std::size_t wrong = blocks.count * blocks.size >= rows + 96 ? 1 : 0;
    for (std::size_t i = 0; i < tried; ++i) {
      const std::size_t block = blocks.count - 1 - blocks.count * i / tried, begin = blocks.begin(block), end = blocks.begin(block + 1);
      if (end <= begin || end - begin > 96) ++wrong;
      if (blocks.of(begin) != block || blocks.of(end - 1) != block) ++wrong;
    }
    CHECK(wrong == 0);
    CHECK(blocks.begin(0) == 0);
    CHECK(blocks.begin(blocks.count) == rows);
  }
}

}  // namespace layers_linear_test
}  // namespace attn::test
