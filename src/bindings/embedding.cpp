#include "attn/layers/embedding_layer.hpp"

#include <cstring>
#include <utility>

#include "define.hpp"

namespace attn::bindings {
namespace {

EmbeddingOptions embedding_options(Arguments& arguments) {
  EmbeddingOptions options;
  arguments.require_group("options", [&] {
    arguments.require("numEmbeddings", options.num_embeddings);
    arguments.require("embeddingDim", options.embedding_dim);
    arguments.option("paddingIdx", options.padding_idx);
  });
  return options;
}

/// (k,2): id as int32, similarity.
void add_neighbors(const std::vector<Neighbor>& neighbors, Result& result) {
  float* words = result.add({static_cast<std::int64_t>(neighbors.size()), 2});
  for (const auto& [id, similarity] : neighbors) {
    const auto number = static_cast<std::int32_t>(id);
    std::memcpy(words, &number, sizeof(number));
    words[1] = similarity;
    words += 2;
  }
}

void embedding_forward(Arguments& arguments, Work<Embedding> work) {
  Arguments::Ids ids = arguments.ids("ids");
  EmbeddingForwardOptions options;
  arguments.group("options", [&] { arguments.option("forBackward", options.for_backward); });
  work([&](const Embedding& self, Result& result) {
    const Shape shape = self.check(ids.values, ids.shape);
    self.run(ids.values, result.add(shape));
    self.keep(ids.values, shape, options);
  });
}

void embedding_backward(Arguments& arguments, Work<Embedding> work) {
  const TensorView grad = arguments.tensor("grad");
  work([&](Embedding& self, Result&) { self.run_backward(grad); });
}

void nearest(Arguments& arguments, Work<Embedding> work) {
  const std::variant<std::int64_t, TensorView> target = arguments.vector_or_id("target");
  std::int64_t k = 0;
  arguments.require("k", k);
  work([&](const Embedding& self, Result& result) {
    // Not std::visit: if an indirect call throws, JavaScriptCore (WebKitGTK 2.50) runs the clean-up of later code.
    const auto* id = std::get_if<std::int64_t>(&target);
    add_neighbors(id != nullptr ? self.nearest(*id, k) : self.nearest(std::get<TensorView>(target), k), result);
  });
}

void similarity(Arguments& arguments, Work<Embedding> work) {
  std::int64_t a = 0, b = 0;
  arguments.require("a", a);
  arguments.require("b", b);
  work([&](const Embedding& self, Result& result) { result.set_number(static_cast<double>(self.similarity(a, b))); });
}

void analogy(Arguments& arguments, Work<Embedding> work) {
  std::int64_t a = 0, b = 0, c = 0, k = 0;
  arguments.require("a", a);
  arguments.require("b", b);
  arguments.require("c", c);
  arguments.require("k", k);
  work([&](const Embedding& self, Result& result) { add_neighbors(self.analogy(a, b, c, k), result); });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_embedding) {
  using namespace attn::bindings;
  define_layer<attn::Embedding, embedding_options>("Embedding")
      .method<embedding_forward>("forward", "tensor")
      .method<embedding_backward>("backward", "none")
      .method<nearest>("nearest", "neighbours")
      .method<similarity>("similarity", "number")
      .method<analogy>("analogy", "neighbours");
}
