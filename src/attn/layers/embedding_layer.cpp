#include "attn/layers/embedding_layer.hpp"

#include <algorithm>
#include <cmath>

#include "attn/ops/cosine.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

constexpr std::string_view kEmbeddingOp = "Embedding";

}  // namespace

Embedding::Embedding(detail::Uninitialized, const EmbeddingOptions& options, bool is_shared) : options_(options) {
  const std::int64_t N = detail::check_positive(kEmbeddingOp, "num_embeddings", options.num_embeddings);
  const std::int64_t E = detail::check_positive(kEmbeddingOp, "embedding_dim", options.embedding_dim);
  weight_ = {static_cast<std::size_t>(N), static_cast<std::size_t>(E), is_shared};
  if (options.padding_idx && (*options.padding_idx < 0 || *options.padding_idx >= options.num_embeddings))
    detail::fail(ErrorCode::config, kEmbeddingOp, "padding_idx", {"a row from 0 to ", options.num_embeddings - 1}, {*options.padding_idx});
}

Embedding::Embedding(const EmbeddingOptions& options) : Embedding(detail::Uninitialized{}, options) { create(kEmbeddingOp); }

void Embedding::visit_parameters(detail::ParameterVisitor& visitor) {
  visitor.add("weight", {.shape = {options_.num_embeddings, options_.embedding_dim},
                         .kind = detail::ParameterKind::embedding,
                         .table = &weight_,
                         .zero_row = options_.padding_idx.value_or(-1)});
  ++visitor.stream;
}

Shape Embedding::check(const std::vector<std::int64_t>& ids, const Shape& shape) const {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= options_.num_embeddings)
      detail::fail(ErrorCode::out_of_range, kEmbeddingOp, detail::text({"ids[", i, "]"}), {"an id from 0 to ", options_.num_embeddings - 1}, {ids[i]},
                   {{"index", static_cast<double>(i)}});
  if (shape.rank() == Shape::kMaxRank) detail::fail(ErrorCode::shape, kEmbeddingOp, "ids", {"a rank of at most 7"}, {shape});
  Shape rows = shape;
  rows.push_back(options_.embedding_dim);
  detail::check_memory(kEmbeddingOp, [&] { detail::counted(rows, "the result"); });
  return rows;
}

void Embedding::run(const std::vector<std::int64_t>& ids, float* y) const {
  for (const std::int64_t id : ids) {
    weight_.get_row(static_cast<std::size_t>(id), y);
    y += options_.embedding_dim;
  }
}

std::vector<float> Embedding::row(std::int64_t id) const { return row_of(kEmbeddingOp, "id", id); }

std::vector<float> Embedding::row_of(std::string_view op, std::string_view name, std::int64_t id) const {
  if (id < 0 || id >= options_.num_embeddings)
    detail::fail(ErrorCode::out_of_range, op, name, {"an id from 0 to ", options_.num_embeddings - 1}, {id});
  std::vector<float> values(static_cast<std::size_t>(options_.embedding_dim));
  weight_.get_row(static_cast<std::size_t>(id), values.data());
  return values;
}

std::vector<Neighbor> Embedding::ranked(std::string_view op, const float* target, std::int64_t k, const std::vector<std::int64_t>& excluded) const {
  if (k < 0) detail::fail(ErrorCode::argument, op, "k", {"a whole number of at least 0"}, {k});
  detail::check_memory(op, [&] {
    detail::counted({std::min(k, options_.num_embeddings), sizeof(Neighbor) / sizeof(float)}, "neighbors");
    ranked(op, target, k, excluded);
  });
  const auto rows = static_cast<std::size_t>(options_.num_embeddings);
  detail::Scratch scratch;
  float* const similarities = scratch.take(rows);
  detail::cosines(weight_, options_.num_embeddings, target, options_.embedding_dim, similarities, scratch);
  auto* const all = scratch.take_as<Neighbor>(rows);
  if (detail::counts()) return {};
  std::size_t found = 0;
  for (std::size_t row = 0; row < rows; ++row)
    if (const auto id = static_cast<std::int64_t>(row); std::find(excluded.begin(), excluded.end(), id) == excluded.end())
      all[found++] = {id, similarities[row]};
  // NaN is sorted last.
  const auto key = [](const Neighbor& n) { return std::isnan(n.similarity) ? -2.0F : n.similarity; };
  const auto count = std::min(found, static_cast<std::size_t>(k));
  std::partial_sort(all, all + count, all + found,
                    [&](const Neighbor& a, const Neighbor& b) { return key(a) != key(b) ? key(a) > key(b) : a.id < b.id; });
  return {all, all + count};
}

std::vector<Neighbor> Embedding::nearest(std::int64_t target, std::int64_t k) const {
  return ranked("nearest", row_of("nearest", "target", target).data(), k, {target});
}

std::vector<Neighbor> Embedding::nearest(const TensorView& target, std::int64_t k) const {
  if (target.shape != Shape{options_.embedding_dim})
    detail::fail(ErrorCode::shape, "nearest", "target", {Shape{options_.embedding_dim}}, {target.shape});
  return ranked("nearest", target.data, k, {});
}

float Embedding::similarity(std::int64_t a, std::int64_t b) const {
  const std::vector<float> of_a = row_of("similarity", "a", a), of_b = row_of("similarity", "b", b);
  return detail::cosine(of_a.data(), of_b.data(), options_.embedding_dim, weight_.is_quantized());
}

std::vector<Neighbor> Embedding::analogy(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t k) const {
  const detail::FloatEnvironment environment;
  const std::vector<float> of_a = row_of("analogy", "a", a), of_b = row_of("analogy", "b", b), of_c = row_of("analogy", "c", c);
  std::vector<float> target(of_a.size());
  for (std::size_t e = 0; e < target.size(); ++e) target[e] = of_b[e] - of_a[e] + of_c[e];
  return ranked("analogy", target.data(), k, {a, b, c});
}

}  // namespace attn
