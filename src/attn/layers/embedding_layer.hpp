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

/// Options for the constructor of Embedding.
struct EmbeddingOptions {
  std::int64_t num_embeddings = 0;                         ///< N, rows of the table
  std::int64_t embedding_dim = 0;                          ///< E, width of a row
  std::optional<std::int64_t> padding_idx = std::nullopt;  ///< row that is initialized to zero
};

/// Options for Embedding::forward().
struct EmbeddingForwardOptions {
  bool for_backward = false;  ///< save the ids for backward(), as forwards in train mode do
};

/// A row of the table and its cosine similarity to the target.
struct Neighbor {
  std::int64_t id = 0;
  float similarity = 0;
};

/// A lookup table of vectors by id, as torch.nn.Embedding.
///
/// State, torch's names: weight (N,E).
/// @code
/// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2});
/// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {0, 1}, {1, 1}}}});
/// std::cout << words.forward(xt::xtensor<std::int64_t, 1>{2}) << words.nearest(0, 1).at(0).id;  // {{ 1., 1.}}2
/// @endcode
class Embedding : public Module {
 public:
  /// Leaves the weight unallocated, for models that load it.
  Embedding(detail::Uninitialized, const EmbeddingOptions& options, bool is_shared = false);
  /// Draws weights N(0,1) as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if a size is below 1 or padding_idx is outside the table
  /// @throws MEMORY if the table exceeds the memory limit
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2, .padding_idx = 0});
  /// std::cout << words.row(0).at(0) << ' ' << words.row(0).at(1);  // 0 0
  /// @endcode
  explicit Embedding(const EmbeddingOptions& options);

  /// Returns the rows of the given ids.
  ///
  /// @param ids      xtensor of integers from 0 to N-1, any rank
  /// @param options  whether to save the ids for backward()
  /// @return (..,E)
  /// @throws OUT_OF_RANGE with the position of the first id outside the table
  /// @throws SHAPE if ids have more than 7 dimensions
  /// @throws MEMORY if the result exceeds the memory limit
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {0, 1}, {1, 1}}}});
  /// std::cout << words.forward(xt::xtensor<std::int32_t, 1>{2, 0});  // {{ 1.,  1.}, { 1.,  0.}}
  /// @endcode
  template <class Ids>
    requires std::is_integral_v<typename Ids::value_type>
  auto forward(const Ids& ids, const EmbeddingForwardOptions& options = {}) const {
    const std::vector<std::int64_t> values(ids.begin(), ids.end());
    auto y = detail::empty<kRankOf<Ids> + 1>(check(values, to_shape(ids.shape())));
    run(values, y.data());
    keep(values, to_shape(y.shape()), options);
    return y;
  }

  /// Accumulates the gradient of the weight: each row gets the sum over the positions of its id, in order; padding_idx
  /// gets none.
  ///
  /// @param grad  gradient of the result of the last forward that saved its ids, (..,E)
  /// @throws UNSUPPORTED for an int8 table
  /// @throws ARGUMENT if there was no such forward since the last backward or since weights changed
  /// @throws SHAPE if grad does not have the shape of that result
  /// @throws MEMORY if the gradient exceeds the memory limit; nothing has changed after an error
  /// @see torch.autograd of torch.nn.functional.embedding
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 1});
  /// words.forward(xt::xtensor<std::int64_t, 1>{1, 1}, {.for_backward = true});
  /// words.backward(xt::xtensor<float, 2>{{3}, {4}});
  /// std::cout << words.gradients().at("weight");  // {{ 0.}, { 7.}}
  /// @endcode
  template <TensorLike G>
  void backward(const G& grad) {
    run_backward(detail::Input(grad, "Embedding", "grad"));
  }

  /// Returns the k rows most similar to row `target`, by descending cosine similarity, excluding that row itself. Zero
  /// rows have cosine 0; ties are ordered by ascending id; if the table has fewer rows, all are returned.
  ///
  /// @param target  id of a row
  /// @param k       number of results
  /// @return ids and similarities
  /// @throws OUT_OF_RANGE if the table has no row `target`
  /// @throws ARGUMENT if k is negative
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const attn::Embedding& words = model.word_embeddings();
  /// std::cout << *model.id_to_token(words.nearest(*model.token_to_id("good"), 1).at(0).id);  // enjoyed
  /// @endcode
  std::vector<Neighbor> nearest(std::int64_t target, std::int64_t k) const;
  /// Returns the k rows most similar to a vector.
  ///
  /// @param target  (E)
  /// @param k       number of results
  /// @throws SHAPE if the vector does not have E numbers
  /// @throws ARGUMENT if k is negative
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {0, 1}}}});
  /// const attn::Neighbor nearest = words.nearest(xt::xtensor<float, 1>{0, 5}, 1).at(0);
  /// std::cout << nearest.id << ' ' << nearest.similarity;  // 1 1
  /// @endcode
  template <TensorLike V>
  std::vector<Neighbor> nearest(const V& target, std::int64_t k) const {
    return nearest(detail::Input(target, "nearest", "target"), k);
  }
  std::vector<Neighbor> nearest(const TensorView& target, std::int64_t k) const;
  /// Returns the cosine similarity of two rows, a · b / (|a| |b|), 0 for a row of zeros.
  ///
  /// @param a,b  ids of the rows
  /// @throws OUT_OF_RANGE if an id is outside the table
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{3, 4}, {4, 3}}}});
  /// std::cout << words.similarity(0, 1);  // 0.96
  /// @endcode
  float similarity(std::int64_t a, std::int64_t b) const;
  /// Answers "a is to b as c is to …": returns the rows nearest to b - a + c, excluding these three (Mikolov et
  /// al. 2013).
  ///
  /// @param a,b,c  ids of rows
  /// @param k      number of results
  /// @return ids and similarities
  /// @throws OUT_OF_RANGE if an id is outside the table
  /// @throws ARGUMENT if k is negative
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 4, .embedding_dim = 2});  // man, woman, king, queen
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {1, 1}, {2, 0}, {2, 1}}}});
  /// std::cout << words.analogy(0, 1, 2, 1).at(0).id;  // 3
  /// @endcode
  std::vector<Neighbor> analogy(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t k) const;

  /// Returns the shape of the result of forward(), for callers that own the memory and pass it to run(); throws its errors.
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {0, 1}}}});
  /// const std::vector<std::int64_t> ids{1, 0, 1};
  /// const attn::Shape shape = words.check(ids, {3});
  /// std::vector<float> y(static_cast<std::size_t>(shape[0] * shape[1]));
  /// words.run(ids, y.data());
  /// std::cout << to_string(shape) << ' ' << y.at(1);  // (3,2) 1
  /// @endcode
  Shape check(const std::vector<std::int64_t>& ids, const Shape& shape) const;
  /// Writes the rows of ids that check() has accepted to y, row-major; check() has an example.
  void run(const std::vector<std::int64_t>& ids, float* y) const;
  /// Saves the ids after run(), if backward() may follow: in train mode or with for_backward.
  ///
  /// @param ids      those given to run()
  /// @param shape    shape of the result, from check()
  /// @param options  as in forward()
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 1});
  /// const std::vector<std::int64_t> ids{1, 1};
  /// const attn::Shape shape = words.check(ids, {2});
  /// std::vector<float> y(2);
  /// words.run(ids, y.data());
  /// words.keep(ids, shape, {.for_backward = true});
  /// const std::vector<float> grad{3, 4};
  /// words.run_backward(attn::TensorView(grad.data(), shape));
  /// std::cout << words.gradients().at("weight");  // {{ 0.}, { 7.}}
  /// @endcode
  void keep(const std::vector<std::int64_t>& ids, const Shape& shape, const EmbeddingForwardOptions& options) const;
  /// Accumulates the gradient of the weight from a view; otherwise as backward(). keep() has an example.
  void run_backward(const TensorView& grad);
  /// Returns a row (E) as float32, also if the table is int8.
  ///
  /// @throws OUT_OF_RANGE if the table has no row `id`
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 0}, {0, 1}}}});
  /// std::cout << words.row(1).at(1);  // 1
  /// @endcode
  std::vector<float> row(std::int64_t id) const;
  /// Returns the table, for other parts of the library.
  const detail::Table& table() const { return weight_; }
  bool is_quantized() const override { return weight_.is_quantized(); }

 private:
  friend class detail::ParameterVisitor;
  struct Kept;

  void visit_parameters(detail::ParameterVisitor& visitor) override;
  /// `name` is the argument with the id.
  std::vector<float> row_of(std::string_view op, std::string_view name, std::int64_t id) const;
  std::vector<Neighbor> ranked(std::string_view op, const float* target, std::int64_t k, const std::vector<std::int64_t>& excluded) const;

  EmbeddingOptions options_;
  detail::Table weight_;  // (N,E)
};

}  // namespace attn
