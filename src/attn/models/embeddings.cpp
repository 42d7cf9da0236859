#include "attn/models/embeddings.hpp"

#include <algorithm>
#include <numeric>

#include "attn/kernels/kernels.hpp"
#include "attn/models/family.hpp"
#include "attn/tensor/host.hpp"

namespace attn::detail {

Embeddings::Embeddings(const ModelConfig& config)
    : config_(config),
      words_(Uninitialized{}, {.num_embeddings = config.vocab_size, .embedding_dim = config.word_width()}, config.is_tied()),
      norm_(config.family->names.embedding_norm.empty() ? Norm::identity(config.word_width())
                                                        : Norm(NormKind::layer_norm, config.word_width(), true, config.layer_norm_eps)) {
  if (config.image) patches_ = {config.image, config.hidden_size};
  const auto width = static_cast<std::size_t>(config.word_width());
  if (config.positions != PositionRows::none) positions_ = {static_cast<std::size_t>(config.max_position_embeddings), width};
  if (config.type_vocab_size > 0) token_types_ = {static_cast<std::size_t>(config.type_vocab_size), width};
  if (config.task_type_vocab_size > 0) task_types_ = {static_cast<std::size_t>(config.task_type_vocab_size), width};
  if (config.embedding_projection) projection_ = Linear(config.word_width(), config.hidden_size, true);
}

void Embeddings::visit_parameters(ParameterVisitor& visitor) {
  if (config_.image) return patches_.visit_parameters(visitor);
  visitor.part("word_embeddings.", words_);
  visitor.add_table("position_embeddings.weight", positions_);
  visitor.add_table("token_type_embeddings.weight", token_types_);
  visitor.add_table("task_type_embeddings.weight", task_types_);
  visitor.part("embedding_norm.", norm_);
  if (projection_) visitor.part("embedding_projection.", *projection_);
}

void Embeddings::check_ids(std::string_view op, const ModelInputs& inputs) const {
  const auto check = [&](const char* name, std::span<const std::int64_t> ids, std::int64_t rows) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || ids[i] >= rows)
        fail(ErrorCode::out_of_range, op, text({name, "[", i, "]"}), {"an id from 0 to ", rows - 1}, {ids[i]}, {{"index", static_cast<double>(i)}});
  };
  check("input_ids", inputs.input_ids, config_.vocab_size);
  if (!inputs.token_type_ids.empty() && inputs.token_type_ids.size() != inputs.input_ids.size())
    fail(ErrorCode::shape, op, "token_type_ids", {inputs.shape}, {inputs.token_type_ids.size(), " numbers"});
  if (config_.type_vocab_size > 0) check("token_type_ids", inputs.token_type_ids, config_.type_vocab_size);
}

void Embeddings::position_rows(std::span<const std::int64_t> ids, std::int64_t first, bool is_given, std::int64_t* rows) const {
  std::int64_t last = config_.padding_idx;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (config_.positions == PositionRows::counted)
      rows[i] = first + static_cast<std::int64_t>(i);
    else if (kIsNative && is_given)
      rows[i] = ++last;
    else
      rows[i] = ids[i] == config_.padding_idx ? config_.padding_idx : ++last;
  }
}

std::vector<EmbeddingRows> Embeddings::tables(const ModelInputs& inputs, std::vector<std::int64_t>& positions) const {
  positions.resize(positions_.empty() ? 0 : inputs.input_ids.size());
  std::size_t row = 0;
  for (const auto& [sequences, length] : runs_of(inputs))
    for (std::int64_t i = 0; i < sequences && !positions.empty(); ++i, row += static_cast<std::size_t>(length))
      position_rows(inputs.input_ids.subspan(row, static_cast<std::size_t>(length)), inputs.first_position, inputs.embeds != nullptr,
                    positions.data() + row);
  std::vector<EmbeddingRows> all{{&words_.table(), inputs.input_ids}};
  if (!token_types_.empty()) all.push_back({&token_types_, inputs.token_type_ids});
  if (!task_types_.empty()) all.push_back({&task_types_, {}});
  if (!positions_.empty()) all.push_back({&positions_, positions});
  return all;
}

void Embeddings::scale(float* x, std::size_t count) const {
  if (config_.embedding_scale != 1 && !counts()) kernels::best().scale_row(x, config_.embedding_scale, x, count);
}

void Embeddings::clear_padding(const ModelInputs& inputs, std::int64_t width, float* x) const {
  if (!config_.clears_padding || inputs.attention_mask == nullptr || counts()) return;
  const std::int64_t L = inputs.shape[1];
  for (std::int64_t row = 0; row < inputs.shape[0] * L; ++row)
    if (!keeps(inputs.attention_mask, row / L, row % L)) std::fill_n(x + row * width, width, 0.0F);
}

void Embeddings::forward(const ModelInputs& inputs, float* x, Scratch& scratch) const {
  if (inputs.pixels != nullptr) return patches_.forward(*inputs.pixels, x, scratch);
  const auto W = static_cast<std::size_t>(config_.word_width());
  const std::size_t rows = inputs.input_ids.size();
  const Scratch::Frame frame(scratch);
  float* const sums = projection_ ? scratch.take(rows, W) : x;
  std::vector<std::int64_t> positions, places;
  std::vector<EmbeddingRows> all = tables(inputs, positions);
  Table given;
  AlignedFloats counted_rows;
  if (kIsNative && inputs.embeds != nullptr && counts()) {
    counted_rows = AlignedFloats(rows * W);
  } else if (kIsNative && inputs.embeds != nullptr) {
    given = Table(rows, W);
    given.allocate();
    given.set_rows(0, {inputs.embeds, rows * W});
    places.resize(rows);
    std::iota(places.begin(), places.end(), 0);
    all.front() = {&given, places};
  }
  const auto norm = [&](std::size_t i, unsigned) noexcept {
    norm_.forward_row(sums + i * W, sums + i * W);
    scale(sums + i * W, W);
  };
  sum_embeddings(all, rows, W, sums, norm);
  if (projection_) projection_->forward(sums, static_cast<std::int64_t>(rows), x, scratch);
  clear_padding(inputs, config_.hidden_size, x);
}

}  // namespace attn::detail
