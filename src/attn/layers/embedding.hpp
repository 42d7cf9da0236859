#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "attn/layers/module.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

struct EmbeddingOptions {
  std::int64_t num_embeddings = 0;                         ///< N, rows of the table
  std::int64_t embedding_dim = 0;                          ///< E, their width
  std::optional<std::int64_t> padding_idx = std::nullopt;  ///< a row that is zero when weights are drawn
};

struct EmbeddingForwardOptions {
  bool for_backward = false;  ///< keep the ids for backward(), as forwards in train mode do
};

/// A row of the table and its cosine to what was asked for.
struct Neighbor {
  std::int64_t id = 0;
  float similarity = 0;
};

/// A table of vectors by id                                                         (torch.nn.Embedding)
///
/// State, torch's names: weight (N,E).
class Embedding : public Module<Embedding> {
 public:
  /// Without numbers yet: for models, which load them.
  Embedding(detail::Uninitialized, const EmbeddingOptions& options);
  /// Weights N(0,1) as torch's constructor would draw them, from seed 0. Throws CONFIG, MEMORY.
  explicit Embedding(const EmbeddingOptions& options);

  /// ids of any rank, whole numbers from 0 to N-1 -> their rows (..,E). Throws OUT_OF_RANGE with the position of the first id that the
  /// table does not have, MEMORY.
  template <class Ids>
    requires std::is_integral_v<typename Ids::value_type>
  auto forward(const Ids& ids, const EmbeddingForwardOptions& options = {}) const {
    const std::vector<std::int64_t> values(ids.begin(), ids.end());
    auto y = detail::empty<kRankOf<Ids> + 1>(check(values, to_shape(ids.shape())));
    run(values, y.data());
    if constexpr (detail::kHasGradients) keep(values, to_shape(y.shape()), options);
    return y;
  }

  /// grad (..,E), that of what the last forward gave that kept its ids -> added to the gradient of the weight: of each row the sum over the
  /// places of its id, in their order; padding_idx gets none. Throws UNSUPPORTED for an int8 table, ARGUMENT without such a forward since the
  /// last backward or change of weights, SHAPE, MEMORY; nothing changes then.                           (torch.autograd of F.embedding)
  template <TensorLike G>
  void backward(const G& grad) {
    run_backward(detail::Input(grad, "Embedding", "grad"));
  }

  /// The k rows most similar to row `target`, itself excluded, by falling cosine: all of them where there are fewer. Rows of
  /// zeros have cosine 0; of equal ones the lower id is first. Throws OUT_OF_RANGE, ARGUMENT for k below 0.
  std::vector<Neighbor> nearest(std::int64_t target, std::int64_t k) const;
  /// The same to a vector (E). Throws SHAPE too.
  template <TensorLike V>
  std::vector<Neighbor> nearest(const V& target, std::int64_t k) const {
    return nearest(detail::Input(target, "nearest", "target"), k);
  }
  std::vector<Neighbor> nearest(const TensorView& target, std::int64_t k) const;
  /// Cosine of two rows. Throws OUT_OF_RANGE.
  float similarity(std::int64_t a, std::int64_t b) const;
  /// a is to b as c is to the result: the rows nearest to b - a + c, the three excluded (Mikolov et al. 2013). Throws as nearest.
  std::vector<Neighbor> analogy(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t k) const;

  /// For callers that own the memory: everything checked, then the work itself.
  Shape check(const std::vector<std::int64_t>& ids, const Shape& shape) const;
  void run(const std::vector<std::int64_t>& ids, float* y) const;
  /// After run(): keeps the ids, where backward() may come.
  void keep(const std::vector<std::int64_t>& ids, const Shape& shape, const EmbeddingForwardOptions& options) const;
  void run_backward(const TensorView& grad);
  /// Names where its numbers will be.
  void add_parameters(const std::string& prefix, detail::Parameters& parameters);
  /// (E), as float32 whatever the table is kept as.
  std::vector<float> row(std::int64_t id) const;
  const detail::Table& table() const { return weight_; }
  bool is_quantized() const { return weight_.is_quantized(); }

 private:
  friend class Module<Embedding>;
  friend class EncoderModel;
  struct Kept;

  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  void load(const StateView& state);
  Embedding drawn(const InitOptions& options, std::uint32_t& parameter) const;
  void make_int8() { weight_.quantize(); }

  void check_id(std::string_view op, std::string_view name, std::int64_t id) const;
  std::vector<Neighbor> ranked(std::string_view op, const float* target, std::int64_t k, const std::vector<std::int64_t>& excluded) const;

  EmbeddingOptions options_;
  detail::Table weight_;  // (N,E)
};

}  // namespace attn
