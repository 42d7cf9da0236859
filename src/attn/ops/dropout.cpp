#include "attn/ops/dropout.hpp"

#include <cmath>
#include <string>

#include "attn/kernels/kernels.hpp"
#include "attn/kernels/philox.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

Dropout::Dropout(float probability, std::uint64_t seed, std::uint64_t step, DropoutSite site, std::uint32_t layer) {
  const FloatEnvironment environment;
  threshold_ = static_cast<std::uint32_t>(std::ceil(static_cast<double>(probability) * 0x1p24));
  factor_ = 1 / (1 - probability);
  // Eight numbers do not fit into a counter and a key, so four are hashed into the key.
  const auto words = kernels::philox({low(step), high(step), static_cast<std::uint32_t>(site), layer}, {low(seed), high(seed)});
  key_ = {words[0], words[1]};
}

void Dropout::apply(float* values, std::size_t n, std::int64_t batch, std::int64_t head, std::int64_t query) const {
  kernels::best().drop_row(values, n, {static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(batch)},
                           {key_[0], key_[1]}, threshold_, factor_);
}

void drop_rows(const Dropout& dropout, float* values, std::int64_t rows, std::int64_t L, std::int64_t width) {
  if (!dropout.active()) return;
  const auto count = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(width);
  const double cost = 10.0 * static_cast<double>(count) * static_cast<double>(n);  // multiply-adds
  parallel::run(count, parallel::workers_for(count, cost), [&](std::size_t row, unsigned) noexcept {
    const auto place = static_cast<std::int64_t>(row);
    dropout.apply(values + row * n, n, place / L, 0, place % L);
  });
}

float check_dropout(std::string_view op, float probability) {
  if (!(probability >= 0 && probability < 1)) fail(ErrorCode::config, op, "dropout", {"a number from 0 up to, not including, 1"}, {probability});
  return probability;
}

Dropout dropout_of_call(std::string_view op, const std::optional<float>& probability, const std::optional<std::uint64_t>& seed) {
  if (!probability) return {};
  return {check_dropout(op, *probability), seed.value_or(0), 0, DropoutSite::attention_weights, 0};
}

}  // namespace attn::detail
