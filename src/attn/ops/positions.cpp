#include "attn/ops/positions.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "attn/memory/scratch.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace detail {
namespace {

constexpr std::int64_t kMaxSize = 0x7fffffff;

void check_size(const char* op, const char* argument, std::int64_t value) {
  if (value < 0 || value > kMaxSize) fail(ErrorCode::argument, op, argument, {"a whole number from 0 to ", kMaxSize}, {value});
}

}  // namespace

void frequencies(double theta, std::size_t width, std::size_t count, double* to) {
  const FloatEnvironment environment;
  for (std::size_t i = 0; i < count && !counts(); ++i) to[i] = pow_of(theta, -2 * static_cast<double>(i) / static_cast<double>(width));
}

Shape check_sinusoidal_positions(std::int64_t length, std::int64_t width) {
  check_size("sinusoidal_positions", "length", length);
  check_size("sinusoidal_positions", "width", width);
  const Shape shape{length, width};
  check_memory("sinusoidal_positions", [&] { sinusoidal_positions(length, width, counted(shape, "the result")); });
  return shape;
}

void sinusoidal_positions(std::int64_t length, std::int64_t width, float* y) {
  if (length == 0 || width == 0) return;
  const auto rows = static_cast<std::size_t>(length), columns = static_cast<std::size_t>(width);
  const std::size_t pairs = (columns + 1) / 2;
  Scratch scratch;
  double* const frequency = scratch.take_as<double>(pairs);
  frequencies(10000, columns, pairs, frequency);
  const double cost = kSinCosCost * static_cast<double>(rows) * static_cast<double>(pairs);
  parallel::run(rows, parallel::workers_for(rows, cost), [&](std::size_t position, unsigned) noexcept {
    float* row = y + position * columns;
    for (std::size_t i = 0; i < pairs; ++i) {
      const SinCos pair = sin_cos_of(static_cast<double>(position) * frequency[i]);
      row[2 * i] = static_cast<float>(pair.sin);
      if (2 * i + 1 < columns) row[2 * i + 1] = static_cast<float>(pair.cos);
    }
  });
}

void check_rotary_options(std::string_view op, const RotaryOptions& options, std::string_view theta, std::string_view offset) {
  constexpr std::int64_t kLast = std::int64_t{1} << 53;
  if (!(options.theta > 0) || !std::isnormal(options.theta)) fail(ErrorCode::config, op, theta, {"a finite number above 0"}, {options.theta});
  if (options.offset < -kLast || options.offset > kLast)
    fail(ErrorCode::config, op, offset, {"a number from ", -kLast, " to ", kLast}, {options.offset});
}

Shape check_rotary(std::string_view op, std::string_view argument, const TensorView& x, const RotaryOptions& options) {
  if (x.shape.rank() < 2) fail(ErrorCode::shape, op, argument, {"(..,L,D)"}, {x.shape});
  if (x.shape.back(0) % 2 != 0) fail(ErrorCode::shape, op, argument, {"an even last dimension"}, {x.shape});
  check_rotary_options(op, options);
  check_memory(op, [&] { apply_rotary(x, options, 1, counted(x.shape, "the result")); });
  return x.shape;
}

void apply_rotary(const TensorView& x, const RotaryOptions& options, double direction, float* y) {
  const auto size = static_cast<std::size_t>(checked_size(x.shape, "apply_rotary", "x"));
  if (size == 0) return;
  const auto D = static_cast<std::size_t>(x.shape.back(0)), L = static_cast<std::size_t>(x.shape.back(1)), pairs = D / 2;
  Scratch scratch;
  double* const frequency = scratch.take_as<double>(pairs);
  frequencies(options.theta, D, pairs, frequency);
  const RotaryPairs columns(options, D);
  const Rows rows(x);
  const double cost = kSinCosCost * static_cast<double>(L) * static_cast<double>(pairs) + 4 * static_cast<double>(size);
  // Batches and heads share the angles of a position.
  const unsigned workers = parallel::workers_for(L, cost);
  SinCos* const turns = scratch.take_as<SinCos>(workers * pairs);
  parallel::run(L, workers, [&](std::size_t row, unsigned worker) noexcept {
    SinCos* const turn = turns + worker * pairs;
    const auto position = static_cast<double>(options.offset + static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < pairs; ++i) {
      turn[i] = sin_cos_of(position * frequency[i]);
      turn[i].sin *= direction;
    }
    for (std::size_t at = row; at < rows.count(); at += L) columns.turn(rows[at], turn, y + at * D);
  });
}

Shape check_alibi_bias(std::int64_t num_heads, std::int64_t length, std::int64_t key_length) {
  if (num_heads < 1) fail(ErrorCode::config, "alibi_bias", "num_heads", {"a number of at least 1"}, {num_heads});
  check_size("alibi_bias", "num_heads", num_heads);
  check_size("alibi_bias", "length", length);
  check_size("alibi_bias", "key_length", key_length);
  const Shape shape{1, num_heads, length, key_length};
  check_memory("alibi_bias", [&] { counted(shape, "the result"); });
  return shape;
}

void alibi_bias(std::int64_t num_heads, std::int64_t length, std::int64_t key_length, float* y) {
  if (length == 0 || key_length == 0) return;
  const auto lower = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(num_heads)));
  const auto rows = static_cast<std::size_t>(num_heads * length);
  const double cost = static_cast<double>(rows) * static_cast<double>(key_length);
  parallel::run(rows, parallel::workers_for(rows, cost), [&](std::size_t row, unsigned) noexcept {
    const std::int64_t h = static_cast<std::int64_t>(row) / length, i = static_cast<std::int64_t>(row) % length;
    // Heads past a power of two use the first, third, ... slope of twice as many.
    const double exponent = h < lower ? static_cast<double>(h + 1) : static_cast<double>(h - lower) + 0.5;
    const double slope = exp2_of(-8 * exponent / static_cast<double>(lower));
    float* to = y + row * static_cast<std::size_t>(key_length);
    for (std::int64_t j = 0; j < key_length; ++j) to[j] = static_cast<float>(slope * -static_cast<double>(std::abs(i - j)) + 0.0);  // avoids -0
  });
}

}  // namespace detail
}  // namespace attn
