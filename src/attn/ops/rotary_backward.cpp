#include "attn/ops/rotary_backward.hpp"

#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

Shape check_rotary_backward(const TensorView& grad, const RotaryOptions& options) {
  const char* op = "apply_rotary_backward";
  if (grad.shape.rank() < 2) fail(ErrorCode::shape, op, "grad", {"(..,L,D)"}, {grad.shape});
  if (grad.shape.back(0) % 2 != 0) fail(ErrorCode::shape, op, "grad", {"an even last dimension"}, {grad.shape});
  check_rotary_options(op, options);
  MemoryEstimate memory(op);
  memory.add("the result", grad.shape);
  if (checked_size(grad.shape, op, "grad") > 0) memory.add("the angles", {grad.shape.back(0), 1 + 2 * std::int64_t{num_threads()}});
  memory.check();
  return grad.shape;
}

void apply_rotary_backward(const TensorView& grad, const RotaryOptions& options, float* grad_x) {
  const auto size = static_cast<std::size_t>(checked_size(grad.shape, "apply_rotary_backward", "grad"));
  if (size == 0) return;
  const auto D = static_cast<std::size_t>(grad.shape.back(0)), L = static_cast<std::size_t>(grad.shape.back(1)), pairs = D / 2;
  const std::vector<double> frequency = rotary_frequencies(options.theta, D);
  const RotaryPairs columns(options, D);
  const Rows rows(grad);
  const double cost = kSinCosCost * static_cast<double>(L) * static_cast<double>(pairs) + 4 * static_cast<double>(size);
  const unsigned workers = parallel::workers_for(L, cost);
  std::vector<SinCos> turns(workers * pairs);
  parallel::run(L, workers, [&](std::size_t row, unsigned worker) noexcept {
    SinCos* const back = turns.data() + worker * pairs;
    const auto position = static_cast<double>(options.offset + static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < pairs; ++i) {
      const SinCos turn = sin_cos_of(position * frequency[i]);
      back[i] = {-turn.sin, turn.cos};
    }
    for (std::size_t at = row; at < rows.count(); at += L) columns.turn(rows[at], back, grad_x + at * D);
  });
}

}  // namespace attn::detail
