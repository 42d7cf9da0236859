#include <algorithm>
#include <numeric>
#include <utility>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/layers/rows_with_gradient.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/embedding_backward.hpp"
#include "attn/ops/pooling_backward.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

using detail::size_of;

/// hidden states -> result, by sequence: what each pooling makes of them, side by side.
void pool_results(const detail::ModelInputs& inputs, const std::vector<Pooling>& poolings, std::int64_t E, const float* hidden, float* result) {
  const auto count = static_cast<std::int64_t>(poolings.size());
  for (std::int64_t i = 0; i < count; ++i)
    detail::pool_sequences(inputs, E, hidden, poolings[static_cast<std::size_t>(i)], result + i * E, count * E);
}

/// Gradients of pool_sequences(): grad, rows of it `stride` apart -> of_hidden.
void pool_sequences_backward(const detail::ModelInputs& inputs, std::int64_t E, const float* grad, std::int64_t stride, const float* hidden,
                             Pooling pooling, float* of_hidden) {
  for (const auto& [count, length] : detail::runs_of(inputs)) {
    detail::pool_backward(grad, stride, hidden, count, length, E, pooling, inputs.attention_mask, FullyMasked::zero, of_hidden);
    // Of a sequence without tokens cls takes the first position, which clear_empty() makes 0.
    detail::clear_empty(inputs.attention_mask, count, length, length * E, of_hidden, length * E);
    grad += count * stride;
    hidden += count * length * E;
    of_hidden += count * length * E;
  }
}

/// That of a place outside the layers; there is none unless the probabilities are a checkpoint's.
detail::Dropout dropout_of(const detail::ForwardRandom& random, detail::DropoutSite site) { return detail::dropout_at(random, 0, site, 0); }

}  // namespace

void EncoderModel::run_result(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers,
                              float* result) const {
  run(plan, inputs, buffers, has_text_head() ? result : nullptr);
  if (!has_text_head()) pool_results(inputs, config_.poolings, config_.hidden_size, buffers.output, result);
}

void EncoderModel::check_gradients(std::string_view op) const {
  if (is_quantized_)
    detail::fail(ErrorCode::unsupported, op, "the model", {"float32 weights"}, {"int8, which has no gradients"}, "Load it with weights float32");
}

std::unique_ptr<detail::KeptModel> EncoderModel::run_and_keep(const detail::ModelPlan& plan, const detail::ModelInputs& inputs,
                                                              const detail::EncoderBuffers& buffers, bool of_head, const detail::Table* words,
                                                              const detail::ForwardRandom& random, std::span<const std::int64_t> tokens) const {
  auto kept = std::make_unique<detail::KeptModel>();
  const std::int64_t rows = plan.encoder.B * plan.encoder.L, E = plan.encoder.E;
  const auto width = static_cast<std::size_t>(E);
  kept->ids.assign(inputs.input_ids.begin(), inputs.input_ids.end());
  kept->types.assign(inputs.token_type_ids.begin(), inputs.token_type_ids.end());
  kept->runs.assign(inputs.runs.begin(), inputs.runs.end());
  kept->of_head = of_head;
  kept->tokens.assign(tokens.begin(), tokens.end());
  kept->results = tokens.empty() ? plan.sequences : std::ssize(tokens);
  const std::int64_t W = config_.word_width();
  const std::size_t size = size_of(rows, W), word = size_of(1, W), pooled = of_head ? size_of(kept->results, E) : 0,
                    dense = of_head ? size_of(kept->results, head_.width()) : 0;
  kept->numbers = AlignedFloats(size + pooled + dense + size_of(kept->results, result_size(of_head)));
  kept->embeddings = kept->numbers.data();
  kept->pooled = kept->embeddings + size;
  kept->dense = kept->pooled + pooled;
  kept->result = kept->dense + dense;

  detail::Scratch scratch(&workspace_);
  float* const sums = scratch.take(size);
  std::vector<detail::EmbeddingRows> tables = embedding_rows(inputs, kept->positions);
  std::vector<std::int64_t> places;
  if (words != nullptr) {
    places.resize(kept->ids.size());
    std::iota(places.begin(), places.end(), 0);
    tables.front() = {words, places};
  }
  const auto norm = [&](std::size_t i, unsigned) noexcept {
    std::copy_n(sums + i * word, word, kept->embeddings + i * word);
    embedding_norm_.forward_row(sums + i * word, sums + i * word);
  };
  detail::sum_embeddings(tables, kept->ids.size(), word, sums, norm);
  clear_padding(inputs, sums);
  detail::drop_rows(dropout_of(random, detail::DropoutSite::embeddings), sums, rows, plan.encoder.L, W);
  float* const x = embedding_projection_ ? scratch.take(size_of(rows, E)) : sums;
  if (embedding_projection_) embedding_projection_->forward(sums, rows, x, scratch);
  kept->score_positions = score_positions(inputs, scratch, &random);
  kept->encoder = encoder_.run_and_keep(plan.encoder, {x, plan.encoder.output}, random, kept->score_positions.bias, buffers);

  if (of_head) {
    if (tokens.empty()) detail::pool_sequences(inputs, E, buffers.output, config_.classifier_pooling, kept->pooled, E);
    for (std::size_t i = 0; i < tokens.size(); ++i) std::copy_n(buffers.output + size_of(tokens[i], E), width, kept->pooled + i * width);
    head_.forward(kept->pooled, kept->results, words_.table(), random, kept->dense, kept->result, scratch);
  } else {
    pool_results(inputs, config_.poolings, E, buffers.output, kept->result);
  }
  return kept;
}

void EncoderModel::backward(const detail::KeptModel& kept, const float* grad, const detail::ModelGradientBuffers& to) const {
  const detail::FloatEnvironment environment;
  const std::map<std::string, Shape> wanted = to.parameters != nullptr ? to.parameters->shapes() : std::map<std::string, Shape>();
  MemoryEstimate memory("backward");
  encoder_.layers_.front().plan_backward("backward", *kept.encoder, {}, wanted, memory);
  memory.check();
  detail::Scratch scratch(&workspace_);
  detail::Gradients none;
  detail::Gradients& gradients = to.parameters != nullptr ? *to.parameters : none;
  const std::int64_t E = config_.hidden_size, rows = kept.encoder->B * kept.encoder->L;
  const std::size_t size = size_of(rows, E), width = size_of(1, E);
  const detail::ModelInputs inputs = kept.inputs();
  const bool ends_at_head = to.first_layer == config_.stored_layers();
  float* const of_x = scratch.take(size);
  if (kept.of_head) {
    float* const of_pooled = ends_at_head ? nullptr : scratch.take(size_of(kept.results, E));
    head_.backward(grad, kept.pooled, kept.dense, kept.results, words_.table(), kept.encoder->random, of_pooled, gradients, scratch);
    if (ends_at_head) return;
    if (kept.tokens.empty()) pool_sequences_backward(inputs, E, of_pooled, E, kept.encoder->output, config_.classifier_pooling, of_x);
    if (!kept.tokens.empty()) std::fill_n(of_x, size, 0.0F);
    for (std::size_t i = 0; i < kept.tokens.size(); ++i) std::copy_n(of_pooled + i * width, width, of_x + size_of(kept.tokens[i], E));
  } else {
    float* const more = config_.poolings.size() > 1 ? scratch.take(size) : nullptr;
    for (std::size_t i = 0; i < config_.poolings.size(); ++i) {
      pool_sequences_backward(inputs, E, grad + i * width, result_size(false), kept.encoder->output, config_.poolings[i], i == 0 ? of_x : more);
      if (i > 0) kernels::best().add_row(of_x, more, of_x, size);
    }
  }

  detail::EncoderGradientBuffers of_encoder{.grad_x = of_x, .traces = {}, .first_layer = static_cast<std::size_t>(to.first_layer.value_or(0))};
  if (!to.attentions.empty()) {
    of_encoder.traces.resize(to.attentions.size());
    for (std::size_t layer = 0; layer < to.attentions.size(); ++layer)
      of_encoder.traces[layer][static_cast<std::size_t>(TraceName::weights)] = to.attentions[layer];
  }
  float* const of_buckets = to.first_layer ? nullptr : gradients.at("position_bias.weight");
  const detail::PositionBias& bias = kept.encoder->layers.front().attention.position_bias;
  const auto heads = static_cast<std::size_t>(config_.num_attention_heads);
  if (of_buckets != nullptr) {
    of_encoder.position_bias = scratch.take(heads * size_of(bias.row, 1));
    std::fill_n(of_encoder.position_bias, heads * size_of(bias.row, 1), 0.0F);
  }
  const std::size_t relative = kept.score_positions.layers != nullptr && to.parameters != nullptr && !to.first_layer ? relative_.size() : 0;
  if (relative > 0) {
    of_encoder.relative = scratch.take(relative);
    std::fill_n(of_encoder.relative, relative, 0.0F);
  }
  encoder_.backward(*kept.encoder, "encoder.", gradients, of_encoder, scratch);
  if (relative > 0) {
    float* const table = scratch.take(relative);
    relative_.get(table);
    if (config_.relative.has_norm)
      relative_norm_.backward(of_encoder.relative, table, config_.relative.rows(), of_encoder.relative, "relative_norm.", gradients, scratch);
    if (float* const sums = gradients.at("relative_embeddings.weight")) kernels::best().add_row(sums, of_encoder.relative, sums, relative);
  }
  if (of_buckets != nullptr) {
    const float* from = of_encoder.position_bias;
    for (std::size_t head = 0; head < heads; ++head)
      for (std::int64_t distance = -bias.row / 2; distance < bias.row / 2; ++distance)
        of_buckets[detail::bucket_of(distance) * heads + head] += *from++;
  }

  if (to.first_layer) return;
  const std::int64_t W = config_.word_width();
  const detail::Dropout drop_embeddings = dropout_of(kept.encoder->random, detail::DropoutSite::embeddings);
  float* of_sums = of_x;
  if (embedding_projection_) {
    of_sums = scratch.take(size_of(rows, W));
    float* const normed = scratch.take(size_of(rows, W));
    embedding_norm_.forward(kept.embeddings, rows, normed);
    detail::drop_rows(drop_embeddings, normed, rows, kept.encoder->L, W);
    embedding_projection_->backward(of_x, normed, rows, of_sums, "embedding_projection.", gradients, scratch);
  }
  detail::drop_rows(drop_embeddings, of_sums, rows, kept.encoder->L, W);
  clear_padding(inputs, of_sums);
  embedding_norm_.backward(of_sums, kept.embeddings, rows, of_sums, "embedding_norm.", gradients, scratch);
  if (to.embeddings != nullptr) std::copy_n(of_sums, size_of(rows, W), to.embeddings);
  const detail::Rows of_rows(of_sums, size_of(rows, 1), size_of(1, W));
  const auto add_table = [&](const char* name, const std::vector<std::int64_t>& ids, std::int64_t padding_idx) {
    if (float* const sums = gradients.at(name)) detail::add_embedding_gradients(of_rows, ids, padding_idx, sums);
  };
  add_table("word_embeddings.weight", kept.ids, config_.pad_token_id);
  add_table("position_embeddings.weight", kept.positions, config_.positions == detail::PositionRows::from_ids ? config_.padding_idx : -1);
  add_table("token_type_embeddings.weight", kept.types, -1);
  add_table("task_type_embeddings.weight", {}, -1);
}

void EncoderModel::run_head_and_keep(detail::KeptHead& kept) const {
  detail::Scratch scratch(&workspace_);
  const std::size_t size = size_of(kept.sequences, config_.hidden_size), dense = size_of(kept.sequences, head_.width());
  kept.numbers = AlignedFloats(size + dense + size_of(kept.sequences, head_.outputs()));
  kept.pooled = kept.numbers.data();
  kept.dense = kept.pooled + size;
  kept.logits = kept.dense + dense;
  std::copy_n(kept.given, size, kept.pooled);
  head_.forward(kept.pooled, kept.sequences, words_.table(), kept.random, kept.dense, kept.logits, scratch);
}

void EncoderModel::backward(const detail::KeptHead& kept, const float* grad, detail::Gradients& gradients) const {
  detail::Scratch scratch(&workspace_);
  head_.backward(grad, kept.pooled, kept.dense, kept.sequences, words_.table(), kept.random, nullptr, gradients, scratch);
}

std::map<std::string, Shape> EncoderModel::state_shapes() const {
  const std::int64_t W = config_.word_width();
  std::map<std::string, Shape> shapes;
  words_.add_shapes("word_embeddings.", nullptr, shapes);
  if (!positions_.empty()) shapes.emplace("position_embeddings.weight", Shape{config_.max_position_embeddings, W});
  if (!token_types_.empty()) shapes.emplace("token_type_embeddings.weight", Shape{config_.type_vocab_size, W});
  if (!task_types_.empty()) shapes.emplace("task_type_embeddings.weight", Shape{config_.task_type_vocab_size, W});
  if (config_.position_buckets > 0) shapes.emplace("position_bias.weight", Shape{config_.position_buckets, config_.num_attention_heads});
  if (!relative_.empty()) shapes.emplace("relative_embeddings.weight", Shape{config_.relative.rows(), config_.hidden_size});
  if (config_.relative.has_norm) relative_norm_.add_shapes("relative_norm.", nullptr, shapes);
  embedding_norm_.add_shapes("embedding_norm.", nullptr, shapes);
  if (embedding_projection_) embedding_projection_->add_shapes("embedding_projection.", nullptr, shapes);
  encoder_.add_shapes("encoder.", nullptr, shapes);
  if (config_.norm_first) std::erase_if(shapes, [](const auto& each) { return each.first.starts_with("encoder.layers.0.norm1."); });  // left out
  if (config_.has_head()) head_.add_shapes(shapes);
  return shapes;
}

detail::StateParameters EncoderModel::state_parameters() { return detail::state_parameters(parameters(), state_shapes()); }

std::vector<std::vector<detail::GradientPart>> EncoderModel::gradient_parts() {
  const detail::StateParameters all = state_parameters();
  const auto part_of = [&](const detail::Parameter& parameter) -> detail::GradientPart {
    for (const auto& [name, pieces] : all) {
      std::size_t first = 0;
      for (const detail::Parameter& piece : pieces) {
        if (piece == parameter) return {name, first, piece.size()};
        first += piece.size();
      }
    }
    return {};  // not reached: tensors are made of them
  };
  std::vector<std::vector<detail::GradientPart>> parts;
  for (const detail::CheckpointTensor& tensor : tensors_) {
    parts.emplace_back();
    for (const detail::Parameter& parameter : tensor.parts) parts.back().push_back(part_of(parameter));
  }
  return parts;
}

}  // namespace attn
