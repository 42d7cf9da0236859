#include "attn/layers/multi_head_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attn/layers/state_dict.hpp"
#include "attn/ops/attention_core.hpp"

namespace attn {
namespace {

constexpr std::string_view kOp = "MultiHeadAttention";

/// A weight in parts that the caller may have, and where they come from in the end.
struct Source {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

std::int64_t positive(std::string_view name, std::int64_t value) {
  // 2³¹ - 1 keeps every product of two of them within 64 bits.
  if (value <= 0 || value > 0x7fffffff) fail(ErrorCode::config, kOp, name, {"a whole number from 1 to 2147483647"}, {value});
  return value;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options)
    : embed_dim_(positive("embed_dim", options.embed_dim)),
      num_heads_(positive("num_heads", options.num_heads)),
      bias_(options.bias),
      has_out_proj_(options.out_proj),
      scale_(options.scale) {
  if (embed_dim_ % num_heads_ != 0) fail(ErrorCode::config, kOp, "embed_dim", {"a multiple of num_heads ", num_heads_}, {embed_dim_});
  if (scale_) detail::attention_scale(kOp, scale_, 1);
  query_ = {{}, embed_dim_, embed_dim_};
  key_ = {{}, embed_dim_, positive("kdim", options.kdim.value_or(embed_dim_))};
  value_ = {{}, embed_dim_, positive("vdim", options.vdim.value_or(embed_dim_))};
  out_ = {{}, has_out_proj_ ? embed_dim_ : 0, has_out_proj_ ? embed_dim_ : 0};

  MemoryEstimate memory(kOp);
  // Packed, and row-major beside it while they are drawn.
  for (const Projection* projection : {&query_, &key_, &value_, &out_}) {
    memory.add("weights", {projection->out + 64, projection->in + 1});
    memory.add("weights", {projection->out, projection->in + 1});
  }
  memory.check();
  initialize();
}

void MultiHeadAttention::initialize(const InitOptions& options) {
  check_init_options("initialize", options);
  const auto size = [](const Projection& p) { return static_cast<std::size_t>(p.out * p.in); };
  std::vector<float> in_proj(size(query_) + size(key_) + size(value_));
  float* const query = in_proj.data();
  float* const key = query + size(query_);
  float* const value = key + size(key_);
  std::vector<float> out(size(out_));
  const std::vector<float> zeros(static_cast<std::size_t>(embed_dim_), 0.0F);

  // Each parameter has random numbers of its own, numbered in torch's order.
  if (options.scheme == InitScheme::torch && packed_form()) {
    // torch sees one parameter (3E,E), so its fan_out is 3E.
    Random(options.seed, 0).weight(query, 3 * embed_dim_, embed_dim_, {.scheme = InitScheme::xavier_uniform});
  } else {
    InitOptions each = options;
    if (options.scheme == InitScheme::torch) each.scheme = InitScheme::xavier_uniform;
    Random(options.seed, 0).weight(query, query_.out, query_.in, each);
    Random(options.seed, 1).weight(key, key_.out, key_.in, each);
    Random(options.seed, 2).weight(value, value_.out, value_.in, each);
  }
  if (has_out_proj_) Random(options.seed, 3).weight(out.data(), out_.out, out_.in, options);

  const float* bias = bias_ ? zeros.data() : nullptr;
  PackedLinear packed_query(query, bias, query_.out, query_.in), packed_key(key, bias, key_.out, key_.in),
      packed_value(value, bias, value_.out, value_.in), packed_out(out.data(), bias, out_.out, out_.in);
  query_.linear = std::move(packed_query);
  key_.linear = std::move(packed_key);
  value_.linear = std::move(packed_value);
  out_.linear = std::move(packed_out);
}

std::map<std::string, Shape> MultiHeadAttention::parameter_shapes() const {
  const std::int64_t E = embed_dim_;
  std::map<std::string, Shape> shapes;
  if (packed_form()) {
    shapes.emplace("in_proj_weight", Shape{3 * E, E});
  } else {
    shapes.emplace("q_proj_weight", Shape{E, E});
    shapes.emplace("k_proj_weight", Shape{E, key_.in});
    shapes.emplace("v_proj_weight", Shape{E, value_.in});
  }
  if (bias_) shapes.emplace("in_proj_bias", Shape{3 * E});
  if (has_out_proj_) {
    shapes.emplace("out_proj.weight", Shape{E, E});
    if (bias_) shapes.emplace("out_proj.bias", Shape{E});
  }
  return shapes;
}

std::int64_t MultiHeadAttention::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, shape] : parameter_shapes()) count += checked_size(shape, kOp, name);
  return count;
}

StateDict MultiHeadAttention::state_dict() const {
  StateDict state;
  for (const auto& [name, shape] : parameter_shapes()) state.emplace(name, empty_any(shape));
  const auto E = static_cast<std::size_t>(embed_dim_);
  const auto data = [&](const char* name) { return state.at(name).data(); };
  float* const biases = bias_ ? data("in_proj_bias") : nullptr;
  float* const weights[] = {packed_form() ? data("in_proj_weight") : data("q_proj_weight"),
                            packed_form() ? data("in_proj_weight") + E * E : data("k_proj_weight"),
                            packed_form() ? data("in_proj_weight") + 2 * E * E : data("v_proj_weight")};
  const Projection* const projections[] = {&query_, &key_, &value_};
  for (std::size_t i = 0; i < 3; ++i) projections[i]->linear.unpack(weights[i], biases != nullptr ? biases + i * E : nullptr);
  if (has_out_proj_) out_.linear.unpack(data("out_proj.weight"), bias_ ? data("out_proj.bias") : nullptr);
  return state;
}

void MultiHeadAttention::load_state_dict(const StateDict& state, bool strict) {
  Projection* const projections[] = {&query_, &key_, &value_};
  constexpr const char* kSeparate[] = {"q_proj", "k_proj", "v_proj"};
  const bool separate = std::any_of(std::begin(kSeparate), std::end(kSeparate),
                                    [&](const std::string& name) { return state.contains(name + ".weight") || state.contains(name + ".bias"); });

  std::map<std::string, Shape> expected = parameter_shapes();
  if (separate) {
    for (const char* name : {"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"}) expected.erase(name);
    for (std::size_t i = 0; i < 3; ++i) {
      expected.emplace(std::string(kSeparate[i]) + ".weight", Shape{projections[i]->out, projections[i]->in});
      if (bias_) expected.emplace(std::string(kSeparate[i]) + ".bias", Shape{embed_dim_});
    }
  }
  detail::check_state_dict("loadStateDict", expected, state, strict);

  const auto E = static_cast<std::size_t>(embed_dim_);
  Source sources[4];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = kSeparate[i];
    if (separate) {
      sources[i] = {detail::find_data(state, name + ".weight"), detail::find_data(state, name + ".bias")};
      continue;
    }
    const float* all = packed_form() ? detail::find_data(state, "in_proj_weight") : nullptr;
    const float* biases = detail::find_data(state, "in_proj_bias");
    sources[i].weight = packed_form() ? (all != nullptr ? all + i * E * E : nullptr) : detail::find_data(state, name + "_weight");
    sources[i].bias = biases != nullptr ? biases + i * E : nullptr;
  }
  sources[3] = {detail::find_data(state, "out_proj.weight"), detail::find_data(state, "out_proj.bias")};

  // All new weights first, so that running out of memory leaves the old ones as they were.
  PackedLinear packed[4];
  Projection* const all[] = {&query_, &key_, &value_, &out_};
  for (std::size_t i = 0; i < 4; ++i) {
    const Projection& old = *all[i];
    std::vector<float> weight, bias;  // the numbers so far, where the state has no new ones
    if (sources[i].weight == nullptr || (bias_ && sources[i].bias == nullptr)) {
      weight.resize(static_cast<std::size_t>(old.out * old.in));
      bias.resize(static_cast<std::size_t>(old.out));
      old.linear.unpack(weight.data(), bias.data());
    }
    const float* from = sources[i].weight != nullptr ? sources[i].weight : weight.data();
    const float* bias_from = !bias_ ? nullptr : sources[i].bias != nullptr ? sources[i].bias : bias.data();
    packed[i] = PackedLinear(from, bias_from, old.out, old.in);
  }
  for (std::size_t i = 0; i < 4; ++i) all[i]->linear = std::move(packed[i]);
}

detail::AttentionPlan MultiHeadAttention::plan(const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options) const {
  const std::size_t rank = query.shape.rank();
  const auto check = [&](std::string_view name, const TensorView& x, std::int64_t width, const char* length) {
    if (x.shape.rank() == rank && (rank == 2 || rank == 3) && x.shape.back(0) == width) return;
    const bool both = &x == &query;  // its rank decides about the others'
    fail(ErrorCode::shape, kOp, name,
         {both || rank == 3 ? "(B," : "(", length, ",", width, ")", both ? " or (L," : "", both ? text({width, ")"}) : "",
          x.shape.rank() == 4 ? "; heads are split inside: reshape (B,H,L,D) to (B,L,H*D)" : ""},
         {x.shape});
  };
  check("query", query, embed_dim_, "L");
  check("key", key, key_.in, "S");
  check("value", value, value_.in, "S");
  const std::int64_t B = rank == 3 ? query.shape[0] : 1, S = key.shape.back(1);
  if (rank == 3)
    for (const auto& [name, x] : {std::pair{"key", &key}, std::pair{"value", &value}})
      if (x->shape[0] != B) fail(ErrorCode::shape, kOp, name, {"a batch of ", B, " as query ", query.shape}, {x->shape});
  if (value.shape.back(1) != S) fail(ErrorCode::shape, kOp, "value", {S, " rows, one for each key ", key.shape}, {value.shape});

  const std::int64_t D = embed_dim_ / num_heads_;
  detail::AttentionPlan plan{.B = B, .H = num_heads_, .Hkv = num_heads_, .L = query.shape.back(1), .S = S, .D = D, .Dv = D};
  plan.scale = detail::attention_scale(kOp, options.scale ? options.scale : scale_, D);
  plan.output = query.shape;
  plan.has_weights = options.need_weights;
  plan.average_weights = options.average_weights;
  plan.trace = options.trace;
  detail::check_masks(kOp, plan, options, rank == 2);

  MemoryEstimate memory(kOp);
  memory.add("projected queries", {B, plan.L, embed_dim_});
  memory.add("projected keys", {B, S, embed_dim_});
  memory.add("projected values", {B, S, embed_dim_});
  memory.add("merged heads", {B, plan.L, embed_dim_});
  detail::plan_results(plan, rank == 3, true, memory);
  return plan;
}

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, const detail::AttentionBuffers& buffers) const {
  const std::int64_t B = plan.B, H = plan.H, L = plan.L, S = plan.S, D = plan.D, Dv = plan.Dv;
  const auto size = [](std::int64_t rows, std::int64_t width) { return static_cast<std::size_t>(rows * width); };
  AlignedFloats q_proj(size(B * L, H * D)), k_proj(size(B * S, H * D)), v_proj(size(B * S, H * Dv));
  query_.linear.forward(query.data, B * L, q_proj.data());
  key_.linear.forward(key.data, B * S, k_proj.data());
  value_.linear.forward(value.data, B * S, v_proj.data());

  // Heads are slices of the columns: (B,L,H·D) read as (B,H,L,D).
  const auto heads = []<class T>(T* data, std::int64_t rows, std::int64_t heads_count, std::int64_t width) {
    const auto row = static_cast<std::ptrdiff_t>(heads_count * width);
    return detail::Heads<T>{data, static_cast<std::ptrdiff_t>(rows) * row, static_cast<std::ptrdiff_t>(width), row};
  };
  AlignedFloats merged_scratch(has_out_proj_ ? size(B * L, H * Dv) : 0);
  float* const merged = has_out_proj_ ? merged_scratch.data() : buffers.output;
  const detail::AttentionInputs inputs{.query = heads(static_cast<const float*>(q_proj.data()), L, H, D),
                                       .key = heads(static_cast<const float*>(k_proj.data()), S, H, D),
                                       .value = heads(static_cast<const float*>(v_proj.data()), S, H, Dv),
                                       .context = heads(merged, L, H, Dv)};
  detail::attention_core(plan, options, inputs, buffers);
  if (has_out_proj_) out_.linear.forward(merged, B * L, buffers.output);

  const auto target = [&](TraceName name) { return buffers.trace[static_cast<std::size_t>(name)]; };
  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    if (float* to = target(name)) std::copy_n(from, count, to);
  };
  copy(TraceName::q_proj, q_proj.data(), q_proj.size());
  copy(TraceName::k_proj, k_proj.data(), k_proj.size());
  copy(TraceName::v_proj, v_proj.data(), v_proj.size());
  copy(TraceName::merged, merged, size(B * L, H * Dv));
  copy(TraceName::output, buffers.output, size(B * L, embed_dim_));
  if (float* to = target(TraceName::q)) detail::copy_heads(inputs.query, B, H, L, D, to);
  if (float* to = target(TraceName::k)) detail::copy_heads(inputs.key, B, H, S, D, to);
  if (float* to = target(TraceName::v)) detail::copy_heads(inputs.value, B, H, S, Dv, to);
  if (float* to = target(TraceName::context)) detail::copy_heads(heads(static_cast<const float*>(merged), L, H, Dv), B, H, L, Dv, to);
}

}  // namespace attn
