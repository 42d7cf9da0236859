// Tensors without copies: views of xtensor, other arrays by pointer and strides, and results in caller's memory.
#include <attn/attn.hpp>
#include <cstdio>
#include <span>
#include <vector>
#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else  // before xtensor 0.26
#include <xtensor/xview.hpp>
#endif

int main() {
  const attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  xt::xtensor<float, 3> batch = xt::reshape_view(xt::arange<float>(0, 32), {2, 4, 4});  // (B,L,E)
  batch /= 32;

  // A view is read in place if the numbers of each row are contiguous; an expression is evaluated first.
  const auto second = layer.forward(xt::view(batch, 1, xt::all(), xt::all()));  // (L,E)
  const auto halves = layer.forward(0.5F * xt::view(batch, 1, xt::range(0, 2), xt::all()));
  std::printf("the second of the batch: %zu rows, %.4f; its first two, halved: %zu rows, %.4f\n", second.output.shape(0), second.output(3, 0),
              halves.output.shape(0), halves.output(1, 0));

  // A span, or arrays of Eigen or Arrow: a pointer, dims, and optional row strides. plan() checks everything and
  // returns the results' shapes, run() computes.
  const std::span<const float> numbers(batch.data(), batch.size());
  const attn::TensorView x(numbers.subspan(16).data(), {4, 4});
  const attn::AttentionOptions options{.is_causal = true};
  const auto plan = layer.plan(x, x, x, options);
  std::vector<float> output(static_cast<std::size_t>(plan.output[0] * plan.output[1]));
  layer.run(plan, x, x, x, options, {.output = output.data()});
  std::printf("from a span into a vector: %.4f\n", output[12]);

  const attn::TensorView every_other(numbers.data(), {4, 4}, {8, 1});  // rows 0, 2, 4, 6
  layer.run(layer.plan(x, every_other, every_other, {}), x, every_other, every_other, {}, {.output = output.data()});
  const xt::xtensor<float, 2> rows = xt::view(xt::reshape_view(batch, {8, 4}), xt::range(0, 8, 2), xt::all());
  const auto copied = layer.forward(xt::view(batch, 1, xt::all(), xt::all()), rows, rows);
  std::printf("every other row as keys, by strides: %.4f, copied: %.4f\n", output[12], copied.output(3, 0));
}
