#include <algorithm>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

using detail::size_of;

void pool_results(const detail::ModelInputs& inputs, const std::vector<Pooling>& poolings, std::int64_t E, const float* hidden, float* result) {
  const auto count = static_cast<std::int64_t>(poolings.size());
  for (std::int64_t i = 0; i < count; ++i)
    detail::pool_sequences(inputs, E, hidden, poolings[static_cast<std::size_t>(i)], result + i * E, count * E);
}

}  // namespace

void EncoderModel::run_result(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers,
                              float* result) const {
  run(plan, inputs, buffers, has_text_head() ? result : nullptr);
  if (!has_text_head()) pool_results(inputs, config_.poolings, config_.hidden_size, buffers.output, result);
}

void EncoderModel::check_gradients(std::string_view op) const {
  if (config_.image) detail::fail(ErrorCode::unsupported, op, "the model", {"a text model"}, {"an image model, which has no gradients"});
  if (is_quantized())
    detail::fail(ErrorCode::unsupported, op, "the model", {"float32 weights"}, {"int8, which has no gradients"}, "Load it with weights float32");
}

std::unique_ptr<detail::KeptModel> EncoderModel::run_and_keep(const detail::ModelPlan& plan, const detail::ModelInputs& inputs,
                                                              const detail::EncoderBuffers& buffers, const detail::ModelKeepOptions& options) const {
  const auto& [of_head, words, random, tokens] = options;
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
  const std::size_t size = size_of(rows, W), pooled = of_head ? size_of(kept->results, E) : 0,
                    dense = of_head ? size_of(kept->results, head_.width()) : 0;
  kept->numbers = AlignedFloats(std::uint64_t{size} + pooled + dense + size_of(kept->results, result_size(of_head)));
  kept->embeddings.sums = kept->numbers.data();
  kept->pooled = kept->embeddings.sums + size;
  kept->dense = kept->pooled + pooled;
  kept->result = kept->dense + dense;

  detail::Scratch scratch(&workspace_);
  float* const x = scratch.take(size_of(rows, E));
  embeddings_.forward(inputs, words, random, kept->embeddings, x, scratch);
  kept->stack = stack_.run_and_keep(plan.encoder, inputs, x, random, buffers, scratch);

  if (of_head) {
    if (tokens.empty()) detail::pool_sequences(inputs, E, buffers.output, config_.classifier_pooling, kept->pooled, E);
    for (std::size_t i = 0; i < tokens.size(); ++i) detail::copy_values(buffers.output + size_of(tokens[i], E), width, kept->pooled + i * width);
    head_.forward(kept->pooled, kept->results, word_embeddings().table(), random, kept->dense, kept->result, scratch);
  } else {
    pool_results(inputs, config_.poolings, E, buffers.output, kept->result);
  }
  return kept;
}

void EncoderModel::backward(const detail::KeptModel& kept, const float* grad, const detail::ModelGradientBuffers& to) const {
  const detail::FloatEnvironment environment;
  detail::check_memory("backward", [&] { backward(kept, grad, to); });
  detail::Scratch scratch(&workspace_);
  detail::Gradients none;
  detail::Gradients& gradients = to.parameters != nullptr ? *to.parameters : none;
  const std::int64_t E = config_.hidden_size, rows = kept.stack.layers->B * kept.stack.layers->L;
  const std::size_t size = size_of(rows, E), width = size_of(1, E);
  const detail::ModelInputs inputs = kept.inputs();
  const bool ends_at_head = to.first_layer == config_.stored_layers();
  float* const of_x = scratch.take(size);
  if (kept.of_head) {
    float* const of_pooled = ends_at_head ? nullptr : scratch.take(size_of(kept.results, E));
    head_.backward(grad, kept.pooled, kept.dense, kept.results, word_embeddings().table(), kept.stack.layers->random, of_pooled, gradients, scratch);
    if (ends_at_head) return;
    if (kept.tokens.empty()) detail::pool_sequences_backward(inputs, E, of_pooled, E, kept.stack.layers->output, config_.classifier_pooling, of_x);
    if (!kept.tokens.empty()) detail::fill_zeros(of_x, size);
    for (std::size_t i = 0; i < kept.tokens.size(); ++i) detail::copy_values(of_pooled + i * width, width, of_x + size_of(kept.tokens[i], E));
  } else {
    float* const more = config_.poolings.size() > 1 ? scratch.take(size) : nullptr;
    for (std::size_t i = 0; i < config_.poolings.size(); ++i) {
      detail::pool_sequences_backward(inputs, E, grad + i * width, result_size(false), kept.stack.layers->output, config_.poolings[i],
                                      i == 0 ? of_x : more);
      if (i > 0 && !detail::counts()) kernels::best().add_row(of_x, more, of_x, size);
    }
  }

  stack_.backward(kept.stack, to.first_layer, to.parameters != nullptr, to.traces, of_x, gradients, scratch);
  if (!to.first_layer) embeddings_.backward(inputs, kept.embeddings, kept.stack.layers->random, of_x, to.embeddings, gradients, scratch);
}

void EncoderModel::run_head_and_keep(detail::KeptHead& kept) const {
  detail::Scratch scratch(&workspace_);
  const std::size_t size = size_of(kept.sequences, config_.hidden_size), dense = size_of(kept.sequences, head_.width());
  kept.numbers = AlignedFloats(size + dense + size_of(kept.sequences, head_.outputs()));
  kept.pooled = kept.numbers.data();
  kept.dense = kept.pooled + size;
  kept.logits = kept.dense + dense;
  detail::copy_values(kept.given, size, kept.pooled);
  head_.forward(kept.pooled, kept.sequences, word_embeddings().table(), kept.random, kept.dense, kept.logits, scratch);
}

void EncoderModel::backward(const detail::KeptHead& kept, const float* grad, detail::Gradients& gradients) const {
  detail::check_memory("backward", [&] { backward(kept, grad, gradients); });
  detail::Scratch scratch(&workspace_);
  head_.backward(grad, kept.pooled, kept.dense, kept.sequences, word_embeddings().table(), kept.random, nullptr, gradients, scratch);
}

}  // namespace attn
