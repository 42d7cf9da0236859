#include "attn/layers/embedding_layer.hpp"
#include "attn/ops/embedding_backward.hpp"

namespace attn {
namespace {

constexpr std::string_view kEmbeddingBackwardOp = "Embedding";

}  // namespace

struct Embedding::Kept {
  std::vector<std::int64_t> ids;
  Shape shape;
};

void Embedding::keep(const std::vector<std::int64_t>& ids, const Shape& shape, const EmbeddingForwardOptions& options) const {
  if (!keeps(options.for_backward)) return;
  share_gradients()->kept = std::make_shared<Kept>(Kept{ids, shape});
}

void Embedding::run_backward(const TensorView& grad) {
  const Kept& kept = this->kept<Kept>(kEmbeddingBackwardOp);
  if (grad.shape != kept.shape) detail::fail(ErrorCode::shape, kEmbeddingBackwardOp, "grad", {kept.shape}, {grad.shape});
  const auto& shared = share_gradients();
  shared->gradients.reserve(parameter_shapes());
  detail::add_embedding_gradients(detail::Rows(grad), kept.ids, options_.padding_idx.value_or(-1), shared->gradients.at("weight"));
  shared->kept.reset();
}

}  // namespace attn
