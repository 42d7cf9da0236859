#include "attn/ops/positions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/ops/elementary.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace ops_positions_test {

constexpr double kDoubleEps = 0x1p-52;

double any_bits(Generator& random, int exponent) { return std::ldexp(1 + static_cast<double>(random.next() >> 12) * 0x1p-52, exponent); }

TEST_CASE("logarithm, exponentials and powers in float64 agree with the C library to a few units in the last place", "[ops]") {
  Generator random(1);
  INFO("seed 1");
  double log_error = 0, exp_error = 0, exp2_error = 0, pow_error = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = any_bits(random, static_cast<int>(random.below(2000)) - 1000), log = std::log(x);
    log_error = std::max(log_error, std::abs(detail::log_of(x) - log) / std::max(std::abs(log), 0.1));
    const double y = (random.unit() - 0.5) * 1400 + random.unit() * 1e-6, exp = std::exp(y), exp2 = std::exp2(y);
    exp_error = std::max(exp_error, std::abs(detail::exp_of(y) - exp) / exp);
    exp2_error = std::max(exp2_error, std::abs(detail::exp2_of(y) - exp2) / exp2);
    const double base = any_bits(random, static_cast<int>(random.below(40)) - 20), power = 4 * random.unit() - 2, pow = std::pow(base, power);
    pow_error = std::max(pow_error, std::abs(detail::pow_of(base, power) - pow) / pow / (2 + std::abs(std::log(pow))));
  }
  INFO("in units of 2^-52: log " << log_error / kDoubleEps << ", exp " << exp_error / kDoubleEps << ", exp2 " << exp2_error / kDoubleEps << ", pow "
                                 << pow_error / kDoubleEps);
  CHECK(log_error <= 2 * kDoubleEps);
  CHECK(exp_error <= 2 * kDoubleEps);
  CHECK(exp2_error <= 2 * kDoubleEps);
  CHECK(pow_error <= 1.5 * kDoubleEps);
}

TEST_CASE("exponentials in float64 are exact for exact results, and reach zero and infinity", "[ops]") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (int n = -1074; n <= 1023; ++n) {
    INFO("n " << n);
    CHECK(detail::exp2_of(n) == std::ldexp(1.0, n));
  }
  for (const auto f : {&detail::exp_of, &detail::exp2_of}) {
    CHECK(f(0) == 1);
    CHECK(f(-0.0) == 1);
    CHECK(f(-1080) == 0);
    CHECK(f(-infinity) == 0);
    CHECK(f(1030) == infinity);
    CHECK(f(infinity) == infinity);
    CHECK(std::isnan(f(std::nan(""))));
  }
  CHECK(std::abs(detail::exp_of(-740) - std::exp(-740)) <= 0x1p-1074);
  CHECK(detail::exp_of(710) == infinity);
  CHECK(detail::log_of(1) == 0);
  CHECK(detail::pow_of(10000, 0) == 1);
}

TEST_CASE("sine and cosine in float64 agree with the C library up to 2^53", "[ops]") {
  Generator random(2);
  for (int exponent = -30; exponent <= 52; ++exponent) {
    double worst = 0, at = 0;
    for (int i = 0; i < 4000; ++i) {
      const double x = any_bits(random, exponent) * (i % 2 == 0 ? 1 : -1);
      const detail::SinCos got = detail::sin_cos_of(x);
      const double error = std::max(std::abs(got.sin - std::sin(x)), std::abs(got.cos - std::cos(x)));
      if (!(error <= worst)) worst = error, at = x;
    }
    INFO("seed 2, largest error " << worst << " at " << at);
    CHECK(worst <= 1e-15);
  }
  // Near π/2, almost all digits cancel.
  for (std::int64_t n = 1; n < std::int64_t{1} << 52; n = n * 3 + 1) {
    const double x = static_cast<double>(n) * std::acos(0.0);
    const detail::SinCos got = detail::sin_cos_of(x);
    INFO("x " << x);
    CHECK(std::abs(got.sin - std::sin(x)) <= 1e-15);
    CHECK(std::abs(got.cos - std::cos(x)) <= 1e-15);
  }
  for (const double x : {0x1p55, -1e300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK(std::isnan(detail::sin_cos_of(x).sin));
    CHECK(std::isnan(detail::sin_cos_of(x).cos));
  }
  CHECK(detail::sin_cos_of(0).sin == 0);
  CHECK(detail::sin_cos_of(0).cos == 1);
}

TEST_CASE("sinusoidal_positions follows its formula, with a final sine if the width is odd", "[ops]") {
  for (const auto& [length, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {5, 2}, {7, 7}, {100, 64}, {600, 33}}) {
    Estimate expected({length, width});
    for (std::int64_t position = 0; position < length; ++position)
      for (std::int64_t column = 0; column < width; ++column) {
        const double angle = static_cast<double>(position) / std::pow(10000.0, static_cast<double>(column / 2 * 2) / static_cast<double>(width));
        const auto at = static_cast<std::size_t>(position * width + column);
        expected.value[at] = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
        expected.error[at] = kEps / 2 * std::abs(expected.value[at]) + 1e-12;
      }
    INFO(length << " positions, width " << width);
    CHECK_THAT(array_of(sinusoidal_positions(length, width)), IsCloseTo(expected));
  }
  CHECK_THAT(array_of(sinusoidal_positions(1, 4)), HasBitsOf(Array({1, 4}, {0, 1, 0, 1})));
  CHECK(to_shape(sinusoidal_positions(0, 4).shape()) == Shape{0, 4});
  CHECK(to_shape(sinusoidal_positions(4, 0).shape()) == Shape{4, 0});
}

template <std::size_t N>
Array rotated(const Array& x, const RotaryOptions& options = {}) {
  return array_of(apply_rotary(tensor_of<N>(x), options));
}

Estimate expected_rotary(const Array& x, const RotaryOptions& options) {
  Estimate y(x.dims);
  const auto D = static_cast<std::size_t>(x.dims.back(0)), L = static_cast<std::size_t>(x.dims.back(1));
  for (std::size_t at = 0; at < x.data.size(); at += D)
    for (std::size_t i = 0; i < D / 2; ++i) {
      const std::size_t first = at + (options.interleaved ? 2 * i : i), second = options.interleaved ? first + 1 : first + D / 2;
      const double position = static_cast<double>(options.offset) + static_cast<double>(at / D % L);
      const double frequency = std::pow(options.theta, -2 * static_cast<double>(i) / static_cast<double>(D)), angle = position * frequency;
      const double a = x.data[first], b = x.data[second], size = std::abs(a) + std::abs(b);
      y.value[first] = a * std::cos(angle) - b * std::sin(angle);
      y.value[second] = b * std::cos(angle) + a * std::sin(angle);
      for (const std::size_t entry : {first, second})
        y.error[entry] = kEps / 2 * std::abs(y.value[entry]) + size * (1e-15 + std::abs(angle) * 16 * kDoubleEps);
    }
  return y;
}

TEST_CASE("apply_rotary rotates pairs by its formula, in both layouts, from any offset", "[ops]") {
  std::uint64_t seed = 0;
  for (const bool interleaved : {false, true})
    for (const double theta : {10000.0, 500.0, 1e6, 0.5})
      for (const std::int64_t offset : {0, 5, -3, 1'000'000}) {
        Generator random(++seed);
        const RotaryOptions options{.theta = theta, .offset = offset, .interleaved = interleaved};
        INFO("seed " << seed << ", theta " << theta << ", offset " << offset << ", interleaved " << interleaved);
        const Array x = random.normal({2, 3, 11, 10});
        CHECK_THAT(rotated<4>(x, options), IsCloseTo(expected_rotary(x, options)));
        const Array flat = random.normal({40, 2});
        CHECK_THAT(rotated<2>(flat, options), IsCloseTo(expected_rotary(flat, options)));
      }
  const Array y = rotated<2>(Array({2, 2}, {1, 0, 1, 0}));
  CHECK_THAT(y, HasBitsOf(Array({2, 2}, {1, 0, static_cast<float>(std::cos(1.0)), static_cast<float>(std::sin(1.0))})));
}

TEST_CASE("apply_rotary with an offset equals the rest of a longer sequence, bit for bit", "[ops][properties]") {
  Generator random(3);
  const Array x = random.normal({12, 8});
  const Array whole = rotated<2>(x);
  Array rest({7, 8});
  std::copy(x.data.begin() + 5 * 8, x.data.end(), rest.data.begin());
  const Array turned = rotated<2>(rest, {.offset = 5});
  for (std::int64_t i = 0; i < 7; ++i) {
    INFO("seed 3, row " << i);
    CHECK_THAT(slice(turned, i), HasBitsOf(slice(whole, i + 5)));
  }
}

double product(const Array& a, const Array& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) sum += static_cast<double>(a.data[i]) * b.data[i];
  return sum;
}

TEST_CASE("apply_rotary preserves lengths, and products depend only on the distance of positions", "[ops][properties]") {
  for (const bool interleaved : {false, true}) {
    Generator random(4);
    const Array query = random.normal({1, 16}), key = random.normal({1, 16});
    const auto at = [&](const Array& x, std::int64_t position) { return rotated<2>(x, {.offset = position, .interleaved = interleaved}); };
    const double bound = 4 * kEps * std::sqrt(product(query, query) * product(key, key));
    for (const std::int64_t distance : {0, 1, 7, -20}) {
      const double near = product(at(query, distance), at(key, 0));
      for (const std::int64_t position : {1, 3, 50, 1000}) {
        INFO("seed 4, interleaved " << interleaved << ", distance " << distance << ", position " << position);
        CHECK(std::abs(product(at(query, position + distance), at(key, position)) - near) <= bound);
        const Array turned = at(query, position);
        CHECK(std::abs(product(turned, turned) - product(query, query)) <= 2 * kEps * product(query, query));
      }
      if (distance == 0) CHECK(std::abs(near - product(query, key)) <= bound);
    }
  }
}

TEST_CASE("the two layouts of apply_rotary differ only by a permutation of columns", "[ops][properties]") {
  Generator random(5);
  const Array x = random.normal({9, 12});
  Array mixed(x.dims);
  const auto exchange = [](const Array& halves, Array& pairs) {
    for (std::size_t i = 0; i < halves.data.size(); ++i) pairs.data[i] = halves.data[i / 12 * 12 + i % 12 % 2 * 6 + i % 12 / 2];
  };
  exchange(x, mixed);
  Array expected(x.dims);
  exchange(rotated<2>(x), expected);
  CHECK_THAT(rotated<2>(mixed, {.interleaved = true}), HasBitsOf(expected));
}

TEST_CASE("apply_rotary stays finite and preserves lengths at the largest offsets, and NaN affects only its pair", "[ops]") {
  for (const std::int64_t offset : {-(std::int64_t{1} << 53), std::int64_t{1} << 53}) {
    const Array y = rotated<2>(Array({3, 4}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}), {.theta = 3, .offset = offset});
    for (std::size_t row = 0; row < 3; ++row) CHECK(std::abs(std::hypot(y.data[row * 4], y.data[row * 4 + 2]) - 1) <= kEps);
  }
  const Array y = rotated<2>(Array({1, 4}, {kNaN, 2, 3, 4}), {.offset = 1});
  CHECK(std::isnan(y.data[0]));
  CHECK(std::isnan(y.data[2]));
  CHECK((std::isfinite(y.data[1]) && std::isfinite(y.data[3])));
}

TEST_CASE("positions give the same bits on any number of threads", "[ops][threads]") {
  Generator random(6);
  const Tensor<4> x = tensor_of<4>(random.normal({1, 4, 4000, 32}));
  const auto all = [&] {
    return std::vector<Array>{array_of(apply_rotary(x)), array_of(sinusoidal_positions(2000, 31)), array_of(alibi_bias(5, 70, 90))};
  };
  const std::vector<Array> alone = all();
  set_num_threads(4);
  const std::vector<Array> shared = all();
  set_num_threads(1);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK_THAT(shared[i], HasBitsOf(alone[i]));
}

TEST_CASE("empty tensors are rotated to empty tensors", "[ops]") {
  CHECK(to_shape(apply_rotary(detail::empty<3>({2, 0, 4})).shape()) == Shape{2, 0, 4});
  CHECK(to_shape(apply_rotary(detail::empty<3>({2, 3, 0})).shape()) == Shape{2, 3, 0});
  CHECK(to_shape(apply_rotary(detail::empty<3>({0, 3, 4})).shape()) == Shape{0, 3, 4});
  CHECK(to_shape(apply_rotary(detail::empty<3>({0, std::int64_t{1} << 40, 4})).shape()) == Shape{0, std::int64_t{1} << 40, 4});
  CHECK(to_shape(sinusoidal_positions(0x7fffffff, 0).shape()) == Shape{0x7fffffff, 0});
  CHECK(to_shape(alibi_bias(0x7fffffff, 8, 0).shape()) == Shape{1, 0x7fffffff, 8, 0});
  CHECK(to_shape(alibi_bias(3, 0).shape()) == Shape{1, 3, 0, 0});
  CHECK(to_shape(alibi_bias(3, 2, 0).shape()) == Shape{1, 3, 2, 0});
}

std::vector<double> get_slopes(std::int64_t n) {
  const auto of_power_of_two = [](std::int64_t count) {
    const double start = std::pow(2.0, -std::pow(2.0, -(std::log2(static_cast<double>(count)) - 3)));
    std::vector<double> slopes;
    for (std::int64_t i = 0; i < count; ++i) slopes.push_back(start * std::pow(start, static_cast<double>(i)));
    return slopes;
  };
  if (std::exp2(std::floor(std::log2(static_cast<double>(n)))) == static_cast<double>(n)) return of_power_of_two(n);
  const auto closest = static_cast<std::int64_t>(std::exp2(std::floor(std::log2(static_cast<double>(n)))));
  std::vector<double> slopes = of_power_of_two(closest);
  const std::vector<double> doubled = get_slopes(2 * closest);
  for (std::int64_t i = 0; i < n - closest; ++i) slopes.push_back(doubled[static_cast<std::size_t>(2 * i)]);
  return slopes;
}

TEST_CASE("alibi_bias has the published slopes for every number of heads", "[ops]") {
  for (std::int64_t heads = 1; heads <= 40; ++heads) {
    INFO(heads << " heads");
    const std::vector<double> slopes = get_slopes(heads);
    Estimate expected({1, heads, 4, 6});
    std::size_t at = 0;
    for (const double slope : slopes)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 6; ++j, ++at) {
          expected.value[at] = -slope * std::abs(i - j);
          expected.error[at] = kEps / 2 * std::abs(expected.value[at]);
        }
    CHECK_THAT(array_of(alibi_bias(heads, 4, 6)), IsCloseTo(expected));
  }
  const Array y = array_of(alibi_bias(8, 3));
  CHECK_THAT(slice(slice(y, 0), 0), HasBitsOf(Array({3, 3}, {0, -0.5F, -1, -0.5F, 0, -0.5F, -1, -0.5F, 0})));
  CHECK_THAT(slice(slice(y, 0), 7), HasBitsOf(Array({3, 3}, {0, -0x1p-8F, -0x1p-7F, -0x1p-8F, 0, -0x1p-8F, -0x1p-7F, -0x1p-8F, 0})));
}

TEST_CASE("positions refuse invalid arguments", "[ops][errors]") {
  check_error({ErrorCode::argument, "sinusoidal_positions", "length", {"-1"}}, [] { sinusoidal_positions(-1, 4); });
  check_error({ErrorCode::argument, "sinusoidal_positions", "width", {"-4"}}, [] { sinusoidal_positions(1, -4); });
  check_error({ErrorCode::memory, "sinusoidal_positions", "", {"bytes"}}, [] { sinusoidal_positions(0x7fffffff, 0x7fffffff); });
  check_error({ErrorCode::argument, "sinusoidal_positions", "length", {"2147483648", "2147483647"}}, [] { sinusoidal_positions(0x80000000, 0); });
  check_error({ErrorCode::shape, "apply_rotary", "x", {"(3,5)", "even"}}, [] { apply_rotary(detail::empty<2>({3, 5})); });
  check_error({ErrorCode::shape, "apply_rotary", "x", {"(4)", "(..,L,D)"}}, [] { apply_rotary(detail::empty<1>({4})); });
  for (const double theta : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    check_error({ErrorCode::config, "apply_rotary", "theta", {"finite"}}, [&] { apply_rotary(detail::empty<2>({3, 4}), {.theta = theta}); });
  constexpr std::int64_t kPastLast = (std::int64_t{1} << 53) + 1;
  for (const std::int64_t offset : {kPastLast, -kPastLast, std::numeric_limits<std::int64_t>::min()})
    check_error({ErrorCode::config, "apply_rotary", "offset", {"9007199254740992"}},
                [&] { apply_rotary(detail::empty<2>({3, 4}), {.offset = offset}); });
  check_error({ErrorCode::config, "alibi_bias", "num_heads", {"0", "at least 1"}}, [] { alibi_bias(0, 4); });
  check_error({ErrorCode::argument, "alibi_bias", "length", {"-4"}}, [] { alibi_bias(2, -4); });
  check_error({ErrorCode::argument, "alibi_bias", "key_length", {"-1"}}, [] { alibi_bias(2, 4, -1); });
  check_error({ErrorCode::memory, "alibi_bias", "", {"bytes"}}, [] { alibi_bias(std::int64_t{1} << 30, std::int64_t{1} << 30); });
  check_error({ErrorCode::argument, "alibi_bias", "num_heads", {"2147483648"}}, [] { alibi_bias(0x80000000, 0); });
  check_error({ErrorCode::argument, "alibi_bias", "key_length", {"2147483648"}}, [] { alibi_bias(1, 0, 0x80000000); });
}

}  // namespace ops_positions_test
}  // namespace attn::test
