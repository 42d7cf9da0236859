#include "attn/models/patch_embeddings.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

constexpr const char* kTokenNames[] = {"cls_token", "distillation_token", "register_tokens"};

/// Adjacent source places of a result place, and their weights.
struct Taps {
  std::size_t first;
  std::span<double> weights;
};

/// As torch's bicubic interpolation with align_corners=False: Keys' kernel with -0.75, edges repeated. Antialiased: the kernel with -0.5, wider for
/// smaller results, with weights only inside.
std::span<const Taps> bicubic_taps(std::int64_t in, std::int64_t out, bool antialiases, Scratch& scratch) {
  const double keys = antialiases ? -0.5 : -0.75, scale = static_cast<double>(in) / static_cast<double>(out);
  const double width = antialiases ? std::max(scale, 1.0) : 1, support = 2 * width;
  const auto places = static_cast<std::uint64_t>(out), most = static_cast<std::uint64_t>(2 * support) + 2;
  const std::span<Taps> all(scratch.take_as<Taps>(places), static_cast<std::size_t>(out));
  double* weights = scratch.take_as<double>(saturating_product(places, most));
  if (counts()) return all;
  double i = 0;
  for (Taps& taps : all) {
    const double centre = (i++ + 0.5) * scale;
    const auto begin = static_cast<std::int64_t>(std::floor(centre - support + 0.5)),
               end = static_cast<std::int64_t>(std::floor(centre + support + 0.5));
    const std::int64_t first = std::max<std::int64_t>(begin, 0), last = std::min(end, in) - 1;
    taps = {static_cast<std::size_t>(first), {weights, static_cast<std::size_t>(last - first + 1)}};
    weights += taps.weights.size();
    std::fill(taps.weights.begin(), taps.weights.end(), 0.0);
    double sum = 0;
    for (std::int64_t place = antialiases ? first : begin; place < (antialiases ? last + 1 : end); ++place) {
      const double x = std::abs((static_cast<double>(place) - centre + 0.5) / width);
      double weight = 0;
      if (x < 2) weight = (((x - 5) * x + 8) * x - 4) * keys;
      if (x < 1) weight = ((keys + 2) * x - (keys + 3)) * x * x + 1;
      taps.weights[static_cast<std::size_t>(std::clamp(place, first, last) - first)] += weight;
      sum += weight;
    }
    for (double& weight : taps.weights) weight /= sum;
  }
  return all;
}

}  // namespace

PatchEmbeddings::PatchEmbeddings(const ImageConfig& config, std::int64_t width) : config_(config), projection_(config.patch_values(), width, true) {}

void PatchEmbeddings::visit_parameters(ParameterVisitor& visitor) {
  const std::int64_t E = projection_.out_features(), counts[] = {1, config_.distillation ? 1 : 0, config_.registers};
  for (std::size_t i = 0; i < std::size(tokens_); ++i)
    if (counts[i] > 0) visitor.add(kTokenNames[i], {.shape = {1, counts[i], E}, .kind = ParameterKind::row, .vector = &tokens_[i]});
  visitor.add("position_embeddings",
              {.shape = {1, config_.placed_tokens() + config_.rows() * config_.columns(), E}, .kind = ParameterKind::row, .vector = &positions_});
  visitor.part("patch_embeddings.", projection_);
}

Shape PatchEmbeddings::check(std::string_view op, const Shape& pixels) const {
  if (pixels.rank() != 4 || pixels[1] != config_.channels || pixels[2] < config_.patch_height || pixels[3] < config_.patch_width)
    fail(ErrorCode::shape, op, "pixel_values",
         {"(B,", config_.channels, ",height,width) of at least a patch, ", config_.patch_height, " x ", config_.patch_width}, {pixels});
  // Also bounds the work with positions.
  constexpr std::int64_t kMost = 1 << 20;
  const std::int64_t rows = pixels[2] / config_.patch_height, columns = pixels[3] / config_.patch_width;
  if (rows > kMost || columns > kMost || rows * columns > kMost)
    fail(ErrorCode::out_of_range, op, "pixel_values", {"an image of at most ", kMost, " patches"}, {rows, " x ", columns, " patches"});
  return {pixels[0], config_.first_patch() + rows * columns};
}

void PatchEmbeddings::interpolate(std::int64_t rows, std::int64_t columns, float* to, Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const auto E = static_cast<std::size_t>(projection_.out_features());
  const auto weigh = [&](const Taps& taps, const float* from, std::size_t stride, float* sums) {
    from += taps.first * stride;
    for (std::size_t e = 0; e < E; ++e) {
      double sum = 0;
      for (std::size_t i = 0; i < taps.weights.size(); ++i) sum += taps.weights[i] * static_cast<double>(from[i * stride + e]);
      sums[e] = static_cast<float>(sum);
    }
  };
  // Across, then down.
  const std::span<const Taps> across = bicubic_taps(config_.columns(), columns, config_.smooth_positions, scratch),
                              down = bicubic_taps(config_.rows(), rows, config_.smooth_positions, scratch);
  const float* from = positions_.data() + static_cast<std::size_t>(config_.placed_tokens()) * E;
  float* const wide = scratch.take(static_cast<std::uint64_t>(config_.rows() * columns), E);
  if (counts()) return;
  float* next = wide;
  for (std::int64_t row = 0; row < config_.rows(); ++row, from += static_cast<std::size_t>(config_.columns()) * E)
    for (const Taps& taps : across) {
      weigh(taps, from, E, next);
      next += E;
    }
  for (const Taps& taps : down)
    for (std::int64_t column = 0; column < columns; ++column, to += E)
      weigh(taps, wide + static_cast<std::size_t>(column) * E, static_cast<std::size_t>(columns) * E, to);
}

void PatchEmbeddings::forward(const TensorView& pixels, float* x, Scratch& scratch) const {
  const FloatEnvironment environment;
  const Scratch::Frame frame(scratch);
  const std::int64_t B = pixels.shape[0], C = config_.channels, H = pixels.shape[2], W = pixels.shape[3];
  const std::int64_t h = config_.patch_height, w = config_.patch_width, rows = H / h, columns = W / w;
  const auto E = static_cast<std::size_t>(projection_.out_features());
  const auto placed = static_cast<std::size_t>(config_.placed_tokens());
  const kernels::KernelTable& kernel = kernels::best();
  const float* image = without_gaps(pixels, scratch);
  const float* places = positions_.data() + placed * E;
  if (rows != config_.rows() || columns != config_.columns()) {
    float* const own = scratch.take(static_cast<std::uint64_t>(rows * columns), E);
    interpolate(rows, columns, own, scratch);
    places = own;
  }
  float* const patches = scratch.take(static_cast<std::uint64_t>(rows * columns), static_cast<std::uint64_t>(config_.patch_values()));
  for (std::int64_t b = 0; b < B; ++b, image += C * H * W) {
    for (const std::vector<float>& tokens : tokens_) {
      if (counts()) break;
      std::copy(tokens.begin(), tokens.end(), x);
      if (&tokens != &tokens_[2]) kernel.add_row(x, positions_.data() + (&tokens == tokens_ ? 0 : E), x, tokens.size());
      x += tokens.size();
    }
    float* to = patches;
    for (std::int64_t row = 0; row < rows && !counts(); ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        for (std::int64_t c = 0; c < C; ++c)
          for (std::int64_t y = 0; y < h; ++y) to = std::copy_n(image + (c * H + row * h + y) * W + column * w, w, to);
    const auto finish = [&](std::size_t row, unsigned) noexcept { kernel.add_row(x + row * E, places + row * E, x + row * E, E); };
    const parallel::TaskRef finish_row(finish);
    projection_.forward(patches, rows * columns, x, scratch, &finish_row);
    if (counts()) return;  // all images take the same memory
    x += static_cast<std::size_t>(rows * columns) * E;
  }
}

}  // namespace attn::detail
