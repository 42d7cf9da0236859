#include "attn/models/text_model.hpp"

#include <algorithm>
#include <type_traits>

#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model_parts.hpp"

namespace attn {

void detail::check_encoding(const EncodedTexts& encoding, std::size_t texts) {
  const Shape& shape = encoding.shape;
  bool fits = shape.rank() == 2 && shape[0] == static_cast<std::int64_t>(texts) && shape[1] >= 0;
  const auto L = fits ? static_cast<std::size_t>(shape[1]) : 0;
  const auto counts = [&](const auto& list) { fits = fits && list.size() == texts * L; };
  const auto counts_rows = [&](const auto& rows) {
    fits = fits && rows.size() == texts && std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row.size() == L; });
  };
  counts(encoding.input_ids);
  counts(encoding.token_type_ids);
  counts(encoding.attention_mask);
  counts_rows(encoding.tokens);
  counts_rows(encoding.offsets);
  counts_rows(encoding.sequence_ids);
  fits = fits && encoding.truncated.size() == texts;
  if (!fits)
    detail::fail(ErrorCode::argument, "tokenize", "the result of your tokenizer", {"lists of shape (", texts, ",L)"}, {"lists of different lengths"});
}

void detail::rename_text(const Error& error, const std::string& name, std::size_t index) {
  ErrorDetail facts = error.detail();
  const auto take = [&](const char* fact) {
    const auto found = facts.find(fact);
    const auto* value = found != facts.end() ? std::get_if<std::string>(&found->second) : nullptr;
    return value != nullptr ? *value : std::string();
  };
  if (take("argument") != "text 0") return;
  facts.erase("argument");
  if (const auto found = facts.find("index"); found != facts.end()) found->second = static_cast<double>(index);
  const std::string op = take("op"), expected = take("expected"), got = take("got");
  fail(error.code(), op, name, {expected}, {got}, std::move(facts));
}

TextModel::TextModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TextModel::TextModel(TextModel&&) noexcept = default;
TextModel& TextModel::operator=(TextModel&&) noexcept = default;
TextModel::~TextModel() = default;

Weights TextModel::weights() const { return encoder().is_quantized() ? Weights::int8 : Weights::float32; }

template <class Tokenize>
EncodedTexts TextModel::encode_all(const TokenizeOptions& options, Tokenize tokenize) const {
  EncodedTexts encoding = tokenize(parts_->limited(options));
  if (!parts_->model->config().token_types) std::fill(encoding.token_type_ids.begin(), encoding.token_type_ids.end(), 0);
  return encoding;
}

/// Batches have texts text_at(i) of similar length.
template <class TextAt, class Run>
void TextModel::run_texts(std::size_t count, TextAt text_at, const TokenizeOptions& options, std::int64_t batch_size,
                          const std::function<void(std::int64_t, std::int64_t)>& on_progress, std::vector<bool>* truncated, Run run) const {
  using Text = std::remove_cvref_t<decltype(text_at(0))>;
  encode(std::vector<Text>(), 0, 0, options);  // checks options even without texts
  if (truncated != nullptr) truncated->assign(count, false);
  const TokenizeOptions given = parts_->limited(options);
  const auto rows_of = [&](std::size_t i, std::vector<detail::TextRow>& rows) {
    rows.push_back(parts_->row(text_at(i), i, given));
    if (truncated != nullptr) (*truncated)[i] = rows.back().truncated;
  };
  detail::in_batches<detail::TextRow>(count, batch_size, on_progress, rows_of, run);
}

EncodedTexts TextModel::encode(const std::vector<std::string>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const {
  return encode_all(options, [&](const TokenizeOptions& given) { return parts_->encode(texts, begin, end, given); });
}

EncodedTexts TextModel::encode(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                               const TokenizeOptions& options) const {
  return encode_all(options, [&](const TokenizeOptions& given) { return parts_->encode(pairs, begin, end, given); });
}

EncodedTexts TextModel::encode(const std::vector<Words>& texts, const TokenizeOptions& options) const {
  return encode_all(options, [&](const TokenizeOptions& given) { return parts_->own_tokenizer("tokenize_words").encode_word_texts(texts, given); });
}

EncodedTexts TextModel::encode(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options) const {
  return encode_all(options, [&](const TokenizeOptions& given) { return parts_->own_tokenizer("tokenize_words").encode_word_texts(pairs, given); });
}

const EncoderModel& TextModel::encoder() const { return *parts_->model; }
EncoderModel& TextModel::encoder() { return *parts_->model; }

EncoderTraceOptions TextModel::trace_of(std::int64_t layer, Trace names) const { return parts_->model->trace_of("trace_layer", layer, names); }

struct detail::TextForward::Parts {
  const EncoderModel& model;
  std::optional<TextBatch> batch;
  ModelInputs inputs;
  ModelPlan plan;

  Parts(const EncoderModel& of, std::string_view op, const TokenIds& ids, const ModelForwardOptions& options)
      : model(of), batch(std::in_place, op, ids), inputs(batch->inputs()), plan(of.plan(op, inputs, options)) {}
  Parts(const EncoderModel& of, std::string_view op, const TensorView& pixels, const ModelForwardOptions& options)
      : model(of), inputs(of.image_inputs(op, pixels)), plan(of.plan(op, inputs, options)) {}
};

namespace {

detail::ModelForwardOptions forward_options(const TextForwardOptions& options, std::optional<EncoderTraceOptions> trace) {
  detail::ModelForwardOptions given{.output_attentions = options.output_attentions,
                                    .output_hidden_states = options.output_hidden_states,
                                    .trace = std::move(trace),
                                    .mask = options.mask,
                                    .is_causal = options.is_causal,
                                    .head_mask = options.head_mask,
                                    .inputs_embeds = options.inputs_embeds,
                                    .logits = options.output_logits,
                                    .cache = options.cache};
  for (const LayerPatch& patch : options.patches)
    given.patches.push_back({patch.layer, patch.hidden_state, patch.merged, patch.q_proj, patch.k_proj, patch.v_proj, patch.weights});
  return given;
}

}  // namespace

detail::TextForward::TextForward(std::string_view op, const EncoderModel& model, const TokenIds& inputs, const TextForwardOptions& options,
                                 std::optional<EncoderTraceOptions> trace)
    : parts_(std::make_unique<Parts>(model, op, inputs, forward_options(options, std::move(trace)))) {}

detail::TextForward::TextForward(std::string_view op, const EncoderModel& model, const TensorView& pixels, const TextForwardOptions& options)
    : parts_(std::make_unique<Parts>(model, op, pixels, forward_options(options, options.trace))) {}

detail::TextForward::~TextForward() = default;
const detail::EncoderPlan& detail::TextForward::encoder() const { return parts_->plan.encoder; }
const Shape& detail::TextForward::logits() const { return parts_->plan.logits; }
void detail::TextForward::run(const EncoderBuffers& buffers, float* logits) const {
  parts_->model.run(parts_->plan, parts_->inputs, buffers, logits);
}

namespace {

template <class Options>
TokenizeOptions tokenizing_of(const Options& options) {
  return {.max_length = options.max_length,
          .truncation = options.truncation,
          .add_special_tokens = options.add_special_tokens,
          .truncation_side = options.truncation_side};
}

detail::ModelEmbedOptions embedding_of(const EncoderModel& model, const EmbedOptions& options) {
  detail::ModelEmbedOptions how{.poolings = model.config().poolings, .normalize = options.normalize.value_or(model.config().normalize)};
  how.normalize_kept = options.normalize.value_or(false);
  if (options.pooling) how.poolings = {*options.pooling};
  return how;
}

}  // namespace

Shape TextModel::check_embed(std::int64_t count, const EmbedOptions& options) const {
  detail::check_batch_size("embed", options.batch_size);
  const Shape shape{count, encoder().embedding_size("embed", embedding_of(encoder(), options))};
  detail::check_memory("embed", [&] { detail::counted(shape, "the result"); });
  return shape;
}

void TextModel::embed(const std::vector<std::string>& texts, const EmbedOptions& options, float* y) const {
  const EncoderModel& model = encoder();
  const std::string prompt = parts_->prompt(options);
  detail::ModelEmbedOptions how = embedding_of(model, options);
  if (!model.config().include_prompt && !prompt.empty()) how.prompt_length = parts_->prompt_length(prompt, options.add_special_tokens);
  const auto width = static_cast<std::size_t>(model.embedding_size("embed", how));
  const auto text_at = [&](std::size_t i) { return prompt + texts[i]; };
  run_texts(texts.size(), text_at, tokenizing_of(options), options.batch_size, options.on_progress, options.truncated,
            [&](const detail::PackedSequences& batch, std::span<const detail::TextRow> rows) {
              model.check_embed("embed", batch.inputs(), how);
              std::vector<float> part(rows.size() * width);
              model.embed(batch.inputs(), how, part.data());
              for (std::size_t i = 0; i < rows.size(); ++i) std::copy_n(part.data() + i * width, width, y + rows[i].index * width);
            });
}

template <class Text>
std::vector<std::vector<LabelScore>> TextModel::classify_all(const std::vector<Text>& texts, const ClassifyOptions& options) const {
  detail::check_batch_size("classify", options.batch_size);
  detail::check_top_k("classify", options.top_k);
  const EncoderModel& model = *parts_->model;
  std::vector<std::vector<LabelScore>> all(texts.size());
  const auto text_at = [&](std::size_t i) -> const Text& { return texts[i]; };
  run_texts(texts.size(), text_at, tokenizing_of(options), options.batch_size, options.on_progress, options.truncated,
            [&](const detail::PackedSequences& batch, std::span<const detail::TextRow> rows) {
              const auto classes = static_cast<std::size_t>(model.check_classify("classify", batch.inputs())[1]);
              std::vector<float> scores(rows.size() * classes);
              model.classify(batch.inputs(), scores.data(), !std::is_same_v<Text, std::string>);
              for (std::size_t i = 0; i < rows.size(); ++i) {
                std::vector<LabelScore>& of_text = all[rows[i].index];
                for (std::size_t c = 0; c < classes; ++c) of_text.push_back({labels()[c], scores[i * classes + c], static_cast<std::int64_t>(c)});
                detail::keep_best(of_text, options.top_k);
              }
            });
  return all;
}

std::vector<std::vector<LabelScore>> TextModel::classify(const std::vector<std::string>& texts, const ClassifyOptions& options) const {
  return classify_all(texts, options);
}

std::vector<std::vector<LabelScore>> TextModel::classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                               const ClassifyOptions& options) const {
  return classify_all(pairs, options);
}

std::map<std::string, Shape> TextModel::parameter_shapes() const { return parts_->model->parameter_shapes(); }
void TextModel::save_state(const StateTarget& target) const { parts_->model->save_state(target); }
void TextModel::load_state(const StateView& state, bool strict) { parts_->model->load_state(state, strict); }

Shape TextModel::parameter_shape(const std::string& name) const {
  const detail::StateTensors& tensors = parts_->model->tensors();
  if (const auto found = tensors.find(name); found != tensors.end()) return found->second.shape();
  detail::fail(ErrorCode::out_of_range, "get_parameter", "name", {"a name in parameter_shapes()"}, {name});
}

const Embedding& TextModel::word_embeddings() const { return parts_->model->word_embeddings(); }
std::optional<std::int64_t> TextModel::token_to_id(const std::string& token) const {
  return parts_->ask([&](const auto& any) { return any.token_to_id(token); });
}
std::optional<std::string> TextModel::id_to_token(std::int64_t id) const {
  return parts_->ask([&](const auto& any) { return any.id_to_token(id); });
}
Task TextModel::task() const { return parts_->model->config().task; }
const std::vector<std::string>& TextModel::notes() const { return parts_->model->config().notes; }
const std::vector<std::string>& TextModel::labels() const { return parts_->model->config().labels; }
std::int64_t TextModel::num_layers() const { return parts_->model->config().num_hidden_layers; }
std::int64_t TextModel::num_heads() const { return parts_->model->config().num_attention_heads; }
std::map<std::string, std::string> TextModel::prompts() const {
  std::map<std::string, std::string> prompts;
  for (const detail::Prompt& prompt : parts_->model->config().prompts) prompts.emplace(prompt.name, prompt.text);
  return prompts;
}
std::int64_t TextModel::max_length() const { return parts_->model->config().default_length; }

}  // namespace attn
