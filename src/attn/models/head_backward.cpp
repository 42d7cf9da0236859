#include <algorithm>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/layers/rows_with_gradient.hpp"
#include "attn/memory/packed_linear.hpp"
#include "attn/models/head.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/row_sums.hpp"

namespace attn::detail {
namespace {

/// Inactive unless the probabilities are those of a checkpoint.
Dropout dropout_of(const ForwardRandom& random, DropoutSite site) { return dropout_at(random, 0, site, 0); }

}  // namespace

void Head::forward(float* x, std::int64_t rows, const Table& words, const ForwardRandom& random, float* dense, float* logits,
                   Scratch& scratch) const {
  const std::size_t size = size_of(rows, width());
  drop_rows(dropout_of(random, DropoutSite::pooled), x, rows, 1, has_dense() ? dense_.in_features() : width());
  const Scratch::Frame frame(scratch);
  float* const normed = scratch.take(size);
  if (has_dense()) {
    dense_.forward(x, rows, dense, scratch);
    if (!counts()) kernels::best().activation_row(activation_, dense, normed, size);
    norm_.forward(normed, rows, normed);
  } else {
    copy_values(x, size, normed);
  }
  drop_rows(dropout_of(random, DropoutSite::classifier), normed, rows, 1, width());
  classify(normed, rows, words, logits, scratch);
}

/// of_x (rows,E) = grad W
static void sparse_tied_backward(const float* grad, const float* x, std::size_t rows, const Table& words, float* of_x, Gradients& gradients,
                                 Scratch& scratch) {
  const std::size_t N = words.rows(), E = words.width();
  float* const of_words = gradients.at("word_embeddings.weight");
  float* const of_bias = gradients.at("classifier.bias");
  const Scratch::Frame frame(scratch);
  float* const buffer = scratch.take(E);
  std::fill_n(of_x, rows * E, 0.0F);
  for (std::size_t j = 0; j < N; ++j) {
    const float* word = nullptr;
    for (std::size_t row = 0; row < rows; ++row) {
      const float g = grad[row * N + j];
      if (g == 0) continue;
      if (word == nullptr) word = words.row(j, buffer);
      for (std::size_t e = 0; e < E; ++e) of_x[row * E + e] += g * word[e];
      if (of_words != nullptr)
        for (std::size_t e = 0; e < E; ++e) of_words[j * E + e] += g * x[row * E + e];
      if (of_bias != nullptr) of_bias[j] += g;
    }
  }
}

/// For losses, whose gradient is non-zero for every word; an explained logit's is for one or two.
static void tied_backward(const float* grad, const float* x, std::size_t rows, const Table& words, float* of_x, Gradients& gradients,
                          Scratch& scratch) {
  const std::size_t N = words.rows();
  // A dry run, which must not read them, counts the dense way: it takes more memory.
  const auto zeros = counts() ? 0 : static_cast<std::size_t>(std::count(grad, grad + rows * N, 0.0F));
  if (zeros > rows * N / 2) return sparse_tied_backward(grad, x, rows, words, of_x, gradients, scratch);
  words.multiply_transposed(grad, rows, of_x, scratch);
  const Shape shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(words.width())};
  if (float* const of_words = gradients.fill("word_embeddings.weight"); of_words != nullptr)
    multiply_transposed({grad, {shape[0], static_cast<std::int64_t>(N)}}, {x, shape}, of_words, scratch);
  if (float* const of_bias = gradients.fill("classifier.bias"); of_bias != nullptr)
    add_up_rows(
        rows, N, static_cast<double>(rows * N), [&](std::size_t row, float* sum) noexcept { kernels::best().add_row(sum, grad + row * N, sum, N); },
        of_bias, scratch);
}

void Head::backward(const float* grad, const float* x, const float* dense, std::int64_t rows, const Table& words, const ForwardRandom& random,
                    float* of_x, Gradients& gradients, Scratch& scratch) const {
  const std::size_t size = size_of(rows, width()), row_size = size_of(1, width());
  const Dropout drop_normed = dropout_of(random, DropoutSite::classifier);
  const Scratch::Frame frame(scratch);
  float* const activated = scratch.take(size);
  float* const normed = scratch.take(size);
  float* const of_hidden = has_dense() || of_x == nullptr ? scratch.take(size) : of_x;
  if (has_dense()) {
    if (!counts()) kernels::best().activation_row(activation_, dense, activated, size);
    norm_.forward(activated, rows, normed);
  } else {
    copy_values(x, size, normed);
  }
  drop_rows(drop_normed, normed, rows, 1, width());
  if (softcap_ > 0) {
    const std::size_t count = size_of(rows, outputs());
    float* const capped = scratch.take(count);
    float* const of_classifier = scratch.take(count);
    classify(normed, rows, words, capped, scratch);
    copy_values(grad, count, of_classifier);
    if (!counts()) kernels::best_backward().softcap_backward_row(capped, softcap_, of_classifier, count);
    grad = of_classifier;
  }
  if (is_tied_)
    tied_backward(grad, normed, static_cast<std::size_t>(rows), words, of_hidden, gradients, scratch);
  else
    classifier_.backward(grad, normed, rows, of_hidden, "classifier.", gradients, scratch);
  drop_rows(drop_normed, of_hidden, rows, 1, width());
  if (has_dense()) {
    norm_.backward(of_hidden, activated, rows, of_hidden, "classifier_norm.", gradients, scratch);
    for (std::size_t first = 0; first < size && !counts(); first += row_size)
      if (has_gradient(of_hidden + first, row_size))
        kernels::best_backward().activation_backward_row(activation_, of_hidden + first, dense + first, of_hidden + first, row_size);
    dense_.backward(of_hidden, x, rows, of_x, "classifier_dense.", gradients, scratch);
  }
  if (of_x != nullptr) drop_rows(dropout_of(random, DropoutSite::pooled), of_x, rows, 1, has_dense() ? dense_.in_features() : width());
}

}  // namespace attn::detail
