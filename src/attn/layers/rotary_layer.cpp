#include "attn/layers/rotary_layer.hpp"

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

RotaryTable::RotaryTable(std::span<const float> frequencies, std::int64_t positions, std::int64_t width, float magnitude)
    : pairs_(frequencies.size()), width_(static_cast<std::size_t>(width)) {
  const FloatEnvironment environment;
  const auto rows = static_cast<std::size_t>(positions);
  cos_.resize(rows * pairs_);
  sin_.resize(rows * pairs_);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < pairs_; ++i) {
      const float angle = static_cast<float>(row) * frequencies[i];
      const SinCos pair = sin_cos_of(static_cast<double>(angle));
      cos_[row * pairs_ + i] = static_cast<float>(pair.cos) * magnitude;
      sin_[row * pairs_ + i] = static_cast<float>(pair.sin) * magnitude;
    }
}

void RotaryTable::rotate(float* x, std::size_t heads, std::size_t position, float direction) const {
  const float *cos = cos_.data() + position * pairs_, *sin = sin_.data() + position * pairs_;
  for (std::size_t head = 0; head < heads; ++head, x += width_) kernels::best().rotate_row(x, cos, sin, direction, pairs_);
}

Rotary::Rotary(std::string_view op, const RotaryOptions& options, std::int64_t D) : options_(options) {
  if (D % 2 != 0) fail(ErrorCode::config, op, "rotary", {"an even number"}, {"has a head width of ", D});
  check_rotary_options(op, options, "rotary.theta", "rotary.offset");
  frequency_.resize(static_cast<std::size_t>(D / 2));
  frequencies(options.theta, static_cast<std::size_t>(D), frequency_.size(), frequency_.data());
}

void Rotary::rotate(std::span<const Heads> parts, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const {
  std::size_t heads = 0;
  for (const Heads& part : parts) heads += part.heads;
  if (table_) {
    parallel::run(rows, parallel::workers_for(rows, static_cast<double>(rows * heads * table_->width())), [&](std::size_t row, unsigned) noexcept {
      for (const auto& [x, count] : parts) table_->rotate(x + row * count * table_->width(), count, static_cast<std::size_t>(first) + row % length);
    });
    return;
  }
  const std::size_t pairs = frequency_.size();
  const double cost = static_cast<double>(rows) * (kSinCosCost + 4 * static_cast<double>(heads)) * static_cast<double>(pairs);
  const unsigned workers = parallel::workers_for(rows, cost);
  const Scratch::Frame frame(scratch);
  SinCos* const turns = scratch.take_as<SinCos>(workers * pairs);
  const RotaryPairs columns(options_, 2 * pairs);
  parallel::run(rows, workers, [&](std::size_t row, unsigned worker) noexcept {
    SinCos* const turn = turns + worker * pairs;
    const auto position = static_cast<double>(options_.offset + first + static_cast<std::int64_t>(row % length));
    for (std::size_t i = 0; i < pairs; ++i) turn[i] = sin_cos_of(position * frequency_[i]);
    for (const auto& [x, count] : parts)
      for (std::size_t head = 0; head < count; ++head) {
        float* const values = x + (row * count + head) * 2 * pairs;
        columns.turn(values, turn, values);
      }
  });
}

}  // namespace attn::detail
