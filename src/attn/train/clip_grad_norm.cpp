#include "attn/train/clip_grad_norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "attn/ops/tree_sum.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

struct Block {
  float* values;
  std::size_t size;
};
constexpr std::size_t kBlock = 8192;

/// float64 squares of float32 cannot overflow. Eight sums let compilers vectorize.
double sum_of_squares(const Block& block) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= block.size; i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane) {
      const double x = block.values[i + lane];
      sums[lane] += x * x;
    }
  for (std::size_t lane = 0; i < block.size; ++i, ++lane) {
    const double x = block.values[i];
    sums[lane] += x * x;
  }
  return detail::tree_sum(sums);
}

}  // namespace

double clip_grad_norm(const std::vector<ModuleRef>& modules, double max_norm) {
  const detail::FloatEnvironment environment;
  constexpr std::string_view kOp = "clip_grad_norm";
  if (!(max_norm >= 0)) detail::fail(ErrorCode::config, kOp, "max_norm", {"a number of at least 0"}, {max_norm});
  detail::check_modules(kOp, modules);
  std::vector<Block> blocks;
  double size = 0;
  for (const ModuleRef& module : modules)
    for (const auto& [name, shape] : module.gradients().shapes()) {
      float* const values = module.gradients().at(name);
      const auto n = static_cast<std::size_t>(checked_size(shape, kOp, name));
      for (std::size_t i = 0; i < n; i += kBlock) blocks.push_back({values + i, std::min(kBlock, n - i)});
      size += static_cast<double>(n);
    }
  const unsigned workers = parallel::workers_for(blocks.size(), size);
  std::vector<double> sums(blocks.size());
  parallel::run(blocks.size(), workers, [&](std::size_t i, unsigned) noexcept { sums[i] = sum_of_squares(blocks[i]); });
  const double norm = std::sqrt(detail::tree_sum(sums)), factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;  // false for NaN
  parallel::run(blocks.size(), workers, [&](std::size_t i, unsigned) noexcept {
    for (std::size_t at = 0; at < blocks[i].size; ++at) blocks[i].values[at] *= static_cast<float>(factor);
  });
  return norm;
}

}  // namespace attn
