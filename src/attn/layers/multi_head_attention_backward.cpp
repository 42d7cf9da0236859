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

std::uint64_t MultiHeadAttention::kept_size(const detail::AttentionSizes& sizes) const {
  return std::uint64_t{size_of(sizes.B * sizes.L, H_ * (D_ + Dv_))} + size_of(sizes.B * sizes.S, Hkv_ * (D_ + Dv_));
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
  detail::CaptureBuffers places;
  keep(plan.sizes, attention, with_kept.trace, places);
  this->run(plan, query, key, value, run, with_kept, scratch);
  places.copy();
  if (!detail::counts()) share_gradients()->kept = std::move(kept);
}

float* MultiHeadAttention::place_kept(const detail::AttentionSizes& sizes, detail::KeptAttention& kept, float* to) const {
  kept.q = to;
  kept.k = kept.q + size_of(sizes.B * sizes.L, H_ * D_);
  kept.v = kept.k + size_of(sizes.B * sizes.S, Hkv_ * D_);
  kept.merged = kept.v + size_of(sizes.B * sizes.S, Hkv_ * Dv_);
  return kept.merged + size_of(sizes.B * sizes.L, H_ * Dv_);
}

void MultiHeadAttention::keep(const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, std::array<float*, kTraceNames.size()>& trace,
                              detail::CaptureBuffers& places) const {
  const auto place = [&](TraceName name) -> float*& { return trace[static_cast<std::size_t>(name)]; };
  places.keep(place(TraceName::q), kept.q, size_of(sizes.B * sizes.L, H_ * D_));
  places.keep(place(TraceName::k), kept.k, size_of(sizes.B * sizes.S, Hkv_ * D_));
  places.keep(place(TraceName::v), kept.v, size_of(sizes.B * sizes.S, Hkv_ * Dv_));
  places.keep(place(TraceName::merged), kept.merged, size_of(sizes.B * sizes.L, H_ * Dv_));
}

detail::MultiHeadAttentionBackwardPlan MultiHeadAttention::plan_backward(const TensorView& grad, const BackwardOptions& options) const {
  const Kept& kept = this->kept<Kept>(kMultiHeadAttentionBackwardOp);
  if (grad.shape != kept.output) detail::fail(ErrorCode::shape, kMultiHeadAttentionBackwardOp, "grad", {kept.output}, {grad.shape});
  detail::AttentionSpec spec = kept.call.spec;
  spec.trace = detail::available_traces(kMultiHeadAttentionBackwardOp, options.trace, Trace::of_attention(), "those of attention, q_proj to output");
  detail::MultiHeadAttentionBackwardPlan plan{.query = kept.query,
                                              .key = kept.key,
                                              .value = kept.value,
                                              .has_key_and_value = !kept.attention.is_self,
                                              .attention = {kMultiHeadAttentionBackwardOp, spec, kept.call.sizes, kept.output}};
  detail::check_memory(kMultiHeadAttentionBackwardOp, [&] {
    detail::MultiHeadAttentionGradientBuffers to{.grad_query = detail::counted(plan.query, "grad_query")};
    if (plan.has_key_and_value) to.grad_key = detail::counted(plan.key, "grad_key");
    if (plan.has_key_and_value) to.grad_value = detail::counted(plan.value, "grad_value");
    for (std::size_t i = 0; i < plan.attention.trace_shapes.size(); ++i)
      if (spec.trace.has(static_cast<TraceName>(i))) to.trace[i] = detail::counted(plan.attention.trace_shapes[i], kTraceNames[i]);
    gradients_of(plan, grad, to);
  });
  return plan;
}

void MultiHeadAttention::run_backward(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad,
                                      const detail::MultiHeadAttentionGradientBuffers& to) {
  detail::Gradients gradients = gradients_of(plan, grad, to);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

detail::Gradients MultiHeadAttention::gradients_of(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad,
                                                   const detail::MultiHeadAttentionGradientBuffers& to) const {
  const Kept& kept = this->kept<Kept>(kMultiHeadAttentionBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.staging(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  backward(plan.attention.spec, plan.attention.sizes, kept.attention, detail::without_gaps(grad, scratch), "", gradients, to, scratch);
  return gradients;
}

class MultiHeadAttention::Backward {
 public:
  Backward(const MultiHeadAttention& layer, const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const detail::KeptAttention& kept,
           const std::string& prefix, detail::Gradients& gradients, const detail::MultiHeadAttentionGradientBuffers& to, detail::Scratch& scratch)
      : layer_(layer),
        spec_(spec),
        sizes_(sizes),
        kept_(kept),
        prefix_(prefix),
        gradients_(gradients),
        to_(to),
        scratch_(scratch),
        B_(sizes.B),
        L_(sizes.L),
        S_(sizes.S),
        given_(sizes.S - spec.extra_keys),
        H_(layer.H_),
        Hkv_(layer.Hkv_),
        D_(layer.D_),
        Dv_(layer.Dv_),
        E_(layer.options_.embed_dim),
        runs_(spec.runs.empty() ? std::span(&whole_, 1) : spec.runs) {}

  void run(const float* grad) {
    const float* const of_merged = unpatch(output_backward(grad));
    heads_backward(of_merged);
    take_off_appended(k_, Hkv_ * D_, "bias_k");
    take_off_appended(v_, Hkv_ * Dv_, "bias_v");
    if (layer_.defaults_.rotary) rotate_back();
    if (!layer_.query_norm_.is_identity()) head_norms_backward();
    copy(TraceName::q_proj, q_, size_of(B_ * L_, H_ * D_));
    copy(TraceName::k_proj, k_, size_of(B_ * given_, Hkv_ * D_));
    copy(TraceName::v_proj, v_, size_of(B_ * given_, Hkv_ * Dv_));
    projections_backward();
    if (relative_ != nullptr)
      layer_.project_positions_backward(*relative_, of_position_keys_, of_position_queries_, prefix_, gradients_, to_.relative, scratch_);
  }

 private:
  static std::size_t count(std::int64_t value) { return static_cast<std::size_t>(value); }
  float* trace(TraceName name) const { return to_.trace[static_cast<std::size_t>(name)]; }
  void copy(TraceName name, const float* from, std::size_t size) const {
    if (float* const out = trace(name)) detail::copy_values(from, size, out);
  }
  void copy_heads(TraceName name, const detail::Heads<float>& from, std::int64_t heads, std::int64_t rows, std::int64_t width) const {
    if (float* const out = trace(name)) detail::copy_heads({from.data, from.batch, from.head, from.row}, B_, heads, rows, width, out);
  }

  const float* output_backward(const float* grad);
  const float* unpatch(const float* of_merged);
  void heads_backward(const float* of_merged);
  void take_off_appended(float* rows, std::int64_t width, const char* name);
  void rotate_back();
  void head_norms_backward();
  void projections_backward();

  const MultiHeadAttention& layer_;
  const detail::AttentionSpec& spec_;
  const detail::AttentionSizes& sizes_;
  const detail::KeptAttention& kept_;
  const std::string& prefix_;
  detail::Gradients& gradients_;
  const detail::MultiHeadAttentionGradientBuffers& to_;
  detail::Scratch& scratch_;
  const std::int64_t B_, L_, S_, given_, H_, Hkv_, D_, Dv_, E_;  // given: without the keys that the layer appended
  const detail::SequenceGroup whole_{B_, L_};
  const std::span<const detail::SequenceGroup> runs_;
  const detail::RelativePositions* const relative_ = kept_.position_bias.relative;
  float *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;                    // (B,L,H,D), (B,S,Hkv,D), (B,S,Hkv,Dv)
  float *of_position_keys_ = nullptr, *of_position_queries_ = nullptr;  // (count,width)
};

/// Returns grad Wₒ.
const float* MultiHeadAttention::Backward::output_backward(const float* grad) {
  const std::size_t merged_size = size_of(B_ * L_, H_ * Dv_);
  const float* of_merged = grad;
  if (layer_.options_.out_proj) {
    float* const result = scratch_.take(merged_size);
    layer_.out_.backward(grad, kept_.merged, B_ * L_, result, prefix_ + "out_proj.", gradients_, scratch_);
    of_merged = result;
  }
  copy(TraceName::output, grad, size_of(B_ * L_, layer_.options_.out_proj ? E_ : H_ * Dv_));
  copy(TraceName::merged, of_merged, merged_size);
  return of_merged;
}

/// Returns the gradient before the caller's patch and head mask.
const float* MultiHeadAttention::Backward::unpatch(const float* of_merged) {
  if (kept_.patch.values != nullptr || kept_.patch.head_mask != nullptr) {
    const std::size_t merged_size = size_of(B_ * L_, H_ * Dv_);
    float* const of_heads = scratch_.take(merged_size);
    for (std::size_t i = 0; i < merged_size && !detail::counts(); ++i) {
      const std::size_t head = i / count(Dv_) % count(H_);
      of_heads[i] = kept_.patch.values != nullptr ? 0.0F : of_merged[i] * kept_.patch.head_mask[head];
    }
    of_merged = of_heads;
  }
  if (float* const out = trace(TraceName::context)) detail::copy_heads(detail::heads_in_rows(of_merged, L_, H_, Dv_), B_, H_, L_, Dv_, out);
  return of_merged;
}

void MultiHeadAttention::Backward::heads_backward(const float* of_merged) {
  q_ = scratch_.take(size_of(B_ * L_, H_ * D_));
  k_ = scratch_.take(size_of(B_ * S_, Hkv_ * D_));
  v_ = scratch_.take(size_of(B_ * S_, Hkv_ * Dv_));
  const float* const queries = detail::heads_with_gradient(of_merged, count(Dv_), kept_.q, count(B_), count(H_), count(L_), count(D_), scratch_);
  const detail::Heads<float> of_q = detail::heads_in_rows(q_, L_, H_, D_), of_k = detail::heads_in_rows(k_, S_, Hkv_, D_),
                             of_v = detail::heads_in_rows(v_, S_, Hkv_, Dv_);
  const std::size_t relative_size = relative_ != nullptr ? size_of(relative_->count, relative_->width) : 0;
  of_position_keys_ = scratch_.take(relative_size);
  of_position_queries_ = scratch_.take(relative_size);
  detail::fill_zeros(of_position_keys_, relative_size);
  detail::fill_zeros(of_position_queries_, relative_size);
  std::int64_t start = 0;
  for (const auto& [sequences, length] : runs_) {
    detail::AttentionSizes part = sizes_;
    part.B = sequences;
    part.L = length;
    part.S = length + S_ - L_;  // runs have S = L
    detail::AttentionBackwardInputs inputs{.query = detail::heads_of(queries, H_, L_, D_),
                                           .key = detail::heads_of(static_cast<const float*>(kept_.k), Hkv_, S_, D_),
                                           .value = detail::heads_of(static_cast<const float*>(kept_.v), Hkv_, S_, Dv_),
                                           .grad = detail::heads_in_rows(of_merged, L_, H_, Dv_),
                                           .position_bias = kept_.position_bias,
                                           .dropout = kept_.dropout};
    detail::AttentionGradientHeads to_heads{.query = of_q,
                                            .key = of_k,
                                            .value = of_v,
                                            .trace = to_.trace,
                                            .relative_keys = of_position_keys_,
                                            .relative_queries = of_position_queries_,
                                            .position_bias = to_.position_bias};
    if (!spec_.runs.empty()) {
      // Each head has the rows of all runs; this run begins at row `start`.
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
    detail::attention_backward_core(spec_, part, inputs, to_heads, scratch_);
    start += sequences * length;
  }
  copy_heads(TraceName::q, of_q, H_, L_, D_);
  copy_heads(TraceName::k, of_k, Hkv_, S_, D_);
  copy_heads(TraceName::v, of_v, Hkv_, S_, Dv_);
}

/// (B,S,width) -> (B,given,width) without the keys that the layer appended; add_bias_kv learns the first of them.
void MultiHeadAttention::Backward::take_off_appended(float* rows, std::int64_t width, const char* name) {
  if (spec_.extra_keys == 0) return;
  if (float* const bias = layer_.options_.add_bias_kv ? gradients_.fill(prefix_ + name) : nullptr)
    detail::add_up_rows(
        count(B_), count(width), 0,
        [&](std::size_t b, float* sum) noexcept {
          kernels::best().add_row(sum, rows + (b * count(S_) + count(given_)) * count(width), sum, count(width));
        },
        bias, scratch_);
  for (std::int64_t b = 1; b < B_ && !detail::counts(); ++b) std::copy_n(rows + b * S_ * width, given_ * width, rows + b * given_ * width);
}

void MultiHeadAttention::Backward::rotate_back() {
  const detail::Rotary& rotary = layer_.defaults_.rotary;
  float *queries = q_, *keys = k_;
  for (const auto& [sequences, length] : runs_) {
    const std::int64_t key_count = spec_.runs.empty() ? given_ : length;
    rotary.rotate_back({queries, count(H_)}, count(sequences * length), count(length), spec_.query_offset, scratch_);
    rotary.rotate_back({keys, count(Hkv_)}, count(sequences * key_count), count(key_count), 0, scratch_);
    queries += size_of(sequences * length, H_ * D_);
    keys += size_of(sequences * key_count, Hkv_ * D_);
  }
}

void MultiHeadAttention::Backward::head_norms_backward() {
  const detail::Scratch::Frame frame(scratch_);
  float* const projected = scratch_.take(std::max(size_of(B_ * L_, H_ * D_), size_of(B_ * given_, Hkv_ * D_)));
  layer_.query_.forward(detail::Rows(kept_.query, count(B_ * L_), count(layer_.query_.in_features())), projected, scratch_);
  layer_.query_norm_.backward(q_, projected, B_ * L_ * H_, q_, prefix_ + "q_norm.", gradients_, scratch_);
  layer_.key_.forward(detail::Rows(kept_.key, count(B_ * given_), count(layer_.key_.in_features())), projected, scratch_);
  layer_.key_norm_.backward(k_, projected, B_ * given_ * Hkv_, k_, prefix_ + "k_norm.", gradients_, scratch_);
}

void MultiHeadAttention::Backward::projections_backward() {
  const bool is_self = kept_.is_self;
  float* const more = is_self ? scratch_.take(size_of(B_ * L_, E_)) : nullptr;
  const Form form = layer_.form();
  const struct {
    const char* letter;
    const detail::Linear* linear;
    const float *grad, *x;
    std::int64_t rows;
    float* grad_x;
  } projections[] = {{"q_proj", &layer_.query_, q_, kept_.query, B_ * L_, to_.grad_query},
                     {"k_proj", &layer_.key_, k_, kept_.key, B_ * given_, is_self ? more : to_.grad_key},
                     {"v_proj", &layer_.value_, v_, kept_.value, B_ * given_, is_self ? more : to_.grad_value}};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [letter, linear, of_y, x, rows, grad_x] = projections[i];
    const auto part_of = [&, part = i](float* all, std::size_t size) { return all != nullptr ? all + part * size : nullptr; };
    float* const weight = form == Form::packed ? part_of(gradients_.fill(prefix_ + "in_proj_weight"), size_of(E_, E_))
                                               : gradients_.fill(prefix_ + letter + (form == Form::split ? "_weight" : ".weight"));
    float* bias = nullptr;
    if (layer_.options_.bias)
      bias = form == Form::separate ? gradients_.fill(prefix_ + letter + ".bias") : part_of(gradients_.fill(prefix_ + "in_proj_bias"), count(E_));
    linear->backward(of_y, x, rows, {grad_x, weight, bias}, scratch_);
    if (is_self && i > 0 && !detail::counts()) kernels::best().add_row(to_.grad_query, more, to_.grad_query, size_of(B_ * L_, E_));
  }
}

void MultiHeadAttention::backward(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const detail::KeptAttention& kept,
                                  const float* grad, const std::string& prefix, detail::Gradients& gradients,
                                  const detail::MultiHeadAttentionGradientBuffers& to, detail::Scratch& scratch) const {
  const detail::FloatEnvironment environment;
  const detail::Scratch::Frame frame(scratch);
  Backward(*this, spec, sizes, kept, prefix, gradients, to, scratch).run(grad);
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
  // In checkpoints queries and keys have the same width, so there is one in_proj_weight.
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
      if (detail::counts()) return;
      if (weight != nullptr) kernel.add_row(weight + part * weight_size, of_weight, weight + part * weight_size, weight_size);
      float* const of_part = bias != nullptr ? bias + part * static_cast<std::size_t>(width) : nullptr;
      if (bias != nullptr) kernel.add_row(of_part, of_bias, of_part, static_cast<std::size_t>(width));
    }
    if (of_x == nullptr || detail::counts()) return;
    detail::drop_rows(relative.dropout, more, relative.count, 1, E);
    kernel.add_row(of_x, more, of_x, x_size);
  };
  backward(parts.c2p, key_, position_key_, "position_key.", 1, of_keys);
  backward(parts.p2c, query_, position_query_, "position_query.", 0, of_queries);
}

}  // namespace attn
