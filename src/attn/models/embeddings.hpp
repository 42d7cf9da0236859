#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/layers/embedding_layer.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/models/model_config.hpp"
#include "attn/models/model_inputs.hpp"
#include "attn/models/patch_embeddings.hpp"
#include "attn/ops/embedding.hpp"

namespace attn::detail {

/// For images the patches. For texts scale · norm(word + token type + task type + position), projected to the model's width if the tables have
/// another width W.
class Embeddings {
 public:
  /// `config` must outlive it.
  explicit Embeddings(const ModelConfig& config);

  const Embedding& words() const { return words_; }
  Embedding& words() { return words_; }
  void visit_parameters(ParameterVisitor& visitor);

  void check_ids(std::string_view op, const ModelInputs& inputs) const;
  /// Returns (B,L).
  Shape check_pixels(std::string_view op, const Shape& pixels) const { return patches_.check(op, pixels); }
  /// x (..,E)
  void forward(const ModelInputs& inputs, float* x, Scratch& scratch) const;

  struct Kept {
    std::vector<std::int64_t> positions;
    float* sums;  ///< (..,W) before the norm
  };
  /// With dropout. `kept.sums` must be allocated. `words`, if not null, has the word embedding of each position.
  void forward(const ModelInputs& inputs, const Table* words, const ForwardRandom& random, Kept& kept, float* x, Scratch& scratch) const;
  /// Adds the gradients of tables and norm; of_words (..,W) may be null. Changes of_x.
  void backward(const ModelInputs& inputs, const Kept& kept, const ForwardRandom& random, float* of_x, float* of_words, Gradients& gradients,
                Scratch& scratch) const;

 private:
  std::vector<EmbeddingRows> tables(const ModelInputs& inputs, std::vector<std::int64_t>& positions) const;
  /// For one sequence, whose first id has position `first`.
  void position_rows(std::span<const std::int64_t> ids, std::int64_t first, bool is_given, std::int64_t* rows) const;
  void scale(float* x, std::size_t count) const;
  void clear_padding(const ModelInputs& inputs, std::int64_t width, float* x) const;

  const ModelConfig& config_;
  PatchEmbeddings patches_;  // of images
  Embedding words_;
  Table positions_, token_types_, task_types_;  // (rows,W), or empty
  Norm norm_;
  std::optional<Linear> projection_;  // (E,W)
};

}  // namespace attn::detail
