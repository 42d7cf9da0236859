#include "attn/ops/norm.hpp"

#include <cmath>
#include <string>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

Shape check_norm(const char* op, const TensorView& x, const TensorView* weight, const TensorView* bias, float eps) {
  if (x.shape.rank() == 0) fail(ErrorCode::shape, op, "x", {"a rank of at least 1"}, {x.shape});
  const Shape parameter{x.shape.back(0)};
  if (weight != nullptr && weight->shape != parameter) fail(ErrorCode::shape, op, "weight", {parameter}, {weight->shape});
  if (bias != nullptr && bias->shape != parameter) fail(ErrorCode::shape, op, "bias", {parameter}, {bias->shape});
  if (!(eps > 0) || std::isinf(eps)) fail(ErrorCode::config, op, "eps", {"a finite number above 0"}, {eps});
  check_memory(op, [&] { counted(x.shape, "the result"); });
  return x.shape;
}

template <class Row>
void for_each_row(const TensorView& x, float* y, Row row) {
  const auto n = static_cast<std::size_t>(x.shape.back(0));
  const auto size = static_cast<std::size_t>(checked_size(x.shape, "norm", "x"));
  if (size == 0) return;
  const Rows rows(x);
  // Each value is read four times; a read costs about two multiply-adds.
  parallel::run(size / n, parallel::workers_for(size / n, 8.0 * static_cast<double>(size)),
                [&](std::size_t i, unsigned) noexcept { row(rows[i], y + i * n, n); });
}

}  // namespace

Shape check_layer_norm(const TensorView& x, const TensorView* weight, const TensorView* bias, float eps) {
  return check_norm("layer_norm", x, weight, bias, eps);
}

void layer_norm(const TensorView& x, const TensorView* weight, const TensorView* bias, float eps, float* y, bool reproducible) {
  const kernels::KernelTable& kernel = kernels::best(reproducible);
  const float *w = weight != nullptr ? weight->data : nullptr, *b = bias != nullptr ? bias->data : nullptr;
  for_each_row(x, y, [&](const float* from, float* to, std::size_t n) { kernel.layer_norm_row(from, w, b, eps, to, n); });
}

Shape check_rms_norm(const TensorView& x, const TensorView* weight, float eps) { return check_norm("rms_norm", x, weight, nullptr, eps); }

void rms_norm(const TensorView& x, const TensorView* weight, float eps, float* y, bool reproducible) {
  const kernels::KernelTable& kernel = kernels::best(reproducible);
  const float* w = weight != nullptr ? weight->data : nullptr;
  for_each_row(x, y, [&](const float* from, float* to, std::size_t n) { kernel.rms_norm_row(from, w, eps, to, n); });
}

}  // namespace attn::detail
