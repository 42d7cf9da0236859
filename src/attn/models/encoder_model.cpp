#include "attn/models/encoder_model.hpp"

#include <algorithm>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/models/family.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/host.hpp"

namespace attn {
namespace {

using detail::size_of;

constexpr std::string_view kModelOp = "TextModel";

detail::EncoderPatch check_patch(std::string_view op, const detail::ModelForwardOptions& options, const detail::EncoderPlan& plan) {
  const auto data = [&](std::string_view name, const std::optional<TensorView>& given, const Shape& expected) -> const float* {
    if (!given) return nullptr;
    if (given->shape != expected) detail::fail(ErrorCode::shape, op, name, {expected}, {given->shape});
    return given->data;
  };
  detail::EncoderPatch patch{.head_mask = data("head_mask", options.head_mask, {plan.layers, plan.attention.spec.num_heads})};
  const detail::AttentionSpec& spec = plan.attention.spec;
  const std::int64_t H = spec.num_heads, Hkv = spec.num_key_value_heads, D = spec.head_dim, Dv = spec.value_head_dim;
  const auto rows = [&](std::int64_t width) { return Shape{plan.B, plan.L, width}; };
  for (std::size_t i = 0; i < options.patches.size(); ++i) {
    const detail::ModelPatch& given = options.patches[i];
    const std::string name = options.patches.size() == 1 ? "patch" : detail::text({"patch[", i, "]"});
    if (given.layer < 0 || given.layer >= plan.layers)
      detail::fail(ErrorCode::out_of_range, op, name + ".layer", {"a layer from 0 to ", plan.layers - 1}, {given.layer});
    patch.layers.resize(static_cast<std::size_t>(plan.layers));
    detail::PatchedValues& to = patch.layers[static_cast<std::size_t>(given.layer)];
    const auto replace = [&](const char* part, const std::optional<TensorView>& values, const Shape& expected, const float*& place) {
      const float* const found = data(name + part, values, expected);
      if (found != nullptr && place != nullptr)
        detail::fail(ErrorCode::argument, op, name + part, {"one patch of a value"}, {"a second one of layer ", given.layer});
      if (found != nullptr) place = found;
    };
    replace(".hidden_state", given.hidden_state, plan.output, to.hidden_state);
    replace(".merged", given.merged, rows(H * Dv), to.merged);
    if (!detail::kIsNative) continue;
    replace(".q_proj", given.q_proj, rows(H * D), to.q_proj);
    replace(".k_proj", given.k_proj, rows(Hkv * D), to.k_proj);
    replace(".v_proj", given.v_proj, rows(Hkv * Dv), to.v_proj);
    replace(".weights", given.weights, {plan.B, H, plan.L, plan.L}, to.weights);
    if (given.weights && options.cache != nullptr)
      detail::fail(ErrorCode::unsupported, op, name + ".weights", {"a forward without a cache"}, {"given with a cache"});
  }
  return patch;
}

}  // namespace

EncoderModel::EncoderModel(detail::ModelConfig config) : config_(std::move(config)), embeddings_(config_), stack_(kModelOp, config_) {
  if (config_.image)
    image_head_ = detail::ImageHead(config_);
  else if (config_.has_head())
    head_ = detail::Head(config_);
  embeddings_.words().share_gradients();  // from now on it counts changes
}

std::uint64_t EncoderModel::word_changes() const { return word_embeddings().share_gradients()->changes; }

void EncoderModel::leave_out_head() {
  config_.task = Task::embedding;
  head_ = {};
}

void EncoderModel::visit_parameters(detail::ParameterVisitor& visitor) {
  embeddings_.visit_parameters(visitor);
  stack_.visit_parameters(visitor);
  if (config_.image)
    image_head_.visit_parameters(visitor);
  else if (config_.has_head())
    head_.visit_parameters(visitor);
}

detail::StateTensors EncoderModel::tensors_by(detail::ParameterVisitor::Names names) const {
  detail::ParameterVisitor visitor(names);
  const_cast<EncoderModel*>(this)->visit_parameters(visitor);
  return visitor.take();
}

detail::StateTensors EncoderModel::parameters(detail::ParameterVisitor::Names names) {
  stack_.forget();
  return tensors_by(names);
}

void EncoderModel::quantize(bool words) {
  detail::StateTensors all = parameters();
  if (!words) all.erase("word_embeddings.weight");
  all.erase("patch_embeddings.weight");  // a convolution in transformers
  detail::convert(kModelOp, all, true);
}

void EncoderModel::allocate() {
  for (const auto& [name, tensor] : parameters())
    for (const detail::ParameterRef& parameter : tensor.pieces) parameter.allocate();
  stack_.make_tables();
}

void EncoderModel::check_cache(std::string_view op, const detail::ModelInputs& inputs, const KeyValueCache& cache) const {
  using detail::fail;
  if (cache.model_ != weights_ || cache.word_changes_ != word_changes())
    fail(ErrorCode::argument, op, "cache", {"one that create_cache() of this model made"}, {"one of other weights"});
  if (cache.batch_size() != inputs.shape[0])
    fail(ErrorCode::shape, op, "input_ids", {"(", cache.batch_size(), ",L), the sequences of the cache"}, {inputs.shape});
  if (const std::int64_t room = cache.max_length() - cache.length(); inputs.shape[1] > room)
    fail(ErrorCode::out_of_range, op, "the length of input_ids", {"at most ", room, " tokens, the room in the cache"}, {inputs.shape[1]},
         "Create the cache with a larger max_length");
  for (std::int64_t i = 0; i < inputs.shape[0] * inputs.shape[1] && inputs.attention_mask != nullptr; ++i)
    if (!detail::keeps(inputs.attention_mask, i / inputs.shape[1], i % inputs.shape[1]))
      fail(ErrorCode::unsupported, op, "attention_mask", {"no padding with a cache"}, {"padding"}, "Use a cache for each sequence");
}

KeyValueCache EncoderModel::make_cache(std::int64_t batch_size, std::int64_t max_length) const {
  constexpr std::string_view kOp = "create_cache";
  if (!config_.is_causal) detail::fail(ErrorCode::unsupported, kOp, "the model", {"a causal model"}, {"bidirectional"});
  if (max_length < 1 || max_length > config_.max_length)
    detail::fail(ErrorCode::out_of_range, kOp, "max_length", {"a number from 1 to ", config_.max_length, ", the positions of the model"},
                 {max_length});
  const std::int64_t heads = config_.num_key_value_heads > 0 ? config_.num_key_value_heads : config_.num_attention_heads;
  KeyValueCache cache(weights_, {config_.num_hidden_layers, heads, config_.head_width()}, batch_size, max_length);
  cache.word_changes_ = word_changes();
  return cache;
}

detail::ModelPlan EncoderModel::plan(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const {
  detail::ModelPlan plan = prepare(op, inputs, options);
  detail::check_memory(op, [&] {
    const detail::EncoderBuffers buffers = detail::counted_buffers(plan.encoder);
    if (plan.order) plan.order->count();
    if (options.for_backward)
      run_and_keep(plan, inputs, buffers, options.keep);
    else
      run(plan, inputs, buffers, plan.logits.rank() > 0 ? detail::counted(plan.logits, "logits") : nullptr);
  });
  return plan;
}

detail::ModelPlan EncoderModel::prepare(std::string_view op, const detail::ModelInputs& given, const detail::ModelForwardOptions& options) const {
  const Shape& shape = given.shape;
  if (shape.rank() != 2) detail::fail(ErrorCode::shape, op, "input_ids", {"(B,L)"}, {shape});
  if (options.cache != nullptr) check_cache(op, given, *options.cache);
  std::int64_t sequences = 0;
  for (const detail::SequenceGroup& run : detail::runs_of(given)) sequences += run.count;
  const std::int64_t past = options.cache != nullptr ? options.cache->length() : 0;
  if (const std::int64_t longest = past + detail::longest_of(given); longest > config_.max_length)
    detail::fail(ErrorCode::out_of_range, op, "the length of input_ids", {"at most ", config_.max_length, " positions"}, {longest});
  if (config_.image && given.pixels == nullptr) detail::fail(ErrorCode::unsupported, op, "the checkpoint", {"a text model"}, {"an image model"});
  embeddings_.check_ids(op, given);

  std::shared_ptr<detail::PaddingOrder> order;
  if (config_.is_causal && options.cache == nullptr && detail::PaddingOrder::is_needed(given)) {
    if (options.for_backward)
      detail::fail(ErrorCode::unsupported, op, "attention_mask", {"a mask with padding only at the end"}, {"a mask with padding before a token"});
    for (const detail::LayerDistance& distance : config_.distances)
      if (distance.window >= 0 && detail::PaddingOrder::cuts_window(given, distance.window))
        detail::fail(ErrorCode::unsupported, op, "attention_mask",
                     {"a mask without padding inside a sliding window of ", distance.window + 1, " keys"}, {"a mask with padding between tokens"},
                     "Remove the padding, or put it before or after the tokens");
    order = std::make_shared<detail::PaddingOrder>(given);
  }
  const detail::ModelInputs& inputs = order ? order->inputs() : given;
  EncoderForwardOptions forward{.mask = options.mask,
                                .is_causal = options.is_causal || config_.is_causal,
                                // As in transformers, for padding whose window holds only padding. No token attends to it.
                                .fully_masked = FullyMasked::uniform,
                                .output_attentions = options.output_attentions,
                                .output_hidden_states = options.output_hidden_states,
                                .trace = options.trace};
  if (order && options.mask) forward.mask = order->mask(*options.mask);
  if (inputs.attention_mask != nullptr && options.cache == nullptr) forward.key_padding_mask = *inputs.attention_mask;
  detail::ModelPlan plan{.encoder = stack_.plan(op, inputs, forward, options.cache), .sequences = sequences};
  plan.rows = options.logits;
  if (detail::kIsNative && options.inputs_embeds) {
    const Shape expected{shape[0], shape[1], config_.word_width()};
    if (options.inputs_embeds->shape != expected) detail::fail(ErrorCode::shape, op, "inputs_embeds", {expected}, {options.inputs_embeds->shape});
    plan.embeds = order ? order->rows(options.inputs_embeds->data, config_.word_width()) : options.inputs_embeds->data;
  }
  detail::EncoderPatch& patch = plan.encoder.patch = check_patch(op, options, plan.encoder);
  if (order) {
    const detail::AttentionSpec& spec = plan.encoder.attention.spec;
    for (detail::PatchedValues& values : patch.layers) {
      const auto reorder = [&](const float*& rows, std::int64_t width) {
        if (rows != nullptr) rows = order->rows(rows, width);
      };
      reorder(values.hidden_state, plan.encoder.E);
      reorder(values.merged, spec.num_heads * spec.value_head_dim);
      if (!detail::kIsNative) continue;
      reorder(values.q_proj, spec.num_heads * spec.head_dim);
      reorder(values.k_proj, spec.num_key_value_heads * spec.head_dim);
      reorder(values.v_proj, spec.num_key_value_heads * spec.value_head_dim);
      if (values.weights != nullptr) values.weights = order->weights(values.weights, spec.num_heads);
    }
    plan.order = std::move(order);
  }
  if (config_.has_head() && options.logits != OutputLogits::none) {
    const std::int64_t rows = options.logits == OutputLogits::last ? std::min<std::int64_t>(shape[1], 1) : shape[1];
    plan.logits = config_.of_tokens() ? Shape{shape[0], rows, config_.outputs()} : Shape{sequences, config_.outputs()};
  }
  return plan;
}

void EncoderModel::run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits) const {
  detail::Scratch scratch(&workspace_);
  run(plan, inputs, buffers, logits, scratch);
}

void EncoderModel::run(const detail::ModelPlan& plan, const detail::ModelInputs& given, const detail::EncoderBuffers& buffers, float* logits,
                       detail::Scratch& scratch) const {
  const std::int64_t E = plan.encoder.E;
  KeyValueCache* const cache = plan.encoder.cache;
  detail::ModelInputs inputs = plan.order ? plan.order->inputs() : given;
  if (cache != nullptr) inputs.first_position = cache->length();
  inputs.embeds = plan.embeds;
  float* const x = scratch.take(size_of(plan.encoder.B * plan.encoder.L, E));
  embeddings_.forward(inputs, x, scratch);
  stack_.run(plan.encoder, inputs, x, buffers, scratch);
  if (config_.has_head() && logits != nullptr) {
    if (config_.image) {
      image_head_.classify(buffers.output, plan.encoder.B, plan.encoder.L, logits, scratch);
    } else if (config_.of_tokens()) {
      run_token_head(plan, inputs, buffers.output, logits, scratch);
    } else {
      const std::int64_t B = plan.logits[0];
      float* const pooled = scratch.take(size_of(B, E));
      detail::pool_sequences(inputs, E, buffers.output, config_.classifier_pooling, pooled, E);
      head_.forward(pooled, B, word_embeddings().table(), logits, scratch);
    }
  }
  if (plan.order) plan.order->restore(plan.encoder, buffers, logits, plan.logits, scratch);
  if (cache != nullptr && !detail::counts()) cache->advance(plan.encoder.L);
}

Shape EncoderModel::check_unembed(std::string_view op, const Shape& hidden) const {
  if (!config_.predicts_tokens()) check_task(op, Task::text_generation);
  if (hidden.rank() == 0 || hidden[hidden.rank() - 1] != config_.hidden_size)
    detail::fail(ErrorCode::shape, op, "hidden_states", {"a last dimension of ", config_.hidden_size}, {hidden});
  Shape logits = hidden;
  logits[hidden.rank() - 1] = config_.outputs();
  const std::int64_t rows = checked_size(hidden, op, "hidden_states") / config_.hidden_size;
  detail::check_memory(op, [&] { run_head(nullptr, rows, detail::counted(logits, "logits")); });
  return logits;
}

void EncoderModel::run_head(const float* rows, std::int64_t count, float* logits) const {
  detail::Scratch scratch(&workspace_);
  head_.forward(rows, count, word_embeddings().table(), logits, scratch);
}

void EncoderModel::run_token_head(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const float* hidden, float* logits,
                                  detail::Scratch& scratch) const {
  const std::int64_t B = plan.encoder.B, L = plan.encoder.L, E = plan.encoder.E;
  if (plan.rows != OutputLogits::last) return head_.forward(hidden, B * L, word_embeddings().table(), logits, scratch);
  if (L == 0) return;
  const bool is_padded = inputs.attention_mask != nullptr && plan.encoder.cache == nullptr;
  float* const last = scratch.take(size_of(B, E));
  for (std::int64_t b = 0; b < B && !detail::counts(); ++b) {
    std::int64_t i = L - 1;
    while (i > 0 && is_padded && !detail::keeps(inputs.attention_mask, b, i)) --i;
    std::copy_n(hidden + (b * L + i) * E, E, last + b * E);
  }
  head_.forward(last, B, word_embeddings().table(), logits, scratch);
}

void EncoderModel::load_state(const StateView& state, bool strict) {
  constexpr std::string_view kLoad = "load_state_dict";
  detail::check_state_dict(kLoad, parameter_shapes(), state, strict);
  for (const auto& [name, tensor] : tensors_)
    if (const float* const values = detail::find_data(state, name); values != nullptr && tensor.is_quantized())
      detail::check_finite(kLoad, name, {values, tensor.size()});
  stack_.forget();
  weights_ = std::make_shared<const int>();
  detail::set_state(tensors_, state);
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
  if (!config_.denses.empty() && config_.denses.front().in_features != count * config_.hidden_size)
    detail::fail(ErrorCode::config, op, "pooling", {config_.denses.front().in_features, " numbers, as the checkpoint's Dense takes"},
                 {count * config_.hidden_size, " numbers"}, "Leave pooling out");
  return config_.embedding_size(options.poolings.size());
}

Shape EncoderModel::check_embed(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options) const {
  const std::int64_t width = embedding_size(op, options);
  const Shape shape{prepare(op, inputs, {.logits = false}).sequences, width};
  detail::check_memory(op, [&] { embed(inputs, options, detail::counted(shape, "the result")); });
  return shape;
}

void EncoderModel::embed(const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options, float* y) const {
  const detail::FloatEnvironment environment;
  const detail::ModelPlan plan = prepare("embed", inputs, {.logits = false});
  detail::Scratch scratch(&workspace_);
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, inputs, {hidden, {}, {}}, nullptr, scratch);
  const std::int64_t B = plan.sequences, E = plan.encoder.E, width = E * static_cast<std::int64_t>(options.poolings.size());
  const std::int64_t size = config_.whole_embedding_size(options.poolings.size()), kept = config_.embedding_size(options.poolings.size());
  float* const whole = kept < size ? scratch.take(size_of(B, size)) : y;
  float* const pooled = embedding_denses_.empty() ? whole : scratch.take(size_of(B, width));
  for (std::size_t i = 0; i < options.poolings.size(); ++i)
    detail::pool_sequences(inputs, E, hidden, options.poolings[i], pooled + static_cast<std::int64_t>(i) * E, width, options.prompt_length);
  const float* x = pooled;
  for (std::size_t i = 0; i < embedding_denses_.size(); ++i) {
    const detail::DenseConfig& dense = config_.denses[i];
    const std::size_t rows_size = size_of(B, dense.out_features);
    float* const z = i + 1 == embedding_denses_.size() ? whole : scratch.take(rows_size);
    embedding_denses_[i].forward(x, B, z, scratch);
    if (!detail::counts()) kernels::best(is_quantized()).activation_row(dense.activation, z, z, rows_size);
    x = z;
  }
  if (options.normalize) detail::normalize_rows(whole, B, size, is_quantized());
  if (kept == size || detail::counts()) return;
  for (std::int64_t b = 0; b < B; ++b) std::copy_n(whole + b * size, kept, y + b * kept);
  if (options.normalize_kept) detail::normalize_rows(y, B, kept, is_quantized());
}

Shape EncoderModel::check_classify(std::string_view op, const detail::ModelInputs& inputs) const {
  check_task(op, config_.image ? Task::image_classification : Task::text_classification);
  const Shape logits = prepare(op, inputs, {}).logits;
  detail::check_memory(op, [&] { classify(inputs, detail::counted(logits, "logits")); });
  return logits;
}

void EncoderModel::check_task(std::string_view op, Task task) const {
  if (config_.task != task)
    detail::fail(ErrorCode::unsupported, op, "the checkpoint", {"one with a head for ", name_of(task)},
                 {config_.has_head() ? detail::text({"one for ", name_of(config_.task)}) : std::string("one without a head")});
}

Shape EncoderModel::check_tokens(std::string_view op, Task task, const detail::ModelInputs& inputs, std::span<const std::int64_t> places) const {
  check_task(op, task);
  prepare(op, inputs, {.logits = false});
  const std::int64_t rows = inputs.shape[0] * inputs.shape[1];
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t place = places[i], least = i > 0 ? places[i - 1] + 1 : 0;
    if (place < least || place >= rows)
      detail::fail(ErrorCode::out_of_range, op, detail::text({"places[", i, "]"}), {"a token's place from ", least, " to ", rows - 1}, {place},
                   {{"index", static_cast<double>(i)}});
  }
  const Shape logits{static_cast<std::int64_t>(places.size()), config_.outputs()};
  detail::check_memory(op, [&] { classify_tokens(inputs, places, detail::TokenSoftmax::none, detail::counted(logits, "logits")); });
  return logits;
}

void EncoderModel::classify_tokens(const detail::ModelInputs& inputs, std::span<const std::int64_t> places, detail::TokenSoftmax softmax,
                                   float* y) const {
  const detail::FloatEnvironment environment;
  const detail::ModelPlan plan = prepare("classify_tokens", inputs, {.logits = false});
  detail::Scratch scratch(&workspace_);
  const auto E = static_cast<std::size_t>(plan.encoder.E), C = static_cast<std::size_t>(config_.outputs());
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, inputs, {hidden, {}, {}}, nullptr, scratch);
  float* const rows = scratch.take(places.size(), E);
  for (std::size_t i = 0; i < places.size(); ++i) detail::copy_values(hidden + size_of(places[i], plan.encoder.E), E, rows + i * E);
  head_.forward(rows, std::ssize(places), word_embeddings().table(), y, scratch);

  float* const column = scratch.take(places.size());
  if (detail::counts()) return;
  const kernels::KernelTable& kernel = kernels::best(is_quantized());
  if (softmax == detail::TokenSoftmax::outputs)
    for (std::size_t i = 0; i < places.size(); ++i) kernel.softmax_row(y + i * C, y + i * C, C);
  if (softmax != detail::TokenSoftmax::tokens) return;
  std::size_t first = 0;
  std::int64_t end_of_sequence = 0;
  for (const auto& [count, length] : detail::runs_of(inputs))
    for (std::int64_t sequence = 0; sequence < count; ++sequence) {
      end_of_sequence += length;
      std::size_t end = first;
      while (end < places.size() && places[end] < end_of_sequence) ++end;
      if (end == first) continue;
      for (std::size_t c = 0; c < C; ++c) {
        for (std::size_t i = first; i < end; ++i) column[i - first] = y[i * C + c];
        kernel.softmax_row(column, column, end - first);
        for (std::size_t i = first; i < end; ++i) y[i * C + c] = column[i - first];
      }
      first = end;
    }
}

void EncoderModel::classify(const detail::ModelInputs& inputs, float* y, bool are_pairs) const {
  const detail::FloatEnvironment environment;
  const detail::ModelPlan plan = prepare("classify", inputs, {});
  detail::Scratch scratch(&workspace_);
  float* const hidden = scratch.take(size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, inputs, {hidden, {}, {}}, y, scratch);
  if (detail::counts()) return;
  using Function = detail::ClassificationFunction;
  const Function function = are_pairs ? config_.classification_function : config_.text_function;
  const kernels::KernelTable& kernel = kernels::best(is_quantized());
  const std::size_t count = size_of(plan.logits[0], plan.logits[1]), labels = size_of(plan.logits[1], 1);
  if (function == Function::sigmoid) kernel.activation_row(Activation::sigmoid, y, y, count);
  if (function == Function::softmax)
    for (std::size_t first = 0; first < count; first += labels) kernel.softmax_row(y + first, y + first, labels);
}

}  // namespace attn
