#include "attn/layers/multi_head_attention.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace {

constexpr std::string_view kMultiHeadAttentionOp = "MultiHeadAttention";
constexpr std::array<const char*, 3> kLetters{"q_proj", "k_proj", "v_proj"};

using detail::size_of;

/// Throws CONFIG where numbers do not divide.
std::int64_t quotient(std::string_view name, std::int64_t value, std::string_view divisor_name, std::int64_t divisor) {
  if (value % divisor != 0) detail::fail(ErrorCode::config, kMultiHeadAttentionOp, name, {"a multiple of ", divisor_name, " ", divisor}, {value});
  return value / divisor;
}

/// Rows of each batch with the learned and the zero row behind them: (B,S,width) -> (B,S+extra,width).
void append_rows(const float* from, std::int64_t B, std::int64_t S, std::int64_t width, const std::vector<float>& learned, bool zero, float* to) {
  for (std::int64_t b = 0; b < B; ++b) {
    to = std::copy_n(from + b * S * width, S * width, to);
    to = std::copy(learned.begin(), learned.end(), to);
    if (zero) to = std::fill_n(to, width, 0.0F);
  }
}

/// (B,H,past,width) or nothing, and (B,H,rows,width) -> (B,H,past + rows,width).
void join_heads(const TensorView& past, const detail::Heads<const float>& x, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width,
                float* to) {
  const detail::Rows past_rows(past);
  const std::int64_t before = past.data != nullptr ? past.shape.back(1) : 0;
  for (std::int64_t b = 0; b < B; ++b)
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
  detail::check_parameter_memory(kMultiHeadAttentionOp, parameter_shapes());
  initialize();
}

MultiHeadAttention::Form MultiHeadAttention::form() const {
  const std::int64_t E = options_.embed_dim;
  if (query_.out_features() != E || key_.out_features() != E || value_.out_features() != E) return Form::separate;
  return key_.in_features() == E && value_.in_features() == E ? Form::packed : Form::split;
}

MultiHeadAttention::Form MultiHeadAttention::form_of(const std::string& prefix, const StateView& state) const {
  for (const std::string name : kLetters)
    if (state.contains(prefix + name + ".weight") || state.contains(prefix + name + ".bias")) return Form::separate;
  return form();
}

void MultiHeadAttention::add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const {
  const std::int64_t E = options_.embed_dim;
  const detail::Linear* const projections[] = {&query_, &key_, &value_};
  const Form form = state != nullptr ? form_of(prefix, *state) : this->form();
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = prefix + kLetters[i];
    if (form == Form::separate) projections[i]->add_shapes(name + ".", state, shapes);
    if (form == Form::split) shapes.emplace(name + "_weight", Shape{E, projections[i]->in_features()});
  }
  if (form == Form::packed) shapes.emplace(prefix + "in_proj_weight", Shape{3 * E, E});
  if (form != Form::separate && options_.bias) shapes.emplace(prefix + "in_proj_bias", Shape{3 * E});
  if (options_.add_bias_kv) {
    shapes.emplace(prefix + "bias_k", Shape{1, 1, Hkv_ * D_});
    shapes.emplace(prefix + "bias_v", Shape{1, 1, Hkv_ * Dv_});
  }
  if (options_.out_proj) out_.add_shapes(prefix + "out_proj.", state, shapes);
  if constexpr (detail::kHasGradients) {  // asked of a model's layers by gradients alone
    if (position_key_.out_features() > 0) position_key_.add_shapes(prefix + "position_key.", state, shapes);
    if (position_query_.out_features() > 0) position_query_.add_shapes(prefix + "position_query.", state, shapes);
  }
}

void MultiHeadAttention::save(const std::string& prefix, const StateTarget& target) const {
  const auto place = [&](const std::string& name, std::size_t row, std::size_t width) -> std::optional<StatePlace> {
    const auto found = target.find(prefix + name);
    if (found == target.end()) return std::nullopt;
    return found->second.from(row, width);
  };
  const auto E = static_cast<std::size_t>(options_.embed_dim);
  const Form form = this->form();
  const detail::Linear* const projections[] = {&query_, &key_, &value_};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = kLetters[i];
    const auto weight = form == Form::packed ? place("in_proj_weight", i * E, E) : place(name + (form == Form::split ? "_weight" : ".weight"), 0, 0);
    const auto bias = form == Form::separate ? place(name + ".bias", 0, 0) : place("in_proj_bias", i * E, 1);
    if (weight) projections[i]->get(*weight, options_.bias && bias ? bias->values : nullptr);
  }
  if (options_.add_bias_kv) {
    detail::save_data(target, prefix + "bias_k", bias_k_);
    detail::save_data(target, prefix + "bias_v", bias_v_);
  }
  if (options_.out_proj) out_.save(prefix + "out_proj.", target);
}

MultiHeadAttention MultiHeadAttention::loaded(const std::string& prefix, const StateView& state) const {
  const auto find = [&](const std::string& name) { return detail::find_data(state, prefix + name); };
  const auto part = [](const float* all, std::size_t offset) { return all != nullptr ? all + offset : nullptr; };
  const Form form = form_of(prefix, state);
  const auto E = static_cast<std::size_t>(options_.embed_dim);

  MultiHeadAttention next(detail::Uninitialized{}, options_, defaults_);
  const detail::Linear* const now[] = {&query_, &key_, &value_};
  detail::Linear* const projections[] = {&next.query_, &next.key_, &next.value_};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = kLetters[i];
    if (form == Form::separate)
      *projections[i] = now[i]->loaded(prefix + name + ".", state);
    else
      *projections[i] =
          now[i]->with(form == Form::packed ? part(find("in_proj_weight"), i * E * E) : find(name + "_weight"), part(find("in_proj_bias"), i * E));
  }
  next.bias_k_ = bias_k_;
  next.bias_v_ = bias_v_;
  if (const float* bias = find("bias_k")) std::copy_n(bias, bias_k_.size(), next.bias_k_.data());
  if (const float* bias = find("bias_v")) std::copy_n(bias, bias_v_.size(), next.bias_v_.data());
  if (options_.out_proj) next.out_ = out_.loaded(prefix + "out_proj.", state);
  return next;
}

MultiHeadAttention MultiHeadAttention::drawn(const InitOptions& options, std::uint32_t& parameter) const {
  // Each parameter has random numbers of its own, numbered so: three projections, the output's, bias_k, bias_v.
  const std::uint32_t first = parameter;
  parameter += 6;
  InitOptions each = options;
  if (options.scheme == InitScheme::torch) each.scheme = InitScheme::xavier_uniform;

  MultiHeadAttention next(detail::Uninitialized{}, options_, defaults_);
  detail::Linear* const projections[] = {&next.query_, &next.key_, &next.value_};
  std::vector<float> weights[3];
  std::int64_t widest = options_.embed_dim;
  for (std::size_t i = 0; i < 3; ++i) {
    weights[i].resize(size_of(projections[i]->out_features(), projections[i]->in_features()));
    widest = std::max(widest, projections[i]->out_features());
  }
  const std::vector<float> zeros(static_cast<std::size_t>(widest), 0.0F);
  if (options.scheme == InitScheme::torch && form() == Form::packed) {
    // torch sees one parameter (3E,E), so its fan_out is 3E.
    std::vector<float> all(3 * weights[0].size());
    Random(options.seed, first).weight(all.data(), 3 * options_.embed_dim, options_.embed_dim, each);
    for (std::size_t i = 0; i < 3; ++i) std::copy_n(all.data() + i * weights[0].size(), weights[0].size(), weights[i].data());
  } else {
    for (std::uint32_t i = 0; i < 3; ++i)
      Random(options.seed, first + i).weight(weights[i].data(), projections[i]->out_features(), projections[i]->in_features(), each);
  }
  for (std::size_t i = 0; i < 3; ++i) *projections[i] = projections[i]->with(weights[i].data(), zeros.data());

  if (options_.out_proj) {
    std::vector<float> weight(size_of(out_.out_features(), out_.in_features()));
    Random(options.seed, first + 3).weight(weight.data(), out_.out_features(), out_.in_features(), options);
    next.out_ = next.out_.with(weight.data(), zeros.data());
  }
  if (options_.add_bias_kv) {
    // torch: xavier_normal_ of a (1,1,width), whose fans are both the width.
    InitOptions rows = options;
    if (options.scheme == InitScheme::torch) rows.scheme = InitScheme::xavier_normal;
    next.bias_k_.resize(size_of(Hkv_, D_));
    next.bias_v_.resize(size_of(Hkv_, Dv_));
    Random(options.seed, first + 4).row(next.bias_k_.data(), Hkv_ * D_, rows);
    Random(options.seed, first + 5).row(next.bias_v_.data(), Hkv_ * Dv_, rows);
  }
  return next;
}

void MultiHeadAttention::add_parameters(const std::string& prefix, detail::Parameters& parameters) {
  detail::Linear* const projections[] = {&query_, &key_, &value_};
  for (std::size_t i = 0; i < 3; ++i) projections[i]->add_parameters(prefix + kLetters[i] + ".", parameters);
  if (options_.out_proj) out_.add_parameters(prefix + "out_proj.", parameters);
  if (position_key_.out_features() > 0) position_key_.add_parameters(prefix + "position_key.", parameters);
  if (position_query_.out_features() > 0) position_query_.add_parameters(prefix + "position_query.", parameters);
  if constexpr (detail::kHasGradients)  // no checkpoint's layer has them
    if (options_.add_bias_kv) {
      parameters.emplace(prefix + "bias_k", detail::Parameter({1, 1, Hkv_ * D_}, &bias_k_));
      parameters.emplace(prefix + "bias_v", detail::Parameter({1, 1, Hkv_ * Dv_}, &bias_v_));
    }
}

detail::AttentionPlan MultiHeadAttention::plan(const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options) const {
  MemoryEstimate memory(kMultiHeadAttentionOp);
  detail::AttentionPlan plan = this->plan(kMultiHeadAttentionOp, query, key, value, options, {}, memory);
  if (options.dropout) detail::check_dropout(kMultiHeadAttentionOp, *options.dropout);
  if constexpr (detail::kHasGradients) {
    if (options.for_backward) detail::check_float32(kMultiHeadAttentionOp, "for_backward", is_quantized());
    if (options.for_backward && options.past)
      detail::fail(ErrorCode::unsupported, kMultiHeadAttentionOp, "for_backward", {"a forward of all tokens at once, without a past"},
                   {"given with a past"});
    if (keeps(options.for_backward)) {
      const detail::AttentionSizes& sizes = plan.sizes;
      memory.add("kept queries, q and merged heads", {sizes.B, sizes.L, options_.embed_dim + H_ * (D_ + Dv_)});
      memory.add("kept keys and values, k and v", {sizes.B, sizes.S, key_.in_features() + value_.in_features() + Hkv_ * (D_ + Dv_)});
    }
  }
  memory.check();
  return plan;
}

detail::AttentionPlan MultiHeadAttention::plan(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options, std::span<const detail::SequenceRun> runs,
                                               MemoryEstimate& memory) const {
  const std::size_t rank = query.shape.rank();
  const auto check = [&](std::string_view name, const TensorView& x, std::int64_t width, const char* length) {
    if (x.shape.rank() == rank && (rank == 2 || rank == 3) && x.shape.back(0) == width) return;
    const bool both = &x == &query;  // its rank decides about the others'
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
  const std::int64_t past = options.past ? check_past(op, *options.past, rank, B) : 0;
  if (spec.output_present && extra > 0)
    detail::fail(ErrorCode::unsupported, op, options.past ? "past" : "output_present", {"a layer without add_bias_kv and add_zero_attn"}, {"given"});
  if (!options.query_offset) spec.query_offset = past;
  const detail::AttentionSizes sizes{
      .B = B, .L = query.shape.back(1), .S = past + S + extra, .past = past, .query_width = D_, .key_width = D_, .has_batch = rank == 3};
  Shape output = query.shape;
  output[rank - 1] = options_.out_proj ? options_.embed_dim : H_ * Dv_;

  const int copies = extra > 0 ? 2 : 1;  // appending keys copies them
  memory.add("projected queries", {B, sizes.L, H_ * D_});
  for (int i = 0; i < copies; ++i) {
    memory.add("projected keys", {B, S + extra, Hkv_ * D_});
    memory.add("projected values", {B, S + extra, Hkv_ * Dv_});
  }
  memory.add("merged heads", {B, sizes.L, H_ * Dv_});
  return {op, spec, sizes, output, memory};
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
  // A call's own probability counts in eval too, its own seed is always at step 0.
  detail::ForwardRandom random = next_random();
  const float probability = options.dropout.value_or(random.training ? options_.dropout : 0.0F);
  if (options.seed || !random.training) random = {.training = true, .seed = options.seed.value_or(0)};
  detail::Scratch scratch = this->scratch();
  const Run run{.dropout = detail::dropout_at(random, probability, detail::DropoutSite::attention_weights, 0), .past = options.past};
  if constexpr (detail::kHasGradients)
    if (keeps(options.for_backward) && !options.past && !is_quantized()) return run_for_backward(plan, query, key, value, run, buffers, scratch);
  this->run(plan, query, key, value, run, buffers, scratch);
}

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const Run& run, const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const detail::AttentionSpec spec = of_layer(plan.spec);
  const detail::AttentionSizes& sizes = plan.sizes;
  const std::int64_t B = sizes.B, H = H_, Hkv = Hkv_, L = sizes.L, S = sizes.S, D = D_, Dv = Dv_;
  const std::int64_t given = S - spec.extra_keys - sizes.past;
  const detail::Scratch::Frame frame(scratch);
  const std::size_t q_size = size_of(B * L, H * D), k_size = size_of(B * given, Hkv * D), v_size = size_of(B * given, Hkv * Dv);
  float* const q_proj = scratch.take(q_size);
  float* const k_proj = scratch.take(k_size);
  float* const v_proj = scratch.take(v_size);
  const auto same = [](const TensorView& a, const TensorView& b) { return a.data == b.data && a.shape == b.shape && a.strides == b.strides; };
  if (same(query, key) && same(key, value)) {
    const detail::Linear::Output outputs[] = {{&query_, q_proj}, {&key_, k_proj}, {&value_, v_proj}};
    detail::Linear::forward(outputs, detail::Rows(query), scratch);
  } else {
    query_.forward(detail::Rows(query), q_proj, scratch);
    key_.forward(detail::Rows(key), k_proj, scratch);
    value_.forward(detail::Rows(value), v_proj, scratch);
  }

  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    if (float* to = buffers.of(name)) std::copy_n(from, count, to);
  };
  copy(TraceName::q_proj, q_proj, q_size);
  copy(TraceName::k_proj, k_proj, k_size);
  copy(TraceName::v_proj, v_proj, v_size);

  const detail::SequenceRun whole{B, L};
  const std::span<const detail::SequenceRun> runs = spec.runs.empty() ? std::span(&whole, 1) : spec.runs;
  if (defaults_.rotary) rotate(spec, sizes, runs, q_proj, k_proj, scratch);

  // Heads are slices of the columns: (B,L,H·D) read as (B,H,L,D).
  const auto heads = []<class T>(T* data, std::int64_t rows, std::int64_t heads_count, std::int64_t width) {
    const auto row = static_cast<std::ptrdiff_t>(heads_count * width);
    return detail::Heads<T>{data, static_cast<std::ptrdiff_t>(rows) * row, static_cast<std::ptrdiff_t>(width), row};
  };
  const float *keys = k_proj, *values = v_proj;
  if (spec.extra_keys > 0) {
    float* const more_keys = scratch.take(size_of(B * S, Hkv * D));
    float* const more_values = scratch.take(size_of(B * S, Hkv * Dv));
    append_rows(keys, B, given, Hkv * D, bias_k_, options_.add_zero_attn, more_keys);
    append_rows(values, B, given, Hkv * Dv, bias_v_, options_.add_zero_attn, more_values);
    keys = more_keys;
    values = more_values;
  }
  detail::Heads<const float> key_heads = heads(keys, S, Hkv, D), value_heads = heads(values, S, Hkv, Dv);
  if (spec.output_present) {
    const KeyValueView past = run.past.value_or(KeyValueView{});
    join_heads(past.key, heads(keys, given, Hkv, D), B, Hkv, given, D, buffers.present_key);
    join_heads(past.value, heads(values, given, Hkv, Dv), B, Hkv, given, Dv, buffers.present_value);
    key_heads = detail::heads_of(static_cast<const float*>(buffers.present_key), Hkv, S, D);
    value_heads = detail::heads_of(static_cast<const float*>(buffers.present_value), Hkv, S, Dv);
  }

  float* const merged = options_.out_proj ? scratch.take(size_of(B * L, H * Dv)) : buffers.output;
  std::int64_t start = 0;
  for (const auto& [count, length] : runs) {
    detail::AttentionSizes part = sizes;
    part.B = count;
    part.L = length;
    part.S = length + S - L;  // runs have S = L
    detail::AttentionInputs inputs{.query = heads(static_cast<const float*>(q_proj) + start * H * D, part.L, H, D),
                                   .key = key_heads,
                                   .value = value_heads,
                                   .context = heads(merged + start * H * Dv, part.L, H, Dv),
                                   .position_bias = run.position_bias,
                                   .dropout = run.dropout};
    if (!spec.runs.empty()) {
      inputs.key = heads(keys + start * Hkv * D, part.S, Hkv, D);
      inputs.value = heads(values + start * Hkv * Dv, part.S, Hkv, Dv);
    }
    detail::attention_core(spec, part, inputs, buffers, scratch);
    start += count * length;
  }

  if (float* to = buffers.of(TraceName::context)) detail::copy_heads(heads(static_cast<const float*>(merged), L, H, Dv), B, H, L, Dv, to);
  if (run.patch.values != nullptr) std::copy_n(run.patch.values, size_of(B * L, H * Dv), merged);
  if (run.patch.head_mask != nullptr)
    for (std::int64_t row = 0; row < B * L; ++row)
      for (std::int64_t head = 0; head < H; ++head) {
        float* const result = merged + (row * H + head) * Dv;
        for (std::int64_t i = 0; i < Dv; ++i) result[i] *= run.patch.head_mask[head];
      }

  const std::size_t width = static_cast<std::size_t>(plan.output.back(0));
  float* const kept = buffers.of(TraceName::output);
  const auto finish = [&](std::size_t row, unsigned worker) noexcept {
    if (kept != nullptr) std::copy_n(buffers.output + row * width, width, kept + row * width);
    if (run.finish_row != nullptr) (*run.finish_row)(row, worker);
  };
  const parallel::TaskRef finish_ref(finish);
  if (options_.out_proj)
    out_.forward(merged, B * L, buffers.output, scratch, &finish_ref);
  else
    for (std::size_t row = 0; row < static_cast<std::size_t>(B * L); ++row) finish(row, 0);

  copy(TraceName::merged, merged, size_of(B * L, H * Dv));
  if (float* to = buffers.of(TraceName::q)) detail::copy_heads(heads(static_cast<const float*>(q_proj), L, H, D), B, H, L, D, to);
  if (float* to = buffers.of(TraceName::k)) detail::copy_heads(key_heads, B, Hkv, S, D, to);
  if (float* to = buffers.of(TraceName::v)) detail::copy_heads(value_heads, B, Hkv, S, Dv, to);
}

void MultiHeadAttention::make_int8() {
  for (detail::Linear* const linear : {&query_, &key_, &value_, &out_, &position_key_, &position_query_}) linear->make_int8();
}

Trace MultiHeadAttention::available_parts(std::string_view op, Trace asked) const {
  const detail::Disentangled& parts = defaults_.disentangled;
  const auto without = [](bool is_there, TraceName name) { return is_there ? 0 : Trace{name}.bits(); };
  const std::uint32_t missing =
      asked.bits() & (without(parts.any(), TraceName::c2c) | without(parts.c2p, TraceName::c2p) | without(parts.p2c, TraceName::p2c));
  if (missing != 0 && (asked.bits() & Trace::all().bits()) != Trace::all().bits())
    detail::fail(ErrorCode::argument, op, "trace", {"names of parts that the scores have"}, {"a list with others"},
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

void MultiHeadAttention::project_positions(const float* x, std::int64_t rows, float* key_panels, float* queries, float* keys,
                                           detail::Scratch& scratch) const {
  const detail::Disentangled& parts = defaults_.disentangled;
  const std::int64_t width = H_ * D_;
  if (parts.p2c) (parts.shares_projections ? query_ : position_query_).forward(x, rows, queries, scratch);
  if (!parts.c2p) return;
  (parts.shares_projections ? key_ : position_key_).forward(x, rows, keys, scratch);
  kernels::pack(keys, static_cast<std::ptrdiff_t>(width), 1, size_of(rows, 1), size_of(width, 1), kernels::best(is_quantized()).nr, key_panels);
}

detail::AttentionSpec MultiHeadAttention::of_layer(const detail::AttentionSpec& call) const {
  detail::AttentionSpec spec = call;
  if (spec.softcap == 0) spec.softcap = defaults_.softcap;
  if (spec.window.open()) spec.window = defaults_.window;
  spec.everywhere = query_.is_quantized();
  return spec;
}

void MultiHeadAttention::rotate(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, std::span<const detail::SequenceRun> runs,
                                float* q_proj, float* k_proj, detail::Scratch& scratch) const {
  using Heads = detail::Rotary::Heads;
  const auto H = static_cast<std::size_t>(H_), Hkv = static_cast<std::size_t>(Hkv_);
  const std::int64_t given = sizes.S - spec.extra_keys - sizes.past;
  for (const auto& [count, length] : runs) {
    const std::size_t rows = size_of(count, length);
    const Heads queries{q_proj, H}, keys{k_proj, Hkv};
    if (given == sizes.L && spec.query_offset == sizes.past) {  // they turn by the same angles
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
