#include "attn/layers/multi_head_attention.hpp"

#include <emscripten/bind.h>

#include <memory>

#include "attention_options.hpp"
#include "errors.hpp"

namespace attn::bindings {
namespace {

/// api.d.ts's MultiHeadAttentionOptions with every default filled in, as JavaScript writes them into the heap.
struct MultiHeadAttentionOptions {
  std::int32_t embed_dim, num_heads, kdim, vdim, bias, has_scale;
  float scale;
  std::int32_t out_proj;
};
constexpr const char* kFields = "embedDim,numHeads,kdim,vdim,bias,hasScale,scale,outProj";

std::unique_ptr<MultiHeadAttention> create(Address address) {
  return guard([&] {
    const auto& options = *reinterpret_cast<const MultiHeadAttentionOptions*>(address);
    return std::make_unique<MultiHeadAttention>(
        attn::MultiHeadAttentionOptions{.embed_dim = options.embed_dim,
                                        .num_heads = options.num_heads,
                                        .kdim = options.kdim,
                                        .vdim = options.vdim,
                                        .bias = options.bias != 0,
                                        .scale = options.has_scale != 0 ? std::optional(options.scale) : std::nullopt,
                                        .out_proj = options.out_proj != 0});
  });
}

Address forward(const MultiHeadAttention& self, Address query, Address key, Address value, Address given) {
  return guard([&] {
    const attn::AttentionOptions options = read_attention_options(given);
    const TensorView q = view_at(query), k = key != 0 ? view_at(key) : q, v = value != 0 ? view_at(value) : q;
    const detail::AttentionPlan plan = self.plan(q, k, v, options);
    auto result = std::make_unique<Result>();
    self.run(plan, q, k, v, options, allocate_results(plan, *result));
    return result.release()->address();
  });
}

void initialize(MultiHeadAttention& self, std::int32_t scheme, double seed, double std) {
  guard([&] { self.initialize({.scheme = static_cast<InitScheme>(scheme), .seed = static_cast<std::uint64_t>(seed), .std = std}); });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_multi_head_attention) {
  using namespace attn::bindings;
  using attn::MultiHeadAttention;
  emscripten::function("multiHeadAttentionOptionFields", +[] { return std::string(kFields); });
  emscripten::function("initSchemes", +[] { return join(attn::kInitSchemeNames); });
  emscripten::class_<MultiHeadAttention>("MultiHeadAttention")
      .constructor(&create)
      .function("forward", &forward)
      .function(
          "loadStateDict",
          +[](MultiHeadAttention& self, const NamedTensors& state, bool strict) { guard([&] { self.load_state_dict(state.state(), strict); }); })
      .function(
          "stateDict", +[](const MultiHeadAttention& self) { return guard([&] { return std::make_unique<NamedTensors>(self.state_dict()); }); })
      .function("initialize", &initialize)
      .function(
          "parameterCount", +[](const MultiHeadAttention& self) { return static_cast<double>(self.parameter_count()); })
      .function(
          "parameterShapes",
          +[](const MultiHeadAttention& self) { return guard([&] { return std::make_unique<NamedTensors>(self.parameter_shapes()); }); });
}
