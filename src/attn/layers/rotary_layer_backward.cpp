#include "attn/layers/rotary_layer.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {

void Rotary::rotate_back(const Heads& part, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const {
  const std::size_t pairs = table_ ? table_->width() / 2 : frequency_.size();
  const double cost = static_cast<double>(rows) * (kSinCosCost + 4 * static_cast<double>(part.heads)) * static_cast<double>(pairs);
  const unsigned workers = parallel::workers_for(rows, cost);
  const Scratch::Frame frame(scratch);
  SinCos* const turns = scratch.take_as<SinCos>(workers * pairs);
  const RotaryPairs columns(options_, 2 * pairs);
  parallel::run(rows, workers, [&](std::size_t row, unsigned worker) noexcept {
    const std::int64_t place = first + static_cast<std::int64_t>(row % length);
    float* const values = part.x + row * part.heads * 2 * pairs;
    if (table_) return table_->rotate(values, part.heads, static_cast<std::size_t>(place), -1);
    SinCos* const back = turns + worker * pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
      const SinCos turn = sin_cos_of(static_cast<double>(options_.offset + place) * frequency_[i]);
      back[i] = {-turn.sin, turn.cos};
    }
    for (std::size_t head = 0; head < part.heads; ++head) columns.turn(values + head * 2 * pairs, back, values + head * 2 * pairs);
  });
}

}  // namespace attn::detail
