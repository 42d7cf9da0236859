#include "attn/layers/multi_head_attention.hpp"

#include <emscripten/bind.h>

#include <algorithm>
#include <memory>

#include "attention_options.hpp"
#include "errors.hpp"

namespace attn::bindings {
namespace {

/// api.d.ts's MultiHeadAttentionOptions with every default filled in.
struct MultiHeadAttentionOptions {
  std::int32_t embedDim = 0, numHeads = 0, kdim = 0, vdim = 0;
  bool bias = true, hasScale = false;
  float scale = 0;
  bool outProj = true;
};

std::unique_ptr<MultiHeadAttention> create(const MultiHeadAttentionOptions& options) {
  return guard([&] {
    return std::make_unique<MultiHeadAttention>(attn::MultiHeadAttentionOptions{.embed_dim = options.embedDim,
                                                                                .num_heads = options.numHeads,
                                                                                .kdim = options.kdim,
                                                                                .vdim = options.vdim,
                                                                                .bias = options.bias,
                                                                                .scale = options.hasScale ? std::optional(options.scale) : std::nullopt,
                                                                                .out_proj = options.outProj});
  });
}

Address forward(const MultiHeadAttention& self, Address query, Address key, Address value, const AttentionOptions& given) {
  return guard([&] {
    const attn::AttentionOptions options = convert(given);
    const TensorView q = view_at(query), k = key != 0 ? view_at(key) : q, v = value != 0 ? view_at(value) : q;
    const detail::AttentionPlan plan = self.plan(q, k, v, options);
    auto result = std::make_unique<Result>();
    self.run(plan, q, k, v, options, allocate_results(plan, *result));
    return result.release()->address();
  });
}

void initialize(MultiHeadAttention& self, const std::string& scheme, double seed, double std) {
  guard([&] {
    const auto found = std::find(kInitSchemeNames.begin(), kInitSchemeNames.end(), scheme);
    if (found == kInitSchemeNames.end()) fail(ErrorCode::config, "initialize", "scheme", {"one of the known schemes"}, {scheme});
    self.initialize({.scheme = static_cast<InitScheme>(found - kInitSchemeNames.begin()), .seed = static_cast<std::uint64_t>(seed), .std = std});
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_multi_head_attention) {
  using namespace attn::bindings;
  using attn::MultiHeadAttention;
  using Options = MultiHeadAttentionOptions;
  emscripten::value_object<Options>("NativeMultiHeadAttentionOptions")
      .field("embedDim", &Options::embedDim)
      .field("numHeads", &Options::numHeads)
      .field("kdim", &Options::kdim)
      .field("vdim", &Options::vdim)
      .field("bias", &Options::bias)
      .field("hasScale", &Options::hasScale)
      .field("scale", &Options::scale)
      .field("outProj", &Options::outProj);
  emscripten::class_<MultiHeadAttention>("MultiHeadAttention")
      .constructor(&create)
      .function("forward", &forward)
      .function("loadStateDict", +[](MultiHeadAttention& self, const NamedTensors& state, bool strict) { guard([&] { self.load_state_dict(state.state(), strict); }); })
      .function("stateDict", +[](const MultiHeadAttention& self) { return guard([&] { return std::make_unique<NamedTensors>(self.state_dict()); }); })
      .function("initialize", &initialize)
      .function("parameterCount", +[](const MultiHeadAttention& self) { return static_cast<double>(self.parameter_count()); })
      .function("parameterShapes", +[](const MultiHeadAttention& self) { return guard([&] { return std::make_unique<NamedTensors>(self.parameter_shapes()); }); });
}
