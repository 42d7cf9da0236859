#include <algorithm>
#include <numeric>

#include "attn/models/embeddings.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/embedding_backward.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

Dropout dropout_of(const ForwardRandom& random) { return dropout_at(random, 0, DropoutSite::embeddings, 0); }

}  // namespace

void Embeddings::forward(const ModelInputs& inputs, const Table* words, const ForwardRandom& random, Kept& kept, float* x, Scratch& scratch) const {
  const std::int64_t rows = std::ssize(inputs.input_ids), W = config_.word_width();
  const auto width = static_cast<std::size_t>(W);
  const Scratch::Frame frame(scratch);
  float* const normed = projection_ ? scratch.take(size_of(rows, W)) : x;
  std::vector<EmbeddingRows> all = tables(inputs, kept.positions);
  std::vector<std::int64_t> places;
  if (words != nullptr) {
    places.resize(inputs.input_ids.size());
    std::iota(places.begin(), places.end(), 0);
    all.front() = {words, places};
  }
  const auto norm = [&](std::size_t i, unsigned) noexcept {
    std::copy_n(normed + i * width, width, kept.sums + i * width);
    norm_.forward_row(normed + i * width, normed + i * width);
    scale(normed + i * width, width);
  };
  sum_embeddings(all, inputs.input_ids.size(), width, normed, norm);
  clear_padding(inputs, W, normed);
  drop_rows(dropout_of(random), normed, rows, inputs.shape[1], W);
  if (projection_) projection_->forward(normed, rows, x, scratch);
}

void Embeddings::backward(const ModelInputs& inputs, const Kept& kept, const ForwardRandom& random, float* of_x, float* of_words,
                          Gradients& gradients, Scratch& scratch) const {
  const std::int64_t rows = std::ssize(inputs.input_ids), W = config_.word_width();
  const Scratch::Frame frame(scratch);
  float* of_sums = of_x;
  if (projection_) {
    of_sums = scratch.take(size_of(rows, W));
    float* const normed = scratch.take(size_of(rows, W));
    norm_.forward(kept.sums, rows, normed);
    scale(normed, size_of(rows, W));
    drop_rows(dropout_of(random), normed, rows, inputs.shape[1], W);
    projection_->backward(of_x, normed, rows, of_sums, "embedding_projection.", gradients, scratch);
  }
  drop_rows(dropout_of(random), of_sums, rows, inputs.shape[1], W);
  clear_padding(inputs, W, of_sums);
  scale(of_sums, size_of(rows, W));
  norm_.backward(of_sums, kept.sums, rows, of_sums, "embedding_norm.", gradients, scratch);
  if (of_words != nullptr) copy_values(of_sums, size_of(rows, W), of_words);
  const Rows of_rows(of_sums, size_of(rows, 1), size_of(1, W));
  const auto add_table = [&](const char* name, std::span<const std::int64_t> ids, std::int64_t padding_idx) {
    if (float* const sums = gradients.at(name)) add_embedding_gradients(of_rows, ids, padding_idx, sums);
  };
  add_table("word_embeddings.weight", inputs.input_ids, config_.pad_token_id);
  add_table("position_embeddings.weight", kept.positions, config_.positions == PositionRows::from_ids ? config_.padding_idx : -1);
  add_table("token_type_embeddings.weight", inputs.token_type_ids, -1);
  add_table("task_type_embeddings.weight", {}, -1);
}

}  // namespace attn::detail
