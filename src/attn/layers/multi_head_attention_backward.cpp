#include <algorithm>
#include <span>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/kept.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/layers/rows_with_gradient.hpp"
#include "attn/ops/attention_backward_core.hpp"
#include "attn/ops/linear_backward.hpp"
#include "attn/ops/row_sums.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

constexpr std::string_view kMultiHeadAttentionBackwardOp = "MultiHeadAttention";

using detail::size_of;

}  // namespace

struct MultiHeadAttention::Kept {
  Kept(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes) : call(spec, sizes) {}

  detail::KeptAttentionCall call;
  detail::KeptAttention attention = {};
  Shape query = {}, key = {}, value = {}, output = {};
  AlignedFloats numbers = {};
};

std::size_t MultiHeadAttention::kept_size(const detail::AttentionSizes& sizes) const {
  return size_of(sizes.B * sizes.L, H_ * (D_ + Dv_)) + size_of(sizes.B * sizes.S, Hkv_ * (D_ + Dv_));
}

void MultiHeadAttention::run_for_backward(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                          const Run& run, const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const {
  const bool is_self = &query == &key && &key == &value;
  const auto size = [](const TensorView& x) { return static_cast<std::size_t>(checked_size(x.shape, kMultiHeadAttentionBackwardOp, "input")); };
  auto kept = std::make_shared<Kept>(of_layer(plan.spec), plan.sizes);
  kept->query = query.shape;
  kept->key = key.shape;
  kept->value = value.shape;
  kept->output = plan.output;
  kept->numbers = AlignedFloats(size(query) + (is_self ? 0 : size(key) + size(value)) + kept_size(plan.sizes));
  float* to = kept->numbers.data();
  detail::KeptAttention& attention = kept->attention;
  attention.is_self = is_self;
  attention.query = attention.key = attention.value = to;
  to = detail::copy_rows(query, to);
  if (!is_self) {
    attention.key = to;
    attention.value = to = detail::copy_rows(key, to);
    to = detail::copy_rows(value, to);
  }
  place_kept(plan.sizes, attention, to);
  attention.dropout = run.dropout;
  detail::AttentionBuffers with_kept = buffers;
  detail::KeptPlaces places;
  keep(plan.sizes, attention, with_kept.trace, places);
  this->run(plan, query, key, value, run, with_kept, scratch);
  places.copy();
  share_gradients()->kept = std::move(kept);
}

float* MultiHeadAttention::place_kept(const detail::AttentionSizes& sizes, detail::KeptAttention& kept, float* to) const {
  kept.q = to;
  kept.k = kept.q + size_of(sizes.B * sizes.L, H_ * D_);
  kept.v = kept.k + size_of(sizes.B * sizes.S, Hkv_ * D_);
  kept.merged = kept.v + size_of(sizes.B * sizes.S, Hkv_ * Dv_);
  return kept.merged + size_of(sizes.B * sizes.L, H_ * Dv_);
}

void MultiHeadAttention::keep(const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, std::array<float*, kTraceNames.size()>& trace,
                              detail::KeptPlaces& places) const {
  const auto place = [&](TraceName name) -> float*& { return trace[static_cast<std::size_t>(name)]; };
  places.keep(place(TraceName::q), kept.q, size_of(sizes.B * sizes.L, H_ * D_));
  places.keep(place(TraceName::k), kept.k, size_of(sizes.B * sizes.S, Hkv_ * D_));
  places.keep(place(TraceName::v), kept.v, size_of(sizes.B * sizes.S, Hkv_ * Dv_));
  places.keep(place(TraceName::merged), kept.merged, size_of(sizes.B * sizes.L, H_ * Dv_));
}

void MultiHeadAttention::add_backward_memory(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, MemoryEstimate& memory) const {
  const std::int64_t widest = std::max({options_.embed_dim, key_.in_features(), value_.in_features()});
  // Gradients of the merged heads, of q, k, v and the inputs, and copies with non-finite rows zeroed.
  memory.add("gradients inside", {sizes.B, sizes.L, H_ * (2 * D_ + 2 * Dv_) + options_.embed_dim + widest});
  if (!query_norm_.is_identity()) memory.add("queries and keys before their norms", {4, std::max(sizes.B * sizes.L, sizes.B * sizes.S), H_ * D_});
  memory.add("gradients of keys and values", {sizes.B, sizes.S, Hkv_ * (D_ + Dv_) + 2 * widest});
  // A product of two arrays of rows packs one and transposes the other; a weight is packed transposed.
  memory.add("work space of products", {sizes.B, std::max(sizes.L, sizes.S), 2 * (widest + H_ * std::max(D_, Dv_) + 32)});
  memory.add("a weight, packed", {widest + 32, H_ * std::max(D_, Dv_) + 32});
  detail::add_backward_memory(spec, sizes, false, memory);
}

detail::MultiHeadAttentionBackwardPlan MultiHeadAttention::plan_backward(const TensorView& grad, const BackwardOptions& options) const {
  const Kept& kept = this->kept<Kept>(kMultiHeadAttentionBackwardOp);
  if (grad.shape != kept.output) detail::fail(ErrorCode::shape, kMultiHeadAttentionBackwardOp, "grad", {kept.output}, {grad.shape});
  detail::AttentionSpec spec = kept.call.spec;
  spec.trace = detail::available_traces(kMultiHeadAttentionBackwardOp, options.trace, Trace::of_attention(), "those of attention, q_proj to output");
  MemoryEstimate of_forward(kMultiHeadAttentionBackwardOp), memory(kMultiHeadAttentionBackwardOp);
  detail::MultiHeadAttentionBackwardPlan plan{.query = kept.query,
                                              .key = kept.key,
                                              .value = kept.value,
                                              .has_key_and_value = !kept.attention.is_self,
                                              .attention = {kMultiHeadAttentionBackwardOp, spec, kept.call.sizes, kept.output, of_forward}};
  memory.add("grad_query", plan.query);
  if (plan.has_key_and_value) memory.add("grad_key", plan.key);
  if (plan.has_key_and_value) memory.add("grad_value", plan.value);
  for (std::size_t i = 0; i < plan.attention.trace_shapes.size(); ++i)
    if (spec.trace.has(static_cast<TraceName>(i))) memory.add(kTraceNames[i], plan.attention.trace_shapes[i]);
  for (const auto& [name, shape] : parameter_shapes()) memory.add(name, shape);
  add_backward_memory(spec, kept.call.sizes, memory);
  memory.check();
  return plan;
}

void MultiHeadAttention::run_backward(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad,
                                      const detail::MultiHeadAttentionGradientBuffers& to) {
  const Kept& kept = this->kept<Kept>(kMultiHeadAttentionBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.room(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  backward(plan.attention.spec, plan.attention.sizes, kept.attention, detail::without_gaps(grad, scratch), "", gradients, to, scratch);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

void MultiHeadAttention::backward(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const detail::KeptAttention& kept,
                                  const float* grad, const std::string& prefix, detail::Gradients& gradients,
                                  const detail::MultiHeadAttentionGradientBuffers& to, detail::Scratch& scratch) const {
  const detail::FloatEnvironment environment;
  const std::int64_t B = sizes.B, H = H_, Hkv = Hkv_, L = sizes.L, S = sizes.S, D = D_, Dv = Dv_, E = options_.embed_dim;
  const std::int64_t given = S - spec.extra_keys;
  const detail::Scratch::Frame frame(scratch);
  const auto trace = [&](TraceName name) { return to.trace[static_cast<std::size_t>(name)]; };
  const auto copy = [&](TraceName name, const float* from, std::size_t count) {
    if (float* out = trace(name)) std::copy_n(from, count, out);
  };

  // W_O
  const std::size_t merged_size = size_of(B * L, H * Dv);
  const float* of_merged = grad;
  if (options_.out_proj) {
    float* const result = scratch.take(merged_size);
    out_.backward(grad, kept.merged, B * L, result, prefix + "out_proj.", gradients, scratch);
    of_merged = result;
  }
  copy(TraceName::output, grad, size_of(B * L, options_.out_proj ? E : H * Dv));
  copy(TraceName::merged, of_merged, merged_size);
  if (kept.patch.values != nullptr || kept.patch.head_mask != nullptr) {
    float* const of_heads = scratch.take(merged_size);
    for (std::size_t i = 0; i < merged_size; ++i) {
      const std::size_t head = i / static_cast<std::size_t>(Dv) % static_cast<std::size_t>(H);
      of_heads[i] = kept.patch.values != nullptr ? 0.0F : of_merged[i] * kept.patch.head_mask[head];
    }
    of_merged = of_heads;
  }
  const detail::Heads<const float> of_context = detail::heads_in_rows(of_merged, L, H, Dv);
  if (float* out = trace(TraceName::context)) detail::copy_heads(of_context, B, H, L, Dv, out);

  // Heads
  float* const q = scratch.take(size_of(B * L, H * D));
  float* const k = scratch.take(size_of(B * S, Hkv * D));
  float* const v = scratch.take(size_of(B * S, Hkv * Dv));
  const auto count = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const float* const queries = detail::heads_with_gradient(of_merged, count(Dv), kept.q, count(B), count(H), count(L), count(D), scratch);
  const detail::Heads<float> of_q = detail::heads_in_rows(q, L, H, D), of_k = detail::heads_in_rows(k, S, Hkv, D),
                             of_v = detail::heads_in_rows(v, S, Hkv, Dv);
  const detail::RelativePositions* const relative = kept.position_bias.relative;
  const std::size_t relative_size = relative != nullptr ? size_of(relative->count, relative->width) : 0;
  float* const of_position_keys = scratch.take(relative_size);
  float* const of_position_queries = scratch.take(relative_size);
  std::fill_n(of_position_keys, relative_size, 0.0F);
  std::fill_n(of_position_queries, relative_size, 0.0F);
  const detail::SequenceRun whole{B, L};
  const std::span<const detail::SequenceRun> runs = spec.runs.empty() ? std::span(&whole, 1) : spec.runs;
  std::int64_t start = 0;
  for (const auto& [sequences, length] : runs) {
    detail::AttentionSizes part = sizes;
    part.B = sequences;
    part.L = length;
    part.S = length + S - L;  // runs have S = L
    detail::AttentionBackwardInputs inputs{.query = detail::heads_of(queries, H, L, D),
                                           .key = detail::heads_of(static_cast<const float*>(kept.k), Hkv, S, D),
                                           .value = detail::heads_of(static_cast<const float*>(kept.v), Hkv, S, Dv),
                                           .grad = of_context,
                                           .position_bias = kept.position_bias,
                                           .dropout = kept.dropout};
    detail::AttentionGradientHeads to_heads{.query = of_q,
                                            .key = of_k,
                                            .value = of_v,
                                            .trace = to.trace,
                                            .relative_keys = of_position_keys,
                                            .relative_queries = of_position_queries,
                                            .position_bias = to.position_bias};
    if (!spec.runs.empty()) {
      // There is one batch, so each head has the rows of all runs; those of this run begin at row `start`.
      const auto from = [&](const auto& heads, std::int64_t rows) {
        auto moved = heads;
        moved.data += start * heads.row;
        moved.batch = static_cast<std::ptrdiff_t>(rows) * heads.row;
        return moved;
      };
      inputs.query = from(inputs.query, part.L);
      inputs.key = from(inputs.key, part.S);
      inputs.value = from(inputs.value, part.S);
      inputs.grad = from(inputs.grad, part.L);
      to_heads.query = from(of_q, part.L);
      to_heads.key = from(of_k, part.S);
      to_heads.value = from(of_v, part.S);
    }
    detail::attention_backward_core(spec, part, inputs, to_heads, scratch);
    start += sequences * length;
  }
  const auto copy_heads = [&](TraceName name, const detail::Heads<float>& from, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    if (float* out = trace(name)) detail::copy_heads({from.data, from.batch, from.head, from.row}, B, heads, rows, width, out);
  };
  copy_heads(TraceName::q, of_q, H, L, D);
  copy_heads(TraceName::k, of_k, Hkv, S, D);
  copy_heads(TraceName::v, of_v, Hkv, S, Dv);

  // Keys that the layer appended
  const auto take_off = [&](float* rows, std::int64_t width, const char* name) {
    if (spec.extra_keys == 0) return;
    if (float* const bias = options_.add_bias_kv ? gradients.fill(prefix + name) : nullptr)
      detail::add_up_rows(
          count(B), count(width), 0,
          [&](std::size_t b, float* sum) noexcept {
            kernels::best().add_row(sum, rows + (b * count(S) + count(given)) * count(width), sum, count(width));
          },
          bias, scratch);
    for (std::int64_t b = 1; b < B; ++b) std::copy_n(rows + b * S * width, given * width, rows + b * given * width);
  };
  take_off(k, Hkv * D, "bias_k");
  take_off(v, Hkv * Dv, "bias_v");
  if (defaults_.rotary) {
    float *queries_of_run = q, *keys_of_run = k;
    for (const auto& [sequences, length] : runs) {
      const std::int64_t keys = spec.runs.empty() ? given : length;
      defaults_.rotary.rotate_back({queries_of_run, count(H)}, count(sequences * length), count(length), spec.query_offset, scratch);
      defaults_.rotary.rotate_back({keys_of_run, count(Hkv)}, count(sequences * keys), count(keys), 0, scratch);
      queries_of_run += size_of(sequences * length, H * D);
      keys_of_run += size_of(sequences * keys, Hkv * D);
    }
  }
  if (!query_norm_.is_identity()) {
    const detail::Scratch::Frame of_norms(scratch);
    float* const projected = scratch.take(std::max(size_of(B * L, H * D), size_of(B * given, Hkv * D)));
    query_.forward(detail::Rows(kept.query, count(B * L), count(query_.in_features())), projected, scratch);
    query_norm_.backward(q, projected, B * L * H, q, prefix + "q_norm.", gradients, scratch);
    key_.forward(detail::Rows(kept.key, count(B * given), count(key_.in_features())), projected, scratch);
    key_norm_.backward(k, projected, B * given * Hkv, k, prefix + "k_norm.", gradients, scratch);
  }
  copy(TraceName::q_proj, q, size_of(B * L, H * D));
  copy(TraceName::k_proj, k, size_of(B * given, Hkv * D));
  copy(TraceName::v_proj, v, size_of(B * given, Hkv * Dv));

  // W_Q, W_K, W_V, under the names that they have in the state
  const bool is_self = kept.is_self;
  float* const more = is_self ? scratch.take(size_of(B * L, E)) : nullptr;
  const Form form = this->form();
  const struct {
    const char* letter;
    const detail::Linear* linear;
    const float *grad, *x;
    std::int64_t rows;
    float* grad_x;
  } projections[] = {{"q_proj", &query_, q, kept.query, B * L, to.grad_query},
                     {"k_proj", &key_, k, kept.key, B * given, is_self ? more : to.grad_key},
                     {"v_proj", &value_, v, kept.value, B * given, is_self ? more : to.grad_value}};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [letter, linear, of_y, x, rows, grad_x] = projections[i];
    const auto part_of = [&, part = i](float* all, std::size_t size) { return all != nullptr ? all + part * size : nullptr; };
    float* const weight = form == Form::packed ? part_of(gradients.fill(prefix + "in_proj_weight"), size_of(E, E))
                                               : gradients.fill(prefix + letter + (form == Form::split ? "_weight" : ".weight"));
    float* bias = nullptr;
    if (options_.bias)
      bias = form == Form::separate ? gradients.fill(prefix + letter + ".bias") : part_of(gradients.fill(prefix + "in_proj_bias"), count(E));
    linear->backward(of_y, x, rows, {grad_x, weight, bias}, scratch);
    if (is_self && i > 0) kernels::best().add_row(to.grad_query, more, to.grad_query, size_of(B * L, E));
  }
  if (relative != nullptr) project_positions_backward(*relative, of_position_keys, of_position_queries, prefix, gradients, to.relative, scratch);
}

void MultiHeadAttention::project_positions_backward(const detail::RelativePositions& relative, const float* of_keys, const float* of_queries,
                                                    const std::string& prefix, detail::Gradients& gradients, float* of_x,
                                                    detail::Scratch& scratch) const {
  const detail::FloatEnvironment environment;
  const detail::Disentangled& parts = defaults_.disentangled;
  const detail::Scratch::Frame frame(scratch);
  const std::int64_t E = options_.embed_dim, width = H_ * D_;
  const std::size_t x_size = size_of(relative.count, E), weight_size = size_of(width, E);
  float* const more = of_x != nullptr ? scratch.take(x_size) : nullptr;
  float* const of_weight = scratch.take(weight_size);
  float* const of_bias = scratch.take(size_of(width, 1));
  const kernels::KernelTable& kernel = kernels::best();
  // In checkpoints queries and keys have the same width, so the three projections are one in_proj_weight.
  const auto backward = [&](bool is_there, const detail::Linear& shared, const detail::Linear& own, const char* name, std::size_t part,
                            const float* grad) {
    if (!is_there) return;
    if (!parts.shares_projections) {
      own.backward(grad, relative.x, relative.count, more, prefix + name, gradients, scratch);
    } else {
      float* const weight = gradients.fill(prefix + "in_proj_weight");
      float* const bias = gradients.fill(prefix + "in_proj_bias");
      shared.backward(grad, relative.x, relative.count, {more, weight != nullptr ? of_weight : nullptr, bias != nullptr ? of_bias : nullptr},
                      scratch);
      if (weight != nullptr) kernel.add_row(weight + part * weight_size, of_weight, weight + part * weight_size, weight_size);
      float* const of_part = bias != nullptr ? bias + part * static_cast<std::size_t>(width) : nullptr;
      if (bias != nullptr) kernel.add_row(of_part, of_bias, of_part, static_cast<std::size_t>(width));
    }
    if (of_x == nullptr) return;
    detail::drop_rows(relative.dropout, more, relative.count, 1, E);
    kernel.add_row(of_x, more, of_x, x_size);
  };
  backward(parts.c2p, key_, position_key_, "position_key.", 1, of_keys);
  backward(parts.p2c, query_, position_query_, "position_query.", 0, of_queries);
}

}  // namespace attn
