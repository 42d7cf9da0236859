#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/kernels/philox.hpp"
#include "attn/memory/packed_linear.hpp"
#include "attn/ops/init.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/softmax.hpp"
#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_ops_test {

TEST_CASE("linear agrees with the float64 reference for every rank and size", "[ops]") {
  const std::vector<Shape> inputs{{1}, {7}, {64}, {1, 1}, {3, 5}, {49, 17}, {97, 8}, {2, 3, 5}, {2, 2, 3, 9}, {1, 100, 33}};
  std::uint64_t seed = 0;
  for (const Shape& dims : inputs)
    for (const std::int64_t out : {1, 2, 15, 16, 33, 70})
      for (const bool with_bias : {false, true}) {
        Generator random(++seed);
        INFO("seed " << seed << ", x " << to_string(dims) << ", out " << out << ", bias " << with_bias);
        const Array x = random.normal(dims), weight = random.normal({out, dims.back(0)}), bias = random.normal({out});
        const Array* const b = with_bias ? &bias : nullptr;
        CHECK_THAT(linear(x, weight, b), IsCloseTo(reference_linear(Estimate(x), weight, b)));
      }
}

TEST_CASE("linear with an identity matrix returns the input's bits", "[ops]") {
  Generator random(1);
  const Array x = random.normal({13, 37});
  Array identity({37, 37});
  for (std::size_t i = 0; i < 37; ++i) identity.data[i * 38] = 1;
  CHECK_THAT(linear(x, identity), HasBitsOf(x));
}

TEST_CASE("a row of linear does not depend on the other rows", "[ops]") {
  Generator random(2);
  const Array x = random.normal({101, 19}), weight = random.normal({45, 19}), bias = random.normal({45});
  const Array all = linear(x, weight, &bias);
  for (const std::int64_t i : {0, 1, 47, 48, 100}) {
    INFO("seed 2, row " << i);
    CHECK_THAT(linear(slice(x, i), weight, &bias), HasBitsOf(slice(all, i)));
  }
}

TEST_CASE("linear over no rows, no inputs or no outputs is empty or the bias", "[ops]") {
  const Array bias({3}, {1, 2, 3});
  CHECK(linear(Array({0, 4}), Array({3, 4}), &bias).dims == Shape{0, 3});
  CHECK(linear(Array({2, 4}), Array({0, 4})).dims == Shape{2, 0});
  CHECK_THAT(linear(Array({2, 0}), Array({3, 0}), &bias), HasBitsOf(Array({2, 3}, {1, 2, 3, 1, 2, 3})));
}

TEST_CASE("packed weights are unpacked with the same bits", "[ops]") {
  Generator random(3);
  const Array weight = random.normal({35, 21}), bias = random.normal({35});
  const PackedLinear packed(weight.data.data(), bias.data.data(), 35, 21);
  CHECK(packed.in_features() == 21);
  CHECK(packed.out_features() == 35);
  CHECK(packed.bias() == bias.data);
  Array weight_back({35, 21});
  packed.unpack_weight(weight_back.data.data());
  CHECK_THAT(weight_back, HasBitsOf(weight));
  CHECK(PackedLinear(weight.data.data(), nullptr, 35, 21).bias().empty());
}

TEST_CASE("products with the transposed weight and with the transposed input equal those of transposed copies, bit for bit", "[ops]") {
  Generator random(4);
  const auto transposed = [](const Array& x) {
    const std::int64_t m = x.dims[0], n = x.dims[1];
    Array y({n, m});
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) y.data[static_cast<std::size_t>(j * m + i)] = x.data[static_cast<std::size_t>(i * n + j)];
    return y;
  };
  for (const std::int64_t rows : {1, 2, 7, 130})
    for (const std::int64_t out : {1, 16, 35, 1100})
      for (const std::int64_t in : {1, 21, 32, 67, 330}) {
        if (rows == 130 && out > 1000) continue;
        INFO("seed 4, " << rows << " rows, " << out << " by " << in);
        const Array weight = random.normal({out, in}), bias = random.normal({out}), x = random.normal({rows, in}), y = random.normal({rows, out});
        detail::Scratch scratch;
        Array through({rows, in}, kNaN);
        const PackedLinear packed(weight.data.data(), bias.data.data(), out, in);
        detail::multiply_by_weight(packed.weight(), static_cast<std::size_t>(out), static_cast<std::size_t>(in), y.data.data(),
                                   static_cast<std::size_t>(rows), through.data.data(), scratch);
        CHECK_THAT(through, HasBitsOf(linear(y, transposed(weight))));
        Array product({out, in}, kNaN);
        detail::multiply_transposed(TensorView(y.data.data(), {rows, out}), TensorView(x.data.data(), {rows, in}), product.data.data(), scratch);
        CHECK_THAT(product, HasBitsOf(linear(transposed(y), transposed(x))));
        const Array wide = random.normal({rows, in + 3});
        detail::multiply_transposed(TensorView(y.data.data(), {rows, out}), TensorView(wide.data.data(), {rows, in}, {in + 3, 1}),
                                    product.data.data(), scratch);
        Array narrow({rows, in});
        for (std::int64_t i = 0; i < rows; ++i) std::copy_n(wide.data.data() + i * (in + 3), in, narrow.data.data() + i * in);
        CHECK_THAT(product, HasBitsOf(linear(transposed(y), transposed(narrow))));
      }
}

TEST_CASE("linear refuses invalid arguments", "[ops][errors]") {
  const Array x({2, 8, 256}), weight({10, 384}), bias({11});
  check_error({ErrorCode::shape, "linear", "x", {"linear: x has shape (2,8,256), expected (..,384)"}}, [&] { linear(x, weight); });
  check_error({ErrorCode::shape, "linear", "bias", {"(11)", "(10)"}}, [&] { linear(Array({2, 384}), weight, &bias); });
  const Array wrong_bias({1, 10});
  check_error({ErrorCode::shape, "linear", "bias", {"(1,10)", "(10)"}}, [&] { linear(Array({2, 384}), weight, &wrong_bias); });
  check_error({ErrorCode::shape, "linear", "weight", {"(384)", "(out,in)"}}, [&] { linear(Array({2, 384}), Array({384})); });
  check_error({ErrorCode::shape, "linear", "weight", {"(2,10,384)", "(out,in)"}}, [&] { linear(Array({2, 384}), Array({2, 10, 384})); });
  CHECK(linear(Array({2, 384}), weight).dims == Shape{2, 10});
}

Estimate softmax_along(const Array& x, std::size_t dim) {
  std::size_t inner = 1;
  for (std::size_t axis = dim + 1; axis < x.dims.rank(); ++axis) inner *= static_cast<std::size_t>(x.dims[axis]);
  const auto length = static_cast<std::size_t>(x.dims[dim]);
  Estimate y(x.dims);
  for (std::size_t slice_at = 0; slice_at < x.data.size() / length; ++slice_at) {
    const std::size_t start = slice_at / inner * inner * length + slice_at % inner;
    std::vector<double> row(length), error(length, 0.0), result(length), result_error(length);
    for (std::size_t i = 0; i < length; ++i) row[i] = x.data[start + i * inner];
    reference_softmax(row.data(), error.data(), std::vector<bool>(length, true), result.data(), result_error.data());
    for (std::size_t i = 0; i < length; ++i) y.value[start + i * inner] = result[i], y.error[start + i * inner] = result_error[i];
  }
  return y;
}

TEST_CASE("softmax along any dimension agrees with the float64 reference", "[ops]") {
  std::uint64_t seed = 0;
  for (const Shape& dims : std::vector<Shape>{{1}, {9}, {100}, {4, 7}, {1, 33}, {33, 1}, {2, 3, 5}, {2, 17, 4, 3}, {2, 1, 3, 2, 5}}) {
    Generator random(++seed);
    const Array x = random.normal(dims, 4);
    const auto rank = static_cast<std::int64_t>(dims.rank());
    for (std::int64_t dim = -rank; dim < rank; ++dim) {
      INFO("seed " << seed << ", x " << to_string(dims) << ", dim " << dim);
      CHECK_THAT(softmax(x, dim), IsCloseTo(softmax_along(x, static_cast<std::size_t>(dim < 0 ? dim + rank : dim))));
    }
  }
}

TEST_CASE("softmax of an empty tensor is empty", "[ops]") {
  CHECK(softmax(Array({0})).dims == Shape{0});
  CHECK(softmax(Array({3, 0}), 0).dims == Shape{3, 0});
  CHECK(softmax(Array({0, 3}), 0).dims == Shape{0, 3});
}

TEST_CASE("a slice of softmax that is all -infinity or contains NaN is NaN, and other slices are not affected", "[ops]") {
  const Array x({3, 2}, {-kInfinity, -kInfinity, 1, 1, kNaN, 0});
  CHECK_THAT(softmax(x), HasBitsOf(Array({3, 2}, {kNaN, kNaN, 0.5F, 0.5F, kNaN, kNaN})));
  CHECK_THAT(softmax(transposed(x), 0), HasBitsOf(Array({2, 3}, {kNaN, 0.5F, kNaN, kNaN, 0.5F, kNaN})));
}

TEST_CASE("softmax refuses a dimension that does not exist", "[ops][errors]") {
  for (const std::int64_t dim : {std::int64_t{2}, std::int64_t{-3}, std::int64_t{1} << 40})
    check_error({ErrorCode::out_of_range, "softmax", "dim", {std::to_string(dim), "-2 to 1"}}, [&] { softmax(Array({2, 3}), dim); });
  check_error({ErrorCode::shape, "softmax", "x", {"()", "a rank of at least 1"}}, [] { detail::check_softmax({nullptr, {}}, 0); });
  CHECK(softmax(Array({2, 3}), 1).data[0] == softmax(Array({2, 3}), -1).data[0]);
}

struct Scheme {
  const char* name;
  InitScheme scheme;
  bool normal;
  double (*spread)(double fan_in, double fan_out);
};

const Scheme kSchemes[] = {
    {"torch", InitScheme::torch, false, [](double in, double) { return 1 / std::sqrt(in); }},
    {"xavier_uniform", InitScheme::xavier_uniform, false, [](double in, double out) { return std::sqrt(6 / (in + out)); }},
    {"xavier_normal", InitScheme::xavier_normal, true, [](double in, double out) { return std::sqrt(2 / (in + out)); }},
    {"kaiming_uniform", InitScheme::kaiming_uniform, false, [](double in, double) { return std::sqrt(6 / in); }},
    {"kaiming_normal", InitScheme::kaiming_normal, true, [](double in, double) { return std::sqrt(2 / in); }},
    {"normal", InitScheme::normal, true, [](double, double) { return 0.05; }},
};

double distance_to_distribution(std::vector<float> values, bool normal, double spread) {
  std::sort(values.begin(), values.end());
  double worst = 0;
  const auto n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i] / spread;
    const double below = normal ? 0.5 * std::erfc(-x / std::sqrt(2.0)) : (x + 1) / 2;
    worst = std::max({worst, std::abs(below - static_cast<double>(i) / n), std::abs(below - static_cast<double>(i + 1) / n)});
  }
  return worst;
}

TEST_CASE("each scheme draws from its distribution, with the fans of the weight", "[ops]") {
  constexpr std::int64_t kOut = 96, kIn = 300;
  constexpr auto kCount = static_cast<std::size_t>(kOut * kIn);
  constexpr auto n = static_cast<double>(kCount);
  for (const Scheme& scheme : kSchemes)
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 53) - 1}) {
      INFO(scheme.name << ", seed " << seed);
      std::vector<float> values(kCount);
      Random(seed, 0).weight(values.data(), kOut, kIn, {.scheme = scheme.scheme, .seed = seed, .std = 0.05});
      const double spread = scheme.spread(kIn, kOut);
      double mean = 0, square = 0, largest = 0;
      for (const float value : values) {
        mean += value / n;
        square += static_cast<double>(value) * value / n;
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
      const double variance = scheme.normal ? spread * spread : spread * spread / 3;
      CHECK(std::abs(mean) < 5 * std::sqrt(variance / n));
      CHECK(std::abs(square / variance - 1) < 5 * std::sqrt((scheme.normal ? 2.0 : 0.8) / n));
      if (scheme.normal)
        CHECK((largest > 3.5 * spread && largest < 6.5 * spread));
      else
        CHECK((largest > 0.999 * spread && largest <= spread * (1 + kEps)));
      CHECK(distance_to_distribution(values, scheme.normal, spread) < 2.47 / std::sqrt(n));
    }
}

TEST_CASE("uniform numbers are the words of Philox in order", "[ops]") {
  std::vector<float> values(10);
  const std::uint64_t seed = 0x123456789abcdef0;
  Random(seed, 5).uniform(values.data(), values.size(), 2.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto words = kernels::philox({static_cast<std::uint32_t>(i / 4), 0, 5, 0}, {0x9abcdef0, 0x12345678});
    CHECK(values[i] == static_cast<float>(2.0 * ((words[i % 4] >> 8) + 0.5) / 8388608 - 2.0));
  }
}

TEST_CASE("normal numbers are computed by Marsaglia's polar method", "[ops]") {
  std::vector<float> values(1001), uniform(4000);
  Random(9, 1).normal(values.data(), values.size(), 1.0);
  Random(9, 1).uniform(uniform.data(), uniform.size(), 1.0);
  std::size_t at = 0, wrong = 0;
  for (std::size_t i = 0; i < values.size();) {
    const double x = uniform[at], y = uniform[at + 1], square = x * x + y * y;
    at += 2;
    if (square >= 1) continue;
    const double factor = std::sqrt(-2 * std::log(square) / square);
    for (const double expected : {x * factor, y * factor}) {
      if (i == values.size()) break;
      if (!(std::abs(values[i++] - expected) <= 1e-6 * std::max(1.0, std::abs(expected)))) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a seed gives the same numbers again, and another seed or parameter gives other numbers", "[ops]") {
  for (const Scheme& scheme : kSchemes) {
    INFO(scheme.name);
    const auto draw = [&](std::uint64_t seed, std::uint32_t parameter) {
      std::vector<float> values(64);
      Random(seed, parameter).weight(values.data(), 8, 8, {.scheme = scheme.scheme, .seed = seed});
      return values;
    };
    CHECK(draw(1, 0) == draw(1, 0));
    CHECK(draw(1, 0) != draw(2, 0));
    CHECK(draw(1, 0) != draw(1, 1));
    CHECK(draw(1, 0) != draw((std::uint64_t{1} << 32) + 1, 0));
  }
}

}  // namespace ops_ops_test
}  // namespace attn::test
