#include "attn/layers/multi_head_attention.hpp"

#include <algorithm>

#include "attn/ops/attention_core.hpp"

namespace attn {
namespace {

constexpr std::string_view kOp = "MultiHeadAttention";
constexpr std::array<const char*, 3> kLetters{"q_proj", "k_proj", "v_proj"};

using detail::size_of;

/// Throws CONFIG where numbers do not divide.
std::int64_t quotient(std::string_view name, std::int64_t value, std::string_view divisor_name, std::int64_t divisor) {
  if (value % divisor != 0) fail(ErrorCode::config, kOp, name, {"a multiple of ", divisor_name, " ", divisor}, {value});
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

}  // namespace

MultiHeadAttention::MultiHeadAttention(detail::Uninitialized, const MultiHeadAttentionOptions& options) : options_(options) {
  const std::int64_t E = detail::check_positive(kOp, "embed_dim", options.embed_dim);
  H_ = detail::check_positive(kOp, "num_heads", options.num_heads);
  Hkv_ = detail::check_positive(kOp, "num_key_value_heads", options.num_key_value_heads.value_or(H_));
  quotient("num_heads", H_, "num_key_value_heads", Hkv_);
  const std::int64_t kdim = detail::check_positive(kOp, "kdim", options.kdim.value_or(E));
  const std::int64_t vdim = detail::check_positive(kOp, "vdim", options.vdim.value_or(E));
  D_ = options.head_dim ? detail::check_positive(kOp, "head_dim", *options.head_dim) : quotient("embed_dim", E, "num_heads", H_);
  Dv_ = detail::check_positive(kOp, "value_head_dim", options.value_head_dim.value_or(D_));
  detail::check_positive(kOp, "num_heads times head_dim", H_ * D_);
  detail::check_positive(kOp, "num_heads times value_head_dim", H_ * Dv_);
  detail::check_dropout(kOp, options.dropout);
  if (options.scale) detail::attention_scale(kOp, options.scale, 1);

  query_ = {E, H_ * D_, options.bias};
  key_ = {kdim, Hkv_ * D_, options.bias};
  value_ = {vdim, Hkv_ * Dv_, options.bias};
  if (options.out_proj) out_ = {H_ * Dv_, E, options.bias};
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options) : MultiHeadAttention(detail::Uninitialized{}, options) {
  detail::check_parameter_memory(kOp, parameter_shapes());
  initialize();
}

MultiHeadAttention::Form MultiHeadAttention::form() const {
  const std::int64_t E = options_.embed_dim;
  if (query_.out_features() != E || key_.out_features() != E || value_.out_features() != E) return Form::separate;
  return key_.in_features() == E && value_.in_features() == E ? Form::packed : Form::split;
}

MultiHeadAttention::Form MultiHeadAttention::form_of(const std::string& prefix, const StateDict& state) const {
  for (const std::string name : kLetters)
    if (state.contains(prefix + name + ".weight") || state.contains(prefix + name + ".bias")) return Form::separate;
  return form();
}

void MultiHeadAttention::add_shapes(const std::string& prefix, const StateDict* state, std::map<std::string, Shape>& shapes) const {
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
}

void MultiHeadAttention::save(const std::string& prefix, StateDict& state) const {
  std::map<std::string, Shape> shapes;
  add_shapes(prefix, nullptr, shapes);
  for (const auto& [name, shape] : shapes) state.emplace(name, empty_any(shape));
  const auto data = [&](const std::string& name) { return state.at(prefix + name).data(); };

  const auto E = static_cast<std::size_t>(options_.embed_dim);
  const detail::Linear* const projections[] = {&query_, &key_, &value_};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = kLetters[i];
    const Form form = this->form();
    float* const weight = form == Form::packed  ? data("in_proj_weight") + i * E * E
                          : form == Form::split ? data(name + "_weight")
                                                : data(name + ".weight");
    float* const bias = !options_.bias ? nullptr : form == Form::separate ? data(name + ".bias") : data("in_proj_bias") + i * E;
    projections[i]->unpack(weight, bias);
  }
  if (options_.add_bias_kv) {
    std::copy(bias_k_.begin(), bias_k_.end(), data("bias_k"));
    std::copy(bias_v_.begin(), bias_v_.end(), data("bias_v"));
  }
  if (options_.out_proj) out_.unpack(data("out_proj.weight"), options_.bias ? data("out_proj.bias") : nullptr);
}

MultiHeadAttention MultiHeadAttention::loaded(const std::string& prefix, const StateDict& state) const {
  const auto find = [&](const std::string& name) { return detail::find_data(state, prefix + name); };
  const auto part = [](const float* all, std::size_t offset) { return all != nullptr ? all + offset : nullptr; };
  const Form form = form_of(prefix, state);
  const auto E = static_cast<std::size_t>(options_.embed_dim);

  MultiHeadAttention next(detail::Uninitialized{}, options_);
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

  MultiHeadAttention next(detail::Uninitialized{}, options_);
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
}

detail::AttentionPlan MultiHeadAttention::plan(const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AttentionOptions& options) const {
  MemoryEstimate memory(kOp);
  const Request request{.masks = detail::masks_of(options.mask, options.key_padding_mask, options.is_causal, options.fully_masked),
                        .scale = options.scale,
                        .need_weights = options.need_weights,
                        .average_weights = options.average_weights,
                        .trace = options.trace};
  detail::AttentionPlan plan = this->plan(kOp, query, key, value, request, memory);
  if (options.dropout) detail::check_dropout(kOp, *options.dropout);
  memory.check();
  return plan;
}

detail::AttentionPlan MultiHeadAttention::plan(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                               const Request& request, MemoryEstimate& memory) const {
  const std::size_t rank = query.shape.rank();
  const auto check = [&](std::string_view name, const TensorView& x, std::int64_t width, const char* length) {
    if (x.shape.rank() == rank && (rank == 2 || rank == 3) && x.shape.back(0) == width) return;
    const bool both = &x == &query;  // its rank decides about the others'
    fail(ErrorCode::shape, op, name,
         {both || rank == 3 ? "(B," : "(", length, ",", width, ")", both ? " or (L," : "", both ? text({width, ")"}) : "",
          x.shape.rank() == 4 ? "; heads are split inside: reshape (B,H,L,D) to (B,L,H*D)" : ""},
         {x.shape});
  };
  check("query", query, options_.embed_dim, "L");
  check("key", key, key_.in_features(), "S");
  check("value", value, value_.in_features(), "S");
  const std::int64_t B = rank == 3 ? query.shape[0] : 1, S = key.shape.back(1);
  if (rank == 3)
    for (const auto& [name, x] : {std::pair{"key", &key}, std::pair{"value", &value}})
      if (x->shape[0] != B) fail(ErrorCode::shape, op, name, {"a batch of ", B, " as query ", query.shape}, {x->shape});
  if (value.shape.back(1) != S) fail(ErrorCode::shape, op, "value", {S, " rows, one for each key ", key.shape}, {value.shape});

  const std::int64_t extra = (options_.add_bias_kv ? 1 : 0) + (options_.add_zero_attn ? 1 : 0);
  detail::AttentionPlan plan{.B = B, .H = H_, .Hkv = Hkv_, .L = query.shape.back(1), .S = S + extra, .D = D_, .Dv = Dv_};
  plan.extra_keys = extra;
  plan.query_width = plan.key_width = D_;
  plan.scale = detail::attention_scale(op, request.scale ? request.scale : options_.scale, D_);
  plan.output = query.shape;
  plan.output[rank - 1] = options_.out_proj ? options_.embed_dim : H_ * Dv_;
  plan.has_weights = request.need_weights;
  plan.average_weights = request.average_weights;
  plan.trace = detail::available_traces(op, request.trace, Trace::of_attention(), "those of attention, q_proj to output");
  plan.masks = request.masks;
  detail::check_masks(op, plan, rank == 2);

  const int copies = extra > 0 ? 2 : 1;  // appending keys copies them
  memory.add("projected queries", {B, plan.L, H_ * D_});
  for (int i = 0; i < copies; ++i) {
    memory.add("projected keys", {B, plan.S, Hkv_ * D_});
    memory.add("projected values", {B, plan.S, Hkv_ * Dv_});
  }
  memory.add("merged heads", {B, plan.L, H_ * Dv_});
  detail::plan_results(plan, rank == 3, true, memory);
  return plan;
}

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, const detail::AttentionBuffers& buffers) const {
  // A call's own probability counts in eval too, its own seed is always at step 0.
  detail::ForwardRandom random = next_random();
  const float probability = options.dropout.value_or(random.training ? options_.dropout : 0.0F);
  if (options.seed || !random.training) random = {true, options.seed.value_or(0), 0};
  detail::Scratch scratch = this->scratch();
  run(plan, query, key, value, detail::dropout_at(random, probability, detail::DropoutSite::attention_weights, 0), buffers, scratch, nullptr);
}

void MultiHeadAttention::run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                             const detail::Dropout& dropout, const detail::AttentionBuffers& buffers, detail::Scratch& scratch,
                             const parallel::TaskRef* finish_row, const detail::MergedPatch& patch) const {
  const std::int64_t B = plan.B, H = plan.H, Hkv = plan.Hkv, L = plan.L, S = plan.S, D = plan.D, Dv = plan.Dv;
  const std::int64_t given = S - plan.extra_keys;
  const detail::Scratch::Frame frame(scratch);
  const std::size_t q_size = size_of(B * L, H * D), k_size = size_of(B * given, Hkv * D), v_size = size_of(B * given, Hkv * Dv);
  float* const q_proj = scratch.take(q_size);
  float* const k_proj = scratch.take(k_size);
  float* const v_proj = scratch.take(v_size);
  const auto target = [&](TraceName name) { return buffers.trace[static_cast<std::size_t>(name)]; };
  if (query.data == key.data && key.data == value.data && query.shape == key.shape) {
    const PackedLinear::Output outputs[] = {{&query_.packed(), q_proj}, {&key_.packed(), k_proj}, {&value_.packed(), v_proj}};
    PackedLinear::forward(outputs, query.data, B * L);
  } else {
    query_.forward(query.data, B * L, q_proj);
    key_.forward(key.data, B * given, k_proj);
    value_.forward(value.data, B * given, v_proj);
  }

  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    if (float* to = target(name)) std::copy_n(from, count, to);
  };
  copy(TraceName::q_proj, q_proj, q_size);
  copy(TraceName::k_proj, k_proj, k_size);
  copy(TraceName::v_proj, v_proj, v_size);

  const detail::SequenceRun whole{B, L};
  const std::span<const detail::SequenceRun> runs = plan.runs.empty() ? std::span(&whole, 1) : plan.runs;
  if (distance_.rotary) {
    std::size_t first = 0;
    for (const auto& [count, length] : runs) {
      const auto rotate = [&](std::size_t index, unsigned) {
        const std::size_t row = first + index, position = index % static_cast<std::size_t>(length);
        distance_.rotary->rotate(q_proj + row * size_of(H, D), static_cast<std::size_t>(H), position);
        distance_.rotary->rotate(k_proj + row * size_of(Hkv, D), static_cast<std::size_t>(Hkv), position);
      };
      const std::size_t rows = size_of(count, length);
      parallel::run(rows, parallel::workers_for(rows, static_cast<double>(rows * size_of(H + Hkv, D))), rotate);
      first += rows;
    }
  }

  const float *keys = k_proj, *values = v_proj;
  if (plan.extra_keys > 0) {
    float* const more_keys = scratch.take(size_of(B * S, Hkv * D));
    float* const more_values = scratch.take(size_of(B * S, Hkv * Dv));
    append_rows(keys, B, given, Hkv * D, bias_k_, options_.add_zero_attn, more_keys);
    append_rows(values, B, given, Hkv * Dv, bias_v_, options_.add_zero_attn, more_values);
    keys = more_keys;
    values = more_values;
  }

  // Heads are slices of the columns: (B,L,H·D) read as (B,H,L,D).
  const auto heads = []<class T>(T* data, std::int64_t rows, std::int64_t heads_count, std::int64_t width) {
    const auto row = static_cast<std::ptrdiff_t>(heads_count * width);
    return detail::Heads<T>{data, static_cast<std::ptrdiff_t>(rows) * row, static_cast<std::ptrdiff_t>(width), row};
  };
  float* const merged = options_.out_proj ? scratch.take(size_of(B * L, H * Dv)) : buffers.output;
  detail::AttentionPlan part = plan;
  part.masks.window = distance_.window;
  std::int64_t start = 0;
  for (const auto& [count, length] : runs) {
    part.B = count;
    part.L = length;
    part.S = length + S - L;  // runs have S = L
    const detail::AttentionInputs inputs{.query = heads(static_cast<const float*>(q_proj) + start * H * D, part.L, H, D),
                                         .key = heads(keys + start * Hkv * D, part.S, Hkv, D),
                                         .value = heads(values + start * Hkv * Dv, part.S, Hkv, Dv),
                                         .context = heads(merged + start * H * Dv, part.L, H, Dv),
                                         .dropout = dropout};
    detail::attention_core(part, inputs, buffers, scratch);
    start += count * length;
  }

  if (float* to = target(TraceName::context)) detail::copy_heads(heads(static_cast<const float*>(merged), L, H, Dv), B, H, L, Dv, to);
  if (patch.values != nullptr) std::copy_n(patch.values, size_of(B * L, H * Dv), merged);
  if (patch.head_mask != nullptr)
    for (std::int64_t row = 0; row < B * L; ++row)
      for (std::int64_t head = 0; head < H; ++head) {
        float* const result = merged + (row * H + head) * Dv;
        for (std::int64_t i = 0; i < Dv; ++i) result[i] *= patch.head_mask[head];
      }

  const std::size_t width = static_cast<std::size_t>(plan.output[plan.output.rank() - 1]);
  float* const kept = target(TraceName::output);
  const auto finish = [&](std::size_t row, unsigned worker) {
    if (kept != nullptr) std::copy_n(buffers.output + row * width, width, kept + row * width);
    if (finish_row != nullptr) (*finish_row)(row, worker);
  };
  const parallel::TaskRef finish_ref(finish);
  if (options_.out_proj)
    out_.forward(merged, B * L, buffers.output, &finish_ref);
  else
    for (std::size_t row = 0; row < static_cast<std::size_t>(B * L); ++row) finish(row, 0);

  copy(TraceName::merged, merged, size_of(B * L, H * Dv));
  if (float* to = target(TraceName::q)) detail::copy_heads(heads(static_cast<const float*>(q_proj), L, H, D), B, H, L, D, to);
  if (float* to = target(TraceName::k)) detail::copy_heads(heads(keys, S, Hkv, D), B, Hkv, S, D, to);
  if (float* to = target(TraceName::v)) detail::copy_heads(heads(values, S, Hkv, Dv), B, Hkv, S, Dv, to);
}

}  // namespace attn
