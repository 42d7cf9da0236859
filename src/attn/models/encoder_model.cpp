#include "attn/models/encoder_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/embedding.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/ops/positions.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

using detail::size_of;

constexpr std::string_view kModelOp = "TextModel";

TransformerEncoderOptions encoder_options(const detail::ModelConfig& config) {
  return {.d_model = config.hidden_size,
          .nhead = config.num_attention_heads,
          .dim_feedforward = config.intermediate_size,
          .dropout = 0,
          .activation = config.hidden_act,
          .layer_norm_eps = config.layer_norm_eps,
          .norm_first = config.norm_first,
          .gated = config.gated,
          .num_layers = config.stored_layers(),
          .final_norm = config.norm_first};
}

/// Options that change what is computed, against the shapes that they must have.
detail::EncoderPatch check_patch(std::string_view op, const detail::ModelForwardOptions& options, const detail::EncoderPlan& plan) {
  const auto data = [&](const char* name, const std::optional<TensorView>& given, const Shape& expected) -> const float* {
    if (!given) return nullptr;
    if (given->shape != expected) detail::fail(ErrorCode::shape, op, name, {expected}, {given->shape});
    return given->data;
  };
  detail::EncoderPatch patch{.head_mask = data("head_mask", options.head_mask, {plan.layers, plan.attention.spec.num_heads})};
  if (!options.patched_layer) return patch;
  patch.layer = *options.patched_layer;
  if (patch.layer < 0 || patch.layer >= plan.layers)
    detail::fail(ErrorCode::out_of_range, op, "patch.layer", {"a layer from 0 to ", plan.layers - 1}, {patch.layer});
  patch.hidden_state = data("patch.hidden_state", options.hidden_state, plan.output);
  patch.merged = data("patch.merged", options.merged, plan.output);
  return patch;
}

/// Inputs without the padding at the end of each sequence, whose rows nobody sees; those given where padding is elsewhere.
struct Unpadded {
  detail::ModelInputs inputs;
  std::vector<detail::SequenceRun> runs;
  std::vector<std::int64_t> ids, types;

  explicit Unpadded(const detail::ModelInputs& given) : inputs(given) {
    const MaskView* const mask = given.attention_mask;
    if (mask == nullptr || mask->kind == MaskKind::additive) return;
    const std::int64_t B = given.shape[0], L = given.shape[1];
    for (std::int64_t b = 0; b < B; ++b) {
      std::int64_t kept = 0, length = 0;
      for (std::int64_t i = 0; i < L; ++i)
        if (detail::keeps(mask, b, i)) ++kept, length = i + 1;
      if (kept < length) return;
      if (runs.empty() || runs.back().length != length) runs.push_back({0, length});
      ++runs.back().count;
      const auto append = [&](std::span<const std::int64_t> from, std::vector<std::int64_t>& to) {
        const auto row = from.subspan(static_cast<std::size_t>(b * L), static_cast<std::size_t>(length));
        to.insert(to.end(), row.begin(), row.end());
      };
      append(given.input_ids, ids);
      if (!given.token_type_ids.empty()) append(given.token_type_ids, types);
    }
    if (runs.empty()) return;
    inputs = {.shape = {1, static_cast<std::int64_t>(ids.size())}, .input_ids = ids, .token_type_ids = types, .runs = runs};
  }
  Unpadded(const Unpadded&) = delete;  // inputs refers to ids
  Unpadded& operator=(const Unpadded&) = delete;
};

/// Of the embeddings of relative positions, each row as a sequence of its own. Training alone has it.
[[maybe_unused]] detail::Dropout position_dropout(const detail::ForwardRandom& random, std::size_t layer) {
  return detail::dropout_at(random, 0, detail::DropoutSite::relative_positions, static_cast<std::uint32_t>(layer));
}

}  // namespace

/// T5's buckets by key - query (Raffel et al. 2020), as MPNet calls them: half of them for keys after the query, the first 8 of a half for
/// one distance each, then twice as far with every second one, up to 128.
std::size_t detail::bucket_of(std::int64_t distance) {
  constexpr std::int64_t kFirst[] = {8, 12, 16, 23, 32, 46, 64, 91};  // 8 · 2^(i/2), rounded up
  const std::int64_t size = std::abs(distance);
  std::size_t bucket = static_cast<std::size_t>(std::min<std::int64_t>(size, 7));
  for (const std::int64_t first : kFirst)
    if (size >= first) ++bucket;
  return distance > 0 ? bucket + 16 : bucket;
}

std::vector<detail::SequenceRun> detail::runs_of(const ModelInputs& inputs) {
  if (inputs.runs.empty()) return {{inputs.shape[0], inputs.shape[1]}};
  return {inputs.runs.begin(), inputs.runs.end()};
}

void detail::pool_sequences(const ModelInputs& inputs, std::int64_t E, const float* hidden, Pooling pooling, float* pooled, std::int64_t stride,
                            std::int64_t first) {
  for (const auto& [count, length] : runs_of(inputs)) {
    pool(hidden, count, length, E, pooling, inputs.attention_mask, FullyMasked::zero, pooled, stride, first);
    clear_empty(inputs.attention_mask, count, length, E, pooled, stride);
    hidden += count * length * E;
    pooled += count * stride;
  }
}

EncoderModel::EncoderModel(detail::ModelConfig config)
    : config_(std::move(config)),
      words_(detail::Uninitialized{}, {.num_embeddings = config_.vocab_size, .embedding_dim = config_.word_width()}),
      embedding_norm_(NormKind::layer_norm, config_.word_width(), true, config_.layer_norm_eps),
      encoder_(detail::Uninitialized{}, kModelOp, encoder_options(config_)) {
  const std::int64_t W = config_.word_width();
  const auto width = static_cast<std::size_t>(W);
  if (config_.positions != detail::PositionRows::none) positions_ = {static_cast<std::size_t>(config_.max_position_embeddings), width};
  if (config_.type_vocab_size > 0) token_types_ = {static_cast<std::size_t>(config_.type_vocab_size), width};
  if (config_.task_type_vocab_size > 0) task_types_ = {static_cast<std::size_t>(config_.task_type_vocab_size), width};
  if (config_.embedding_projection) embedding_projection_ = detail::Linear(W, config_.hidden_size, true);
  if (config_.norm_first) encoder_.leave_out_norm1(0);
  const detail::RelativeConfig& relative = config_.relative;
  if (relative.span > 0) relative_ = {static_cast<std::size_t>(relative.rows()), static_cast<std::size_t>(config_.hidden_size)};
  if (relative.has_norm) relative_norm_ = {NormKind::layer_norm, config_.hidden_size, true, config_.layer_norm_eps};
  for (std::size_t layer = 0; layer < encoder_.layers_.size() && config_.clears_padding; ++layer)
    encoder_.set_attention_defaults(
        layer, {.disentangled = {relative.c2p, relative.p2c, relative.shares_projections, relative.scale_factor}, .queries_are_padded = true});
  if (config_.hidden_groups > 0)
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) encoder_.add_use(static_cast<std::size_t>(config_.stored_layer(i)));
  if (config_.has_head()) head_ = detail::Head(config_);
}

void EncoderModel::leave_out_head() {
  config_.task = Task::embedding;
  head_ = {};
}

detail::Parameters EncoderModel::parameters() {
  relative_layers_.reset();  // who asks for them may change them
  const std::int64_t W = config_.word_width();
  detail::Parameters all;
  words_.add_parameters("word_embeddings.", all);
  if (!positions_.empty()) all.emplace("position_embeddings.weight", detail::Parameter({config_.max_position_embeddings, W}, &positions_));
  if (!token_types_.empty()) all.emplace("token_type_embeddings.weight", detail::Parameter({config_.type_vocab_size, W}, &token_types_));
  if (!task_types_.empty()) all.emplace("task_type_embeddings.weight", detail::Parameter({config_.task_type_vocab_size, W}, &task_types_));
  if (config_.position_buckets > 0)
    all.emplace("position_bias.weight", detail::Parameter({config_.position_buckets, config_.num_attention_heads}, &position_bias_));
  if (!relative_.empty()) all.emplace("relative_embeddings.weight", detail::Parameter({config_.relative.rows(), config_.hidden_size}, &relative_));
  if (config_.relative.has_norm) relative_norm_.add_parameters("relative_norm.", all);
  embedding_norm_.add_parameters("embedding_norm.", all);
  if (embedding_projection_) embedding_projection_->add_parameters("embedding_projection.", all);
  encoder_.add_parameters("encoder.", all);
  if (config_.has_head()) head_.add_parameters(all);
  return all;
}

void EncoderModel::quantize(bool words) {
  is_quantized_ = true;
  if (words) words_.make_int8();
  embedding_norm_.make_int8();
  relative_norm_.make_int8();
  if (embedding_projection_) embedding_projection_->make_int8();
  encoder_.make_int8();
  if (embedding_dense_) embedding_dense_->make_int8();
  head_.make_int8();
}

void EncoderModel::allocate() {
  for (const auto& [name, parameter] : parameters()) parameter.allocate();
  const std::int64_t width = config_.hidden_size / config_.num_attention_heads;
  std::map<double, std::shared_ptr<const detail::RotaryTable>> tables;
  for (std::size_t layer = 0; layer < config_.distances.size(); ++layer) {
    const auto& [theta, window] = config_.distances[layer];  // as far to the left as to the right
    auto& table = tables[theta];
    if (!table)
      table = std::make_shared<const detail::RotaryTable>(theta, config_.rope_factor, config_.max_position_embeddings,
                                                          config_.rotary_width > 0 ? config_.rotary_width : width, width);
    encoder_.set_attention_defaults(layer, {.window = {window, window}, .rotary = detail::Rotary(table)});
  }
}

detail::ModelPlan EncoderModel::plan(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const {
  const Shape& shape = inputs.shape;
  if (shape.rank() != 2) detail::fail(ErrorCode::shape, op, "input_ids", {"(B,L)"}, {shape});
  const std::vector<detail::SequenceRun> runs = detail::runs_of(inputs);
  std::int64_t sequences = 0, longest = 0;
  for (const detail::SequenceRun& run : runs) {
    sequences += run.count;
    longest = std::max(longest, run.length);
  }
  if (longest > config_.max_length)
    detail::fail(ErrorCode::out_of_range, op, "the length of input_ids", {"at most ", config_.max_length, " positions"}, {longest});
  const auto check_ids = [&](const char* name, std::span<const std::int64_t> ids, std::int64_t rows) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || ids[i] >= rows)
        detail::fail(ErrorCode::out_of_range, op, detail::text({name, "[", i, "]"}), {"an id from 0 to ", rows - 1}, {ids[i]},
                     {{"index", static_cast<double>(i)}});
  };
  check_ids("input_ids", inputs.input_ids, config_.vocab_size);
  if (!inputs.token_type_ids.empty() && inputs.token_type_ids.size() != inputs.input_ids.size())
    detail::fail(ErrorCode::shape, op, "token_type_ids", {shape}, {inputs.token_type_ids.size(), " numbers"});
  if (config_.type_vocab_size > 0) check_ids("token_type_ids", inputs.token_type_ids, config_.type_vocab_size);

  MemoryEstimate memory(op);
  EncoderForwardOptions forward{.mask = options.mask,
                                .is_causal = options.is_causal,
                                // Padding whose window holds nothing but padding, as transformers has it; nobody looks at it.
                                .fully_masked = FullyMasked::uniform,
                                .output_attentions = options.output_attentions,
                                .output_hidden_states = options.output_hidden_states,
                                .trace = options.trace};
  if (inputs.attention_mask != nullptr) forward.key_padding_mask = *inputs.attention_mask;
  const TensorView x{nullptr, {shape[0], shape[1], config_.hidden_size}};
  detail::ModelPlan plan{.encoder = encoder_.plan(op, x, forward, inputs.runs, memory), .sequences = sequences};
  plan.encoder.patch = check_patch(op, options, plan.encoder);
  memory.add("embeddings", plan.encoder.output);
  if (embedding_projection_) memory.add("embeddings of their own width", {shape[0], shape[1], config_.word_width()});
  if (config_.relative.span > 0) {
    const std::int64_t rows = config_.relative.rows();
    memory.add("keys and queries of positions", {2 * config_.num_hidden_layers, rows, config_.hidden_size});
    memory.add("what they are made of", {2, rows + 2 * longest, config_.hidden_size});
  }
  if (config_.position_buckets > 0 || config_.alibi) memory.add("the position bias", {config_.num_attention_heads, 3, longest + 1});
  if (config_.has_head() && options.logits) {
    plan.logits = config_.of_tokens() ? Shape{shape[0], shape[1], config_.outputs()} : Shape{sequences, config_.outputs()};
    memory.add("logits", plan.logits);
    memory.add("what the head works with", {2, config_.of_tokens() ? shape[0] * shape[1] : sequences, config_.hidden_size});
  }
  if constexpr (detail::kHasGradients)
    if (options.for_backward) {
      encoder_.layers_.front().add_kept_memory(plan.encoder, memory);
      memory.add("embeddings for backward", plan.encoder.output);
      if (config_.relative.span > 0)
        memory.add("positions for backward", {5 + 3 * config_.num_hidden_layers, config_.relative.rows(), config_.hidden_size});
      memory.add("results for backward", {sequences, 2 * config_.hidden_size + std::max(result_size(true), result_size(false))});
    }
  memory.check();
  return plan;
}

void EncoderModel::position_rows(std::span<const std::int64_t> ids, std::int64_t* rows) const {
  std::int64_t last = config_.padding_idx;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (config_.positions == detail::PositionRows::counted)
      rows[i] = static_cast<std::int64_t>(i);
    else
      rows[i] = ids[i] == config_.padding_idx ? config_.padding_idx : ++last;
  }
}

std::vector<detail::EmbeddingRows> EncoderModel::embedding_rows(const detail::ModelInputs& inputs, std::vector<std::int64_t>& positions) const {
  positions.resize(positions_.empty() ? 0 : inputs.input_ids.size());
  std::size_t row = 0;
  for (const auto& [sequences, length] : detail::runs_of(inputs))
    for (std::int64_t i = 0; i < sequences && !positions.empty(); ++i, row += static_cast<std::size_t>(length))
      position_rows(inputs.input_ids.subspan(row, static_cast<std::size_t>(length)), positions.data() + row);
  std::vector<detail::EmbeddingRows> tables{{&words_.table(), inputs.input_ids}};
  if (!token_types_.empty()) tables.push_back({&token_types_, inputs.token_type_ids});
  if (!task_types_.empty()) tables.push_back({&task_types_, {}});
  if (!positions_.empty()) tables.push_back({&positions_, positions});
  return tables;
}

void EncoderModel::embed_ids(const detail::ModelInputs& inputs, float* x, detail::Scratch& scratch) const {
  const auto W = static_cast<std::size_t>(config_.word_width());
  const std::size_t count = inputs.input_ids.size();
  const detail::Scratch::Frame frame(scratch);
  float* const sums = embedding_projection_ ? scratch.take(count * W) : x;
  std::vector<std::int64_t> positions;
  const auto norm = [&](std::size_t i, unsigned) noexcept { embedding_norm_.forward_row(sums + i * W, sums + i * W); };
  detail::sum_embeddings(embedding_rows(inputs, positions), count, W, sums, norm);
  if (embedding_projection_) embedding_projection_->forward(sums, static_cast<std::int64_t>(count), x, scratch);
  clear_padding(inputs, x);
}

void EncoderModel::clear_padding(const detail::ModelInputs& inputs, float* x) const {
  if (!config_.clears_padding || inputs.attention_mask == nullptr) return;
  const std::int64_t L = inputs.shape[1], E = config_.hidden_size;
  for (std::int64_t row = 0; row < inputs.shape[0] * L; ++row)
    if (!detail::keeps(inputs.attention_mask, row / L, row % L)) std::fill_n(x + row * E, E, 0.0F);
}

std::size_t EncoderModel::packed_positions() const {
  return kernels::packed_size(kernels::best(is_quantized_).nr, relative_.rows(), relative_.width());
}

void EncoderModel::add_relative_layers(detail::ScorePositions& positions, detail::Scratch& scratch, const detail::ForwardRandom* random) const {
  const bool keeps = detail::kHasGradients && random != nullptr;
  if (!keeps) positions.layers = relative_layers_.get();
  if (positions.layers != nullptr) return;
  const detail::Scratch::Frame frame(scratch);
  const std::int64_t rows = config_.relative.rows();
  const std::size_t size = relative_.size(), packed = packed_positions();
  float* const normed = scratch.take(size);
  relative_.get(normed);
  relative_norm_.forward(normed, rows, normed);
  auto layers = std::make_unique<detail::RelativeLayers>();
  float* const more = keeps ? nullptr : scratch.take(size);
  for (const TransformerEncoderLayer& layer : encoder_.layers_) {
    float* const keys = layers->emplace_back(packed + (keeps ? 3 : 1) * size).data();
    float* const queries = keys + packed;
    float* x = normed;
    if constexpr (detail::kHasGradients)
      if (keeps) {
        x = queries + 2 * size;
        std::copy_n(normed, size, x);
        detail::drop_rows(position_dropout(*random, layers->size() - 1), x, rows, 1, config_.hidden_size);
      }
    layer.self_attn_.project_positions(x, rows, keys, queries, keeps ? queries + size : more, scratch);
  }
  if (keeps)
    positions.layers = (positions.own_layers = std::move(layers)).get();
  else
    positions.layers = relative_layers_.publish(std::move(layers));
}

detail::ScorePositions EncoderModel::score_positions(const detail::ModelInputs& inputs, detail::Scratch& scratch,
                                                     const detail::ForwardRandom* random) const {
  const detail::FloatEnvironment environment;
  const bool by_distance = config_.position_buckets > 0 || config_.alibi;
  if (!by_distance && !(config_.relative.c2p || config_.relative.p2c)) return {};
  std::int64_t longest = 0;
  for (const detail::SequenceRun& run : detail::runs_of(inputs)) longest = std::max(longest, run.length);
  if (longest == 0) return {};
  if (!by_distance) {
    const detail::RelativeConfig& relative = config_.relative;
    const std::size_t size = relative_.size();
    detail::ScorePositions positions;
    add_relative_layers(positions, scratch, random);
    for (std::int64_t distance = 1 - longest; distance < longest; ++distance)
      positions.rows.push_back(static_cast<std::int32_t>(relative.row(distance)));
    for (const AlignedFloats& numbers : *positions.layers) {
      const float *const keys = numbers.data(), *const queries = keys + packed_positions();
      positions.relative.push_back({.key_panels = relative.c2p ? keys : nullptr,
                                    .queries = relative.p2c ? queries : nullptr,
                                    .width = config_.hidden_size,
                                    .rows = positions.rows.data() + longest - 1,
                                    .count = relative.rows(),
                                    .x = random != nullptr ? queries + 2 * size : nullptr,
                                    .keys = relative.c2p && random != nullptr ? queries + size : nullptr});
    }
    if constexpr (detail::kHasGradients)
      for (std::size_t layer = 0; layer < positions.relative.size() && random != nullptr; ++layer)
        positions.relative[layer].dropout = position_dropout(*random, layer);
    positions.bias.relative = positions.relative.data();
    return positions;
  }
  const auto heads = static_cast<std::size_t>(config_.num_attention_heads);
  float* const bias = scratch.take(heads * 2 * static_cast<std::size_t>(longest));
  const auto row = static_cast<std::size_t>(longest + 1);
  float* const slopes = config_.alibi ? scratch.take(heads * row) : nullptr;
  if (slopes != nullptr) detail::alibi_bias(config_.num_attention_heads, 1, longest + 1, slopes);
  float* to = bias;
  for (std::size_t head = 0; head < heads; ++head)
    for (std::int64_t distance = -longest; distance < longest; ++distance)
      *to++ = slopes != nullptr ? slopes[head * row + static_cast<std::size_t>(std::abs(distance))]
                                : position_bias_[detail::bucket_of(distance) * heads + head];
  return {.bias = {bias + longest, 2 * longest}};
}

void EncoderModel::run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits) const {
  detail::Scratch scratch(&workspace_);
  run(plan, inputs, buffers, logits, scratch);
}

void EncoderModel::run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits,
                       detail::Scratch& scratch) const {
  const std::int64_t E = plan.encoder.E;
  float* const x = scratch.take(size_of(plan.encoder.B * plan.encoder.L, E));
  embed_ids(inputs, x, scratch);
  encoder_.run(plan.encoder, {x, plan.encoder.output}, {}, score_positions(inputs, scratch).bias, buffers);

  if (!config_.has_head() || logits == nullptr) return;
  if (config_.of_tokens()) return head_.forward(buffers.output, plan.encoder.B * plan.encoder.L, words_.table(), logits, scratch);
  const std::int64_t B = plan.logits[0];
  float* const pooled = scratch.take(size_of(B, E));
  detail::pool_sequences(inputs, E, buffers.output, config_.classifier_pooling, pooled, E);
  head_.forward(pooled, B, words_.table(), logits, scratch);
}

std::map<std::string, Shape> EncoderModel::parameter_shapes() const {
  std::map<std::string, Shape> shapes;
  for (const detail::CheckpointTensor& tensor : tensors_) shapes.emplace(tensor.name, tensor.shape());
  return shapes;
}

void EncoderModel::save_state(const StateTarget& target) const {
  for (const detail::CheckpointTensor& tensor : tensors_)
    if (const auto found = target.find(tensor.name); found != target.end()) tensor.get(found->second.values);
}

void EncoderModel::load_state(const StateView& state, bool strict) {
  constexpr std::string_view kLoad = "load_state_dict";
  detail::check_state_dict(kLoad, parameter_shapes(), state, strict);
  std::vector<std::pair<const detail::CheckpointTensor*, std::span<const float>>> given;
  for (const detail::CheckpointTensor& tensor : tensors_)
    if (const auto found = state.find(tensor.name); found != state.end())
      given.emplace_back(&tensor, std::span(found->second.data, static_cast<std::size_t>(checked_size(found->second.shape, kLoad, tensor.name))));
  for (const auto& [tensor, values] : given)
    if (tensor->is_quantized()) tensor->check_finite(kLoad, values);
  relative_layers_.reset();
  for (const auto& [tensor, values] : given) tensor->set_rows(0, values);
}

std::int64_t EncoderModel::result_size(bool of_head) const {
  return of_head ? config_.outputs() : static_cast<std::int64_t>(config_.poolings.size()) * config_.hidden_size;
}

EncoderTraceOptions EncoderModel::trace_of(std::string_view op, std::int64_t layer, Trace names) const {
  const std::int64_t layers = config_.num_hidden_layers;
  if (layer < 0 || layer >= layers) detail::fail(ErrorCode::out_of_range, op, "layer", {"a layer from 0 to ", layers - 1}, {layer});
  return {.layers = std::vector<std::int64_t>{layer}, .names = names};
}

std::int64_t EncoderModel::embedding_size(std::string_view op, const detail::ModelEmbedOptions& options) const {
  const auto count = static_cast<std::int64_t>(options.poolings.size());
  for (const Pooling pooling : options.poolings)
    if (pooling == Pooling::none)
      detail::fail(ErrorCode::config, op, "pooling", {"mean, cls, max, lasttoken, weightedmean or mean_sqrt_len"}, {"none"});
  if (config_.dense && config_.dense->in_features != count * config_.hidden_size)
    detail::fail(ErrorCode::config, op, "pooling", {config_.dense->in_features, " numbers, as the checkpoint's Dense takes"},
                 {count * config_.hidden_size, " numbers"}, "Leave pooling out");
  return config_.embedding_size(options.poolings.size());
}

Shape EncoderModel::check_embed(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options) const {
  const std::int64_t width = embedding_size(op, options);
  return {plan(op, inputs, {.logits = false}).encoder.B, width};
}

void EncoderModel::embed(const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options, float* y) const {
  const detail::FloatEnvironment environment;
  const Unpadded unpadded(inputs);
  const detail::ModelPlan plan = this->plan("embed", unpadded.inputs, {.logits = false});
  detail::Scratch scratch(&workspace_);
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, unpadded.inputs, {hidden, {}, {}}, nullptr, scratch);
  const std::int64_t B = inputs.shape[0], E = plan.encoder.E, width = E * static_cast<std::int64_t>(options.poolings.size());
  const std::int64_t size = config_.whole_embedding_size(options.poolings.size()), kept = config_.embedding_size(options.poolings.size());
  float* const whole = kept < size ? scratch.take(size_of(B, size)) : y;
  float* const pooled = embedding_dense_ ? scratch.take(size_of(B, width)) : whole;
  for (std::size_t i = 0; i < options.poolings.size(); ++i)
    detail::pool_sequences(unpadded.inputs, E, hidden, options.poolings[i], pooled + static_cast<std::int64_t>(i) * E, width, options.prompt_length);
  if (embedding_dense_) {
    embedding_dense_->forward(pooled, B, whole, scratch);
    kernels::best(is_quantized_).activation_row(config_.dense->activation, whole, whole, size_of(B, size));
  }
  if (options.normalize) detail::normalize_rows(whole, B, size, is_quantized_);
  if (kept == size) return;
  for (std::int64_t b = 0; b < B; ++b) std::copy_n(whole + b * size, kept, y + b * kept);
  if (options.normalize_kept) detail::normalize_rows(y, B, kept, is_quantized_);
}

Shape EncoderModel::check_classify(std::string_view op, const detail::ModelInputs& inputs) const {
  check_task(op, Task::text_classification);
  return plan(op, inputs, {}).logits;
}

void EncoderModel::check_task(std::string_view op, Task task) const {
  if (config_.task != task)
    detail::fail(ErrorCode::unsupported, op, "the checkpoint", {"one with a head for ", name_of(task)},
                 {config_.has_head() ? detail::text({"one for ", name_of(config_.task)}) : std::string("one without a head")});
}

Shape EncoderModel::check_tokens(std::string_view op, Task task, const detail::ModelInputs& inputs, std::span<const std::int64_t> places) const {
  check_task(op, task);
  plan(op, inputs, {.logits = false});
  const std::int64_t L = inputs.shape[1], rows = inputs.shape[0] * L;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t place = places[i], least = i > 0 ? places[i - 1] + 1 : 0;
    if (place < least || place >= rows || (inputs.attention_mask != nullptr && !detail::keeps(inputs.attention_mask, place / L, place % L)))
      detail::fail(ErrorCode::out_of_range, op, detail::text({"places[", i, "]"}), {"a token's place from ", least, " to ", rows - 1}, {place},
                   {{"index", static_cast<double>(i)}});
  }
  const Shape logits{static_cast<std::int64_t>(places.size()), config_.outputs()};
  MemoryEstimate memory(op);
  memory.add("logits", logits);
  memory.check();
  return logits;
}

void EncoderModel::classify_tokens(const detail::ModelInputs& inputs, std::span<const std::int64_t> places, detail::TokenSoftmax softmax,
                                   float* y) const {
  const detail::FloatEnvironment environment;
  const Unpadded unpadded(inputs);
  const detail::ModelPlan plan = this->plan("classify_tokens", unpadded.inputs, {.logits = false});
  detail::Scratch scratch(&workspace_);
  const auto E = static_cast<std::size_t>(plan.encoder.E), C = static_cast<std::size_t>(config_.outputs());
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, unpadded.inputs, {hidden, {}, {}}, nullptr, scratch);
  std::vector<std::int64_t> starts;  // of the sequences' rows
  std::int64_t start = 0;
  for (const auto& [count, length] : detail::runs_of(unpadded.inputs))
    for (std::int64_t i = 0; i < count; ++i, start += length) starts.push_back(start);
  const std::int64_t L = inputs.shape[1];
  const auto sequence_of = [&](std::size_t i) { return static_cast<std::size_t>(places[i] / L); };
  float* const rows = scratch.take(places.size() * E);
  for (std::size_t i = 0; i < places.size(); ++i)
    std::copy_n(hidden + size_of(starts[sequence_of(i)] + places[i] % L, plan.encoder.E), E, rows + i * E);
  head_.forward(rows, std::ssize(places), words_.table(), y, scratch);

  const kernels::KernelTable& kernel = kernels::best(is_quantized_);
  if (softmax == detail::TokenSoftmax::outputs)
    for (std::size_t i = 0; i < places.size(); ++i) kernel.softmax_row(y + i * C, y + i * C, C);
  if (softmax != detail::TokenSoftmax::tokens) return;
  float* const column = scratch.take(places.size());
  for (std::size_t first = 0, end = 0; first < places.size(); first = end) {
    while (end < places.size() && sequence_of(end) == sequence_of(first)) ++end;
    for (std::size_t c = 0; c < C; ++c) {
      for (std::size_t i = first; i < end; ++i) column[i - first] = y[i * C + c];
      kernel.softmax_row(column, column, end - first);
      for (std::size_t i = first; i < end; ++i) y[i * C + c] = column[i - first];
    }
  }
}

void EncoderModel::classify(const detail::ModelInputs& inputs, float* y, bool are_pairs) const {
  const detail::FloatEnvironment environment;
  const Unpadded unpadded(inputs);
  const detail::ModelPlan plan = this->plan("classify", unpadded.inputs, {});
  detail::Scratch scratch(&workspace_);
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, unpadded.inputs, {hidden, {}, {}}, y, scratch);
  using Function = detail::ClassificationFunction;
  const Function function = are_pairs ? config_.classification_function : config_.text_function;
  const kernels::KernelTable& kernel = kernels::best(is_quantized_);
  const std::size_t count = size_of(plan.logits[0], plan.logits[1]), labels = size_of(plan.logits[1], 1);
  if (function == Function::sigmoid) kernel.activation_row(Activation::sigmoid, y, y, count);
  if (function == Function::softmax)
    for (std::size_t first = 0; first < count; first += labels) kernel.softmax_row(y + first, y + first, labels);
}

}  // namespace attn
