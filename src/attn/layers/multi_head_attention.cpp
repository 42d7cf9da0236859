#include "attn/layers/multi_head_attention.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/tensor/host.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace {

constexpr std::string_view kMultiHeadAttentionOp = "MultiHeadAttention";
constexpr std::array<const char*, 3> kLetters{"q_proj", "k_proj", "v_proj"};

using detail::size_of;

std::int64_t quotient(std::string_view name, std::int64_t value, std::string_view divisor_name, std::int64_t divisor) {
  if (value % divisor != 0) detail::fail(ErrorCode::config, kMultiHeadAttentionOp, name, {"a multiple of ", divisor_name, " ", divisor}, {value});
  return value / divisor;
}

/// (B,S,width) -> (B,S+extra,width) with the learned and the zero row.
void append_rows(const float* from, std::int64_t B, std::int64_t S, std::int64_t width, const std::vector<float>& learned, bool zero, float* to) {
  for (std::int64_t b = 0; b < B && !detail::counts(); ++b) {
    to = std::copy_n(from + b * S * width, S * width, to);
    to = std::copy(learned.begin(), learned.end(), to);
    if (zero) to = std::fill_n(to, width, 0.0F);
  }
}

/// past (B,H,past,width), which may be null, and x (B,H,rows,width) become (B,H,past + rows,width).
void join_heads(const TensorView& past, const detail::Heads<const float>& x, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width,
                float* to) {
  const detail::Rows past_rows(past);
  const std::int64_t before = past.data != nullptr ? past.shape.back(1) : 0;
  for (std::int64_t b = 0; b < B && !detail::counts(); ++b)
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t i = 0; i < before; ++i) to = std::copy_n(past_rows[static_cast<std::size_t>((b * H + h) * before + i)], width, to);
      for (std::int64_t i = 0; i < rows; ++i) to = std::copy_n(x.at(b, h, i), width, to);
    }
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(detail::Uninitialized, const MultiHeadAttentionOptions& options, detail::AttentionDefaults defaults)
    : options_(options), defaults_(std::move(defaults)) {
  const std::int64_t E = detail::check_positive(kMultiHeadAttentionOp, "embed_dim", options.embed_dim);
  H_ = detail::check_positive(kMultiHeadAttentionOp, "num_heads", options.num_heads);
  Hkv_ = detail::check_positive(kMultiHeadAttentionOp, "num_key_value_heads", options.num_key_value_heads.value_or(H_));
  quotient("num_heads", H_, "num_key_value_heads", Hkv_);
  const std::int64_t kdim = detail::check_positive(kMultiHeadAttentionOp, "kdim", options.kdim.value_or(E));
  const std::int64_t vdim = detail::check_positive(kMultiHeadAttentionOp, "vdim", options.vdim.value_or(E));
  D_ = options.head_dim ? detail::check_positive(kMultiHeadAttentionOp, "head_dim", *options.head_dim) : quotient("embed_dim", E, "num_heads", H_);
  Dv_ = detail::check_positive(kMultiHeadAttentionOp, "value_head_dim", options.value_head_dim.value_or(D_));
  detail::check_positive(kMultiHeadAttentionOp, "num_heads times head_dim", H_ * D_);
  detail::check_positive(kMultiHeadAttentionOp, "num_heads times value_head_dim", H_ * Dv_);
  detail::check_dropout(kMultiHeadAttentionOp, options.dropout);
  if (options.scale) detail::attention_scale(kMultiHeadAttentionOp, options.scale, 1);
  if (options.rotary) defaults_.rotary = detail::Rotary(kMultiHeadAttentionOp, *options.rotary, D_);

  query_ = {E, H_ * D_, options.bias};
  key_ = {kdim, Hkv_ * D_, options.bias};
  value_ = {vdim, Hkv_ * Dv_, options.bias};
  if (options.out_proj) out_ = {H_ * Dv_, E, options.bias};
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options) : MultiHeadAttention(detail::Uninitialized{}, options) {
  create(kMultiHeadAttentionOp);
}

MultiHeadAttention::Form MultiHeadAttention::form() const {
  const std::int64_t E = options_.embed_dim;
  if (query_.out_features() != E || key_.out_features() != E || value_.out_features() != E) return Form::separate;
  return key_.in_features() == E && value_.in_features() == E ? Form::packed : Form::split;
}

void MultiHeadAttention::visit_parameters(detail::ParameterVisitor& visitor) {
  using Kind = detail::ParameterKind;
  detail::Linear* const projections[] = {&query_, &key_, &value_};
  const auto is_separate = [&](const std::string& name) { return visitor.is_in_state(name + ".weight") || visitor.is_in_state(name + ".bias"); };
  const Form form = std::any_of(kLetters.begin(), kLetters.end(), is_separate) ? Form::separate : this->form();
  const auto E = static_cast<std::size_t>(options_.embed_dim);
  const std::uint32_t first = visitor.stream;  // every possible parameter has a stream
  for (std::uint32_t i = 0; i < 3; ++i) {
    visitor.stream = first + i;
    const std::string name = kLetters[i], weight = name + ".weight", bias = name + ".bias";
    const std::string weight_in_state = form == Form::packed ? "in_proj_weight" : form == Form::split ? name + "_weight" : weight;
    const std::string bias_in_state = form == Form::separate ? bias : "in_proj_bias";
    visitor.add(weight, projections[i]->weight_ref(Kind::projection), weight_in_state, form == Form::packed ? i * E * E : 0);
    if (options_.bias) visitor.add(bias, projections[i]->bias_ref(Kind::zeros), bias_in_state, form == Form::separate ? 0 : i * E);
  }
  visitor.stream = first + 3;
  if (options_.out_proj) visitor.part("out_proj.", out_, Kind::zeros);
  if (position_key_.out_features() > 0) visitor.part("position_key.", position_key_);
  if (position_query_.out_features() > 0) visitor.part("position_query.", position_query_);
  visitor.part("q_norm.", query_norm_);
  visitor.part("k_norm.", key_norm_);
  visitor.stream = first + 4;
  if (options_.add_bias_kv) visitor.add("bias_k", {.shape = {1, 1, Hkv_ * D_}, .kind = Kind::row, .vector = &bias_k_});
  visitor.stream = first + 5;
  if (options_.add_bias_kv) visitor.add("bias_v", {.shape = {1, 1, Hkv_ * Dv_}, .kind = Kind::row, .vector = &bias_v_});
  visitor.stream = first + 6;
}

detail::AttentionPlan MultiHeadAttention::plan(const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options) const {
  detail::AttentionPlan plan = this->plan(kMultiHeadAttentionOp, query, key, value, options, {});
  if (options.dropout) detail::check_dropout(kMultiHeadAttentionOp, *options.dropout);
  if (options.for_backward) detail::check_float32(kMultiHeadAttentionOp, "for_backward", is_quantized());
  if (options.for_backward && options.past)
    detail::fail(ErrorCode::unsupported, kMultiHeadAttentionOp, "for_backward", {"a forward of all tokens at once, without a past"},
                 {"given with a past"});
  detail::check_memory(kMultiHeadAttentionOp, [&] { run(plan, query, key, value, options, detail::counted_buffers(plan)); });
  return plan;
}

detail::AttentionPlan MultiHeadAttention::plan(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options, std::span<const detail::SequenceGroup> runs,
                                               std::int64_t cached) const {
  const std::size_t rank = query.shape.rank();
  const auto check = [&](std::string_view name, const TensorView& x, std::int64_t width, const char* length) {
    if (x.shape.rank() == rank && (rank == 2 || rank == 3) && x.shape.back(0) == width) return;
    const bool both = &x == &query;
    detail::fail(ErrorCode::shape, op, name,
                 {both || rank == 3 ? "(B," : "(", length, ",", width, ")", both ? " or (L," : "", both ? detail::text({width, ")"}) : ""}, {x.shape},
                 x.shape.rank() == 4 ? "Reshape (B,H,L,D) to (B,L,H*D): heads are split inside" : "");
  };
  check("query", query, options_.embed_dim, "L");
  check("key", key, key_.in_features(), "S");
  check("value", value, value_.in_features(), "S");
  const std::int64_t B = rank == 3 ? query.shape[0] : 1, S = key.shape.back(1);
  if (rank == 3)
    for (const auto& [name, x] : {std::pair{"key", &key}, std::pair{"value", &value}})
      if (x->shape[0] != B) detail::fail(ErrorCode::shape, op, name, {"a batch of ", B, " as query ", query.shape}, {x->shape});
  if (value.shape.back(1) != S) detail::fail(ErrorCode::shape, op, "value", {S, " rows, one for each key ", key.shape}, {value.shape});

  const std::int64_t extra = (options_.add_bias_kv ? 1 : 0) + (options_.add_zero_attn ? 1 : 0);
  const detail::Disentangled& parts = defaults_.disentangled;
  detail::AttentionSpec spec = detail::spec_of(op, options, Trace::of_attention(), "those of attention, q_proj to output");
  spec.num_heads = H_;
  spec.num_key_value_heads = Hkv_;
  spec.head_dim = D_;
  spec.value_head_dim = Dv_;
  spec.scale = detail::attention_scale(op, options.scale ? options.scale : options_.scale, D_ * parts.scale_factor);
  spec.relative_positions = parts.any();
  spec.queries_are_padded = defaults_.queries_are_padded;
  spec.extra_keys = extra;
  spec.runs = runs;
  const std::int64_t past = options.past ? check_past(op, *options.past, rank, B) : cached;
  if (spec.output_present && extra > 0)
    detail::fail(ErrorCode::unsupported, op, options.past ? "past" : "output_present", {"a layer without add_bias_kv and add_zero_attn"}, {"given"});
  if (!options.query_offset) spec.query_offset = past;
  const detail::AttentionSizes sizes{
      .B = B, .L = query.shape.back(1), .S = past + S + extra, .past = past, .query_width = D_, .key_width = D_, .has_batch = rank == 3};
  Shape output = query.shape;
  output[rank - 1] = options_.out_proj ? options_.embed_dim : H_ * Dv_;

  return {op, spec, sizes, output};
}

std::int64_t MultiHeadAttention::check_past(std::string_view op, const KeyValueView& past, std::size_t rank, std::int64_t B) const {
  const auto check = [&](const char* name, const TensorView& x, std::int64_t width) {
    const Shape& shape = x.shape;
    const bool fits = shape.rank() == rank + 1 && (rank == 2 || shape[0] == B) && shape.back(2) == Hkv_ && shape.back(0) == width;
    if (!fits) detail::fail(ErrorCode::shape, op, name, {rank == 3 ? detail::text({"(", B, ","}) : "(", Hkv_, ",P,", width, ")"}, {shape});
    return shape.back(1);
  };
  const std::int64_t keys = check("past.key", past.key, D_), values = check("past.value", past.value, Dv_);
  if (values != keys) detail::fail(ErrorCode::shape, op, "past.value", {keys, " rows as past.key ", past.key.shape}, {past.value.shape});
  return keys;
}

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, const detail::AttentionBuffers& buffers) const {
  // A call's own dropout applies in eval mode too, its own seed from step 0.
  detail::ForwardRandom random = next_random();
  const float probability = options.dropout.value_or(random.training ? options_.dropout : 0.0F);
  if (options.seed || !random.training) random = {.training = true, .seed = options.seed.value_or(0)};
  detail::Scratch scratch = this->scratch();
  const Run run{.dropout = detail::dropout_at(random, probability, detail::DropoutSite::attention_weights, 0), .past = options.past};
  if (keeps(options.for_backward) && !options.past && !is_quantized()) return run_for_backward(plan, query, key, value, run, buffers, scratch);
  this->run(plan, query, key, value, run, buffers, scratch);
}

struct MultiHeadAttention::KeysAndValues {
  detail::Heads<const float> keys, values;
  std::optional<detail::PackedHeads> packed = std::nullopt;  // instead of keys and values
};

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const Run& run, const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const detail::AttentionSpec spec = of_layer(plan.spec);
  const detail::AttentionSizes& sizes = plan.sizes;
  const std::int64_t B = sizes.B, H = H_, Hkv = Hkv_, L = sizes.L, D = D_, Dv = Dv_, given = sizes.S - spec.extra_keys - sizes.past;
  const detail::Scratch::Frame frame(scratch);
  const std::size_t q_size = size_of(B * L, H * D), k_size = size_of(B * given, Hkv * D), v_size = size_of(B * given, Hkv * Dv);
  float* const q_proj = scratch.take(q_size);
  float* const k_proj = scratch.take(k_size);
  float* const v_proj = scratch.take(v_size);
  project(query, key, value, q_proj, k_proj, v_proj, scratch);
  if (detail::kIsNative && run.patch.q_proj != nullptr) detail::copy_values(run.patch.q_proj, q_size, q_proj);
  if (detail::kIsNative && run.patch.k_proj != nullptr) detail::copy_values(run.patch.k_proj, k_size, k_proj);
  if (detail::kIsNative && run.patch.v_proj != nullptr) detail::copy_values(run.patch.v_proj, v_size, v_proj);
  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    if (float* to = buffers.of(name)) detail::copy_values(from, count, to);
  };
  copy(TraceName::q_proj, q_proj, q_size);
  copy(TraceName::k_proj, k_proj, k_size);
  copy(TraceName::v_proj, v_proj, v_size);
  if (!query_norm_.is_identity()) {
    query_norm_.forward(q_proj, B * L * H, q_proj);
    key_norm_.forward(k_proj, B * given * Hkv, k_proj);
  }

  const detail::SequenceGroup whole{B, L};
  const std::span<const detail::SequenceGroup> runs = spec.runs.empty() ? std::span(&whole, 1) : spec.runs;
  if (defaults_.rotary) rotate(spec, sizes, runs, q_proj, k_proj, scratch);
  const KeysAndValues all = keys_and_values(spec, sizes, run, k_proj, v_proj, buffers, scratch);
  float* const merged = options_.out_proj ? scratch.take(size_of(B * L, H * Dv)) : buffers.output;
  attend(spec, sizes, run, runs, q_proj, all, merged, buffers, scratch);
  if (detail::kIsNative && run.patch.weights != nullptr) attend_with(run.patch.weights, spec, sizes, all, merged, buffers);

  if (float* to = buffers.of(TraceName::context)) detail::copy_heads(detail::heads_in_rows<const float>(merged, L, H, Dv), B, H, L, Dv, to);
  if (run.patch.values != nullptr) detail::copy_values(run.patch.values, size_of(B * L, H * Dv), merged);
  for (std::int64_t i = 0; i < B * L * H && run.patch.head_mask != nullptr && !detail::counts(); ++i)
    kernels::best().scale_row(merged + i * Dv, run.patch.head_mask[i % H], merged + i * Dv, size_of(1, Dv));
  project_output(plan, run, merged, buffers, scratch);
  if (detail::counts()) return;

  copy(TraceName::merged, merged, size_of(B * L, H * Dv));
  if (float* to = buffers.of(TraceName::q)) detail::copy_heads(detail::heads_in_rows<const float>(q_proj, L, H, D), B, H, L, D, to);
  float *const to_k = buffers.of(TraceName::k), *const to_v = buffers.of(TraceName::v);
  if (all.packed) {
    if (to_k != nullptr) all.packed->keys.unpack(size_of(B, Hkv), size_of(sizes.S, 1), to_k);
    if (to_v != nullptr) all.packed->values.unpack(size_of(B, Hkv), size_of(sizes.S, 1), to_v);
    return;
  }
  if (to_k != nullptr) detail::copy_heads(all.keys, B, Hkv, sizes.S, D, to_k);
  if (to_v != nullptr) detail::copy_heads(all.values, B, Hkv, sizes.S, Dv, to_v);
}

void MultiHeadAttention::project(const TensorView& query, const TensorView& key, const TensorView& value, float* q_proj, float* k_proj, float* v_proj,
                                 detail::Scratch& scratch) const {
  const auto same = [](const TensorView& a, const TensorView& b) { return a.data == b.data && a.shape == b.shape && a.strides == b.strides; };
  if (same(query, key) && same(key, value)) {
    const detail::Linear::Output outputs[] = {{&query_, q_proj}, {&key_, k_proj}, {&value_, v_proj}};
    detail::Linear::forward(outputs, detail::Rows(query), scratch);
  } else {
    query_.forward(detail::Rows(query), q_proj, scratch);
    key_.forward(detail::Rows(key), k_proj, scratch);
    value_.forward(detail::Rows(value), v_proj, scratch);
  }
}

/// Keys (B,Hkv,S,D) and values (B,Hkv,S,Dv): past or cached, projected, then the learned and the zero row.
MultiHeadAttention::KeysAndValues MultiHeadAttention::keys_and_values(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes,
                                                                      const Run& run, const float* k_proj, const float* v_proj,
                                                                      const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const std::int64_t B = sizes.B, Hkv = Hkv_, S = sizes.S, D = D_, Dv = Dv_, given = S - spec.extra_keys - sizes.past;
  if (run.cache != nullptr) return {{}, {}, run.cache->append(run.layer, given, k_proj, v_proj)};
  const float *keys = k_proj, *values = v_proj;
  if (spec.extra_keys > 0) {
    float* const more_keys = scratch.take(size_of(B * S, Hkv * D));
    float* const more_values = scratch.take(size_of(B * S, Hkv * Dv));
    append_rows(keys, B, given, Hkv * D, bias_k_, options_.add_zero_attn, more_keys);
    append_rows(values, B, given, Hkv * Dv, bias_v_, options_.add_zero_attn, more_values);
    keys = more_keys;
    values = more_values;
  }
  if (!spec.output_present) return {detail::heads_in_rows(keys, S, Hkv, D), detail::heads_in_rows(values, S, Hkv, Dv)};
  const KeyValueView past = run.past.value_or(KeyValueView{});
  join_heads(past.key, detail::heads_in_rows(keys, given, Hkv, D), B, Hkv, given, D, buffers.present_key);
  join_heads(past.value, detail::heads_in_rows(values, given, Hkv, Dv), B, Hkv, given, Dv, buffers.present_value);
  return {detail::heads_of<const float>(buffers.present_key, Hkv, S, D), detail::heads_of<const float>(buffers.present_value, Hkv, S, Dv)};
}

/// merged (B,L,H·Dv)
void MultiHeadAttention::attend(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const Run& run,
                                std::span<const detail::SequenceGroup> runs, const float* q_proj, const KeysAndValues& all, float* merged,
                                const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const std::int64_t H = H_, Hkv = Hkv_, D = D_, Dv = Dv_;
  std::int64_t start = 0;
  for (const auto& [count, length] : runs) {
    detail::AttentionSizes part = sizes;
    part.B = count;
    part.L = length;
    part.S = length + sizes.S - sizes.L;  // runs have S = L
    detail::AttentionInputs inputs{.query = detail::heads_in_rows(q_proj + start * H * D, part.L, H, D),
                                   .key = all.keys,
                                   .value = all.values,
                                   .context = detail::heads_in_rows(merged + start * H * Dv, part.L, H, Dv),
                                   .position_bias = run.position_bias,
                                   .dropout = run.dropout,
                                   .packed = all.packed ? &*all.packed : nullptr};
    if (!spec.runs.empty()) {
      inputs.key = detail::heads_in_rows(all.keys.data + start * Hkv * D, part.S, Hkv, D);
      inputs.value = detail::heads_in_rows(all.values.data + start * Hkv * Dv, part.S, Hkv, Dv);
    }
    detail::attention_core(spec, part, inputs, buffers, scratch);
    start += count * length;
  }
}

/// merged[b,i,h] = Σ_j weights[b,h,i,j] v[b,j,h·Hkv/H]
void MultiHeadAttention::attend_with(const float* weights, const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes,
                                     const KeysAndValues& all, float* merged, const detail::AttentionBuffers& buffers) const {
  if (detail::counts()) return;
  const std::size_t count = size_of(sizes.B * H_, sizes.L * sizes.S), width = size_of(1, Dv_);
  for (float* const to : {buffers.weights, buffers.of(TraceName::weights)})
    if (to != nullptr) std::copy_n(weights, count, to);
  const kernels::KernelTable& kernel = kernels::best(spec.reproducible);
  const detail::Heads<float> heads = detail::heads_in_rows(merged, sizes.L, H_, Dv_);
  float* terms = buffers.of(TraceName::weighted_values);
  for (std::int64_t b = 0; b < sizes.B; ++b)
    for (std::int64_t h = 0; h < H_; ++h)
      for (std::int64_t i = 0; i < sizes.L; ++i) {
        float* const sum = heads.at(b, h, i);
        std::fill_n(sum, width, 0.0F);
        for (std::int64_t j = 0; j < sizes.S; ++j) {
          const float* const value = all.values.at(b, h * Hkv_ / H_, j);
          kernel.add_scaled_row(value, *weights, sum, width);
          if (terms != nullptr) {
            kernel.scale_row(value, *weights, terms, width);
            terms += width;
          }
          ++weights;
        }
      }
}

/// output (B,L,E) = merged Wᵀ + b
void MultiHeadAttention::project_output(const detail::AttentionPlan& plan, const Run& run, const float* merged,
                                        const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const std::int64_t rows = plan.sizes.B * plan.sizes.L;
  const std::size_t width = static_cast<std::size_t>(plan.output.back(0));
  float* const kept = buffers.of(TraceName::output);
  const auto finish = [&](std::size_t row, unsigned worker) noexcept {
    if (kept != nullptr) std::copy_n(buffers.output + row * width, width, kept + row * width);
    if (run.finish_row != nullptr) (*run.finish_row)(row, worker);
  };
  const parallel::TaskRef finish_ref(finish);
  if (options_.out_proj)
    out_.forward(merged, rows, buffers.output, scratch, &finish_ref);
  else
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows) && !detail::counts(); ++row) finish(row, 0);
}

Trace MultiHeadAttention::available_parts(std::string_view op, Trace asked) const {
  const detail::Disentangled& parts = defaults_.disentangled;
  const auto without = [](bool is_there, TraceName name) { return is_there ? 0 : Trace{name}.bits(); };
  const std::uint32_t missing =
      asked.bits() & (without(parts.any(), TraceName::c2c) | without(parts.c2p, TraceName::c2p) | without(parts.p2c, TraceName::p2c));
  if (missing != 0 && (asked.bits() & Trace::all().bits()) != Trace::all().bits())
    detail::fail(ErrorCode::argument, op, "trace", {"a list of traces that the layer has"}, {"a list with c2c, c2p or p2c"},
                 "Only DeBERTa's scores have c2c, c2p and p2c");
  return Trace::from_bits(asked.bits() & ~missing);
}

void MultiHeadAttention::set_defaults(detail::AttentionDefaults defaults) {
  defaults_ = std::move(defaults);
  const detail::Disentangled& parts = defaults_.disentangled;
  if (parts.shares_projections) return;
  if (parts.c2p) position_key_ = {options_.embed_dim, H_ * D_, true};
  if (parts.p2c) position_query_ = {options_.embed_dim, H_ * D_, true};
}

void MultiHeadAttention::set_variant(const detail::LayerVariant& variant, float eps) {
  if (variant.scale) options_.scale = variant.scale;
  if (variant.head_norms) query_norm_ = key_norm_ = {NormKind::rms_norm, D_, false, eps};
  for (detail::Norm* const norm : {&query_norm_, &key_norm_}) norm->set_offset(variant.norm_offset);
}

void MultiHeadAttention::project_positions(const float* x, std::int64_t rows, float* key_panels, float* queries, float* keys,
                                           detail::Scratch& scratch) const {
  const detail::Disentangled& parts = defaults_.disentangled;
  const std::int64_t width = H_ * D_;
  if (parts.p2c) (parts.shares_projections ? query_ : position_query_).forward(x, rows, queries, scratch);
  if (!parts.c2p) return;
  (parts.shares_projections ? key_ : position_key_).forward(x, rows, keys, scratch);
  if (detail::counts()) return;
  kernels::pack(keys, static_cast<std::ptrdiff_t>(width), 1, size_of(rows, 1), size_of(width, 1), kernels::best(is_quantized()).nr, key_panels);
}

detail::AttentionSpec MultiHeadAttention::of_layer(const detail::AttentionSpec& call) const {
  detail::AttentionSpec spec = call;
  if (spec.softcap == 0) spec.softcap = defaults_.softcap;
  if (spec.window.open()) spec.window = defaults_.window;
  spec.reproducible = query_.is_quantized();
  return spec;
}

void MultiHeadAttention::rotate(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, std::span<const detail::SequenceGroup> runs,
                                float* q_proj, float* k_proj, detail::Scratch& scratch) const {
  using Heads = detail::Rotary::Heads;
  const auto H = static_cast<std::size_t>(H_), Hkv = static_cast<std::size_t>(Hkv_);
  const std::int64_t given = sizes.S - spec.extra_keys - sizes.past;
  for (const auto& [count, length] : runs) {
    const std::size_t rows = size_of(count, length);
    const Heads queries{q_proj, H}, keys{k_proj, Hkv};
    if (given == sizes.L && spec.query_offset == sizes.past) {  // same angles
      const Heads both[] = {queries, keys};
      defaults_.rotary.rotate(both, rows, static_cast<std::size_t>(length), sizes.past, scratch);
    } else {
      defaults_.rotary.rotate({&queries, 1}, rows, static_cast<std::size_t>(length), spec.query_offset, scratch);
      defaults_.rotary.rotate({&keys, 1}, size_of(count, given), static_cast<std::size_t>(given), sizes.past, scratch);
    }
    q_proj += size_of(count * length, H_ * D_);
    k_proj += size_of(count * length, Hkv_ * D_);
  }
}

}  // namespace attn
