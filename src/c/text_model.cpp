#include <array>
#include <cstdlib>
#include <cstring>

#include "c/text_model.hpp"

using namespace attn::c;

namespace {

std::vector<std::pair<std::string, std::string>> to_pairs(std::string_view op, const attn_text* texts, const attn_text* pairs, std::size_t count) {
  if (count > 0) check_pointer(op, texts, "texts");
  std::vector<std::pair<std::string, std::string>> strings;
  strings.reserve(count);
  for (std::size_t i = 0; i < count; ++i) strings.emplace_back(to_string(op, "texts", texts[i]), to_string(op, "pairs", pairs[i]));
  return strings;
}

/// (B,L,2), or (L,2) for one text.
Numbers<std::int64_t> to_numbers(const std::vector<attn::TokenOffsets>& offsets, attn::Shape shape) {
  Numbers<std::int64_t> numbers(shape);
  std::fill(numbers.begin(), numbers.begin() + numbers.size(), -1);
  const std::size_t row = offsets.empty() ? 0 : numbers.size() / offsets.size();
  for (std::size_t b = 0; b < offsets.size(); ++b)
    for (std::size_t i = 0; i < offsets[b].size(); ++i)
      if (const auto& range = offsets[b][i]) {
        std::int64_t* to = numbers.data() + b * row + 2 * i;
        to[0] = range->first;
        to[1] = range->second;
      }
  return numbers;
}

template <class Part>
void put_parts(attn_tensors& tensors, const std::vector<Part>& parts) {
  const auto N = static_cast<std::int64_t>(parts.size());
  Numbers<float> scores(attn::Shape{N});
  Numbers<std::int64_t> offsets(attn::Shape{N, 2});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    scores.data()[i] = parts[i].score;
    offsets.data()[2 * i] = parts[i].start;
    offsets.data()[2 * i + 1] = parts[i].end;
  }
  tensors.put("scores", std::move(scores));
  tensors.put("offsets", std::move(offsets));
}

char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::optional<std::int64_t> stride_of(std::int64_t value) { return value >= 0 ? std::optional(value) : std::nullopt; }

std::optional<attn::Side> side_of(std::string_view op, const char* name) {
  constexpr std::array<std::string_view, 2> kNames{"left", "right"};  // in the order of Side
  return name != nullptr ? std::optional(static_cast<attn::Side>(find_name(op, "truncation_side", name, kNames))) : std::nullopt;
}

constexpr const char* kIgnoredLabels[] = {"O"};

template <class T>
T in_range(std::string_view op, std::string_view argument, int value, int most) {
  if (value < 0 || value > most) attn::detail::fail(attn::ErrorCode::argument, op, argument, {"a number from 0 to ", most}, {value});
  return static_cast<T>(value);
}

template <class From, class Options>
void set_text_options(std::string_view op, const From& from, Options& chosen) {
  chosen.max_length = given_or_none(from.max_length);
  chosen.truncation = from.truncation;
  chosen.batch_size = from.batch_size;
  chosen.add_special_tokens = from.add_special_tokens;
  chosen.truncation_side = side_of(op, from.truncation_side);
}

}  // namespace

extern "C" {

attn_status attn_text_model_load(const char* folder, attn_weights weights, attn_text_model** model, attn_error** error) {
  return making("TextModel", model, error, [&] {
    check_pointer("TextModel", folder, "folder");
    attn::TextModelOptions options;
    if (in_range<attn_weights>("TextModel", "weights", weights, ATTN_WEIGHTS_INT8) != ATTN_WEIGHTS_AS_STORED)
      options.weights = weights == ATTN_WEIGHTS_INT8 ? attn::Weights::int8 : attn::Weights::float32;
    return std::make_unique<attn_text_model>(attn::TextModel::load(std::string(folder), options));
  });
}

void attn_text_model_free(attn_text_model* model) { delete model; }

int64_t attn_text_model_max_length(const attn_text_model* model) { return model != nullptr ? model->module.max_length() : 0; }

const char* attn_text_model_task(const attn_text_model* model) {
  return model != nullptr ? attn::name_of(model->module.task()).data() : nullptr;  // a null-terminated literal
}

const char* attn_text_model_label(const attn_text_model* model, size_t index) {
  return model != nullptr && index < model->module.labels().size() ? model->module.labels()[index].c_str() : nullptr;
}

const char* attn_text_model_note(const attn_text_model* model, size_t index) {
  return model != nullptr && index < model->module.notes().size() ? model->module.notes()[index].c_str() : nullptr;
}

attn_status attn_text_model_mask_token(const attn_text_model* model, char** token, attn_error** error) {
  return guarded(error, [&] {
    check_pointer("mask_token", model, "model");
    check_pointer("mask_token", token, "token");
    const std::optional<std::string> found = model->module.mask_token();
    *token = found ? copy_of(*found) : nullptr;
  });
}

void(attn_embed_options_init)(attn_embed_options* options, size_t size) {
  init_options<attn_embed_options>(options, size,
                                   {.truncation = true, .normalize = -1, .batch_size = attn::EmbedOptions().batch_size, .add_special_tokens = true});
}

attn_status attn_text_model_embed(const attn_text_model* model, const attn_text* texts, size_t count, const attn_embed_options* options,
                                  attn_tensors** results, attn_error** error) {
  const char* op = "embed";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_embed_options_init);
    attn::EmbedOptions chosen;
    if (from.pooling != nullptr) chosen.pooling = static_cast<attn::Pooling>(find_name(op, "pooling", from.pooling, attn::kPoolingNames));
    if (from.normalize >= 0) chosen.normalize = from.normalize != 0;
    chosen.prompt = given_or_none(from.prompt);
    chosen.prompt_name = given_or_none(from.prompt_name);
    set_text_options(op, from, chosen);
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("embeddings", model->module.embed<2>(to_strings(op, texts, count), chosen));
    return tensors;
  });
}

void(attn_classify_options_init)(attn_classify_options* options, size_t size) {
  init_options<attn_classify_options>(options, size,
                                      {.truncation = true, .batch_size = attn::ClassifyOptions().batch_size, .add_special_tokens = true});
}

attn_status attn_text_model_classify(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count,
                                     const attn_classify_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "classify";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_classify_options_init);
    attn::ClassifyOptions chosen;
    set_text_options(op, from, chosen);
    chosen.top_k = given_or_none(from.top_k);
    const auto answers = pairs != nullptr ? model->module.classify_pairs(to_pairs(op, texts, pairs, count), chosen)
                                          : model->module.classify(to_strings(op, texts, count), chosen);
    const auto labels_count = static_cast<std::int64_t>(model->module.labels().size());
    const std::int64_t C = std::min(labels_count, chosen.top_k.value_or(labels_count));
    const attn::Shape shape{static_cast<std::int64_t>(answers.size()), C};
    Numbers<float> scores(shape);
    Numbers<std::int32_t> labels(shape);
    std::size_t i = 0;
    for (const auto& row : answers)
      for (const attn::LabelScore& answer : row) {
        labels.data()[i] = static_cast<std::int32_t>(answer.index);
        scores.data()[i++] = answer.score;
      }
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("scores", std::move(scores));
    tensors->put("labels", std::move(labels));
    return tensors;
  });
}

void(attn_classify_tokens_options_init)(attn_classify_tokens_options* options, size_t size) {
  const attn::ClassifyTokensOptions defaults;
  init_options<attn_classify_tokens_options>(options, size,
                                             {.truncation = defaults.truncation,
                                              .aggregation = attn::kAggregationNames[static_cast<std::size_t>(defaults.aggregation)].data(),
                                              .stride = -1,
                                              .ignore_labels = kIgnoredLabels,
                                              .ignore_label_count = std::size(kIgnoredLabels),
                                              .batch_size = defaults.batch_size,
                                              .add_special_tokens = defaults.add_special_tokens});
}

attn_status attn_text_model_classify_tokens(const attn_text_model* model, const attn_text* texts, size_t count,
                                            const attn_classify_tokens_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "classify_tokens";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_classify_tokens_options_init);
    attn::ClassifyTokensOptions chosen;
    chosen.aggregation = static_cast<attn::Aggregation>(find_name(op, "aggregation", from.aggregation, attn::kAggregationNames));
    chosen.stride = stride_of(from.stride);
    if (from.ignore_label_count > 0) check_pointer(op, from.ignore_labels, "ignore_labels");
    chosen.ignore_labels.clear();
    for (std::size_t i = 0; i < from.ignore_label_count; ++i) {
      check_pointer(op, from.ignore_labels[i], "ignore_labels");
      chosen.ignore_labels.emplace_back(from.ignore_labels[i]);
    }
    set_text_options(op, from, chosen);
    const auto found = model->module.classify_tokens(to_strings(op, texts, count), chosen);
    auto tensors = std::make_unique<attn_tensors>();
    std::vector<attn::Entity> entities;
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const attn::Entity& each : found[i]) {
        rows.push_back(static_cast<std::int64_t>(i));
        tensors->texts["labels"].push_back(each.label);
        entities.push_back(each);
      }
    put_parts(*tensors, entities);
    tensors->put("rows", Numbers<std::int64_t>(rows.data(), {static_cast<std::int64_t>(rows.size())}));
    return tensors;
  });
}

void(attn_fill_mask_options_init)(attn_fill_mask_options* options, size_t size) {
  const attn::FillMaskOptions defaults;
  init_options<attn_fill_mask_options>(options, size, {.top_k = defaults.top_k, .batch_size = defaults.batch_size});
}

attn_status attn_text_model_fill_mask(const attn_text_model* model, const attn_text* text, const attn_fill_mask_options* options,
                                      attn_tensors** results, attn_error** error) {
  const char* op = "fill_mask";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, text, "text");
    const auto from = to_known(op, "options", options, attn_fill_mask_options_init);
    attn::FillMaskOptions chosen;
    chosen.top_k = from.top_k;
    chosen.targets = to_strings(op, from.targets, from.target_count, "targets");
    chosen.batch_size = from.batch_size;
    const auto masks = model->module.fill_mask(to_string(op, "text", *text), chosen);
    const attn::Shape shape{static_cast<std::int64_t>(masks.size()), static_cast<std::int64_t>(masks.front().size())};
    Numbers<std::int64_t> ids(shape);
    Numbers<float> scores(shape);
    auto tensors = std::make_unique<attn_tensors>();
    std::vector<std::string>&tokens = tensors->texts["tokens"], &texts = tensors->texts["texts"];
    for (const auto& of_mask : masks)
      for (const attn::FilledMask& each : of_mask) {
        ids.data()[tokens.size()] = each.id;
        scores.data()[tokens.size()] = each.score;
        tokens.push_back(each.token);
        texts.push_back(each.text);
      }
    tensors->put("ids", std::move(ids));
    tensors->put("scores", std::move(scores));
    return tensors;
  });
}

void(attn_answer_options_init)(attn_answer_options* options, size_t size) {
  const attn::AnswerOptions defaults;
  init_options<attn_answer_options>(
      options, size, {.top_k = defaults.top_k, .max_answer_length = defaults.max_answer_length, .stride = -1, .batch_size = defaults.batch_size});
}

attn_status attn_text_model_answer(const attn_text_model* model, const attn_text* question, const attn_text* context,
                                   const attn_answer_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "answer";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, question, "question");
    check_pointer(op, context, "context");
    const auto from = to_known(op, "options", options, attn_answer_options_init);
    attn::AnswerOptions chosen;
    chosen.top_k = from.top_k;
    chosen.max_answer_length = from.max_answer_length;
    chosen.stride = stride_of(from.stride);
    chosen.allow_empty = from.allow_empty;
    chosen.max_length = given_or_none(from.max_length);
    chosen.batch_size = from.batch_size;
    const auto answers = model->module.answer(to_string(op, "question", *question), to_string(op, "context", *context), chosen);
    auto tensors = std::make_unique<attn_tensors>();
    put_parts(*tensors, answers);
    for (const attn::Answer& each : answers) tensors->texts["texts"].push_back(each.text);
    return tensors;
  });
}

void(attn_rank_options_init)(attn_rank_options* options, size_t size) {
  init_options<attn_rank_options>(options, size, {.truncation = true, .batch_size = attn::RankOptions().batch_size, .add_special_tokens = true});
}

attn_status attn_text_model_rank(const attn_text_model* model, const attn_text* query, const attn_text* documents, size_t count,
                                 const attn_rank_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "rank";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, query, "query");
    const auto from = to_known(op, "options", options, attn_rank_options_init);
    attn::RankOptions chosen;
    chosen.top_k = given_or_none(from.top_k);
    chosen.prompt = given_or_none(from.prompt);
    chosen.prompt_name = given_or_none(from.prompt_name);
    set_text_options(op, from, chosen);
    const auto ranked = model->module.rank(to_string(op, "query", *query), to_strings(op, documents, count, "documents"), chosen);
    const attn::Shape shape{static_cast<std::int64_t>(ranked.size())};
    Numbers<std::int64_t> indices(shape);
    Numbers<float> scores(shape);
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      indices.data()[i] = ranked[i].index;
      scores.data()[i] = ranked[i].score;
    }
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("indices", std::move(indices));
    tensors->put("scores", std::move(scores));
    return tensors;
  });
}

attn_status attn_text_model_tokenize(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count, int64_t max_length,
                                     bool truncation, attn_tensors** results, attn_error** error) {
  const char* op = "tokenize";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const attn::TokenizeOptions chosen{given_or_none(max_length), truncation};
    auto encoding = pairs != nullptr ? model->module.tokenize_pairs<2>(to_pairs(op, texts, pairs, count), chosen)
                                     : model->module.tokenize<2>(to_strings(op, texts, count), chosen);
    attn::Shape shape = attn::to_shape(encoding.input_ids.shape());
    shape.push_back(2);
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("offsets", to_numbers(encoding.offsets, shape));
    tensors->put("input_ids", std::move(encoding.input_ids));
    tensors->put("token_type_ids", std::move(encoding.token_type_ids));
    tensors->put("attention_mask", std::move(encoding.attention_mask));
    return tensors;
  });
}

attn_status attn_text_model_id_to_token(const attn_text_model* model, int64_t id, char** token, attn_error** error) {
  return guarded(error, [&] {
    const char* op = "id_to_token";
    check_pointer(op, model, "model");
    check_pointer(op, token, "token");
    const std::optional<std::string> found = model->module.id_to_token(id);
    if (!found) attn::detail::fail(attn::ErrorCode::out_of_range, op, "id", {"an id of the vocabulary"}, {id});
    *token = copy_of(*found);
  });
}

attn_status attn_text_model_decode(const attn_text_model* model, const int32_t* ids, size_t count, bool skip_special_tokens, char** text,
                                   attn_error** error) {
  return guarded(error, [&] {
    const char* op = "decode";
    check_pointer(op, model, "model");
    check_pointer(op, text, "text");
    if (count > 0) check_pointer(op, ids, "ids");
    *text = copy_of(model->module.decode(std::vector<std::int64_t>(ids, ids + count), skip_special_tokens));
  });
}

void attn_string_free(char* string) { std::free(string); }

void(attn_text_forward_options_init)(attn_text_forward_options* options, size_t size) { init_options<attn_text_forward_options>(options, size, {}); }

attn_status attn_text_model_forward(const attn_text_model* model, const int32_t* input_ids, const int32_t* token_type_ids,
                                    const uint8_t* attention_mask, int64_t batch, int64_t length, const attn_text_forward_options* options,
                                    attn_tensors** results, attn_error** error) {
  const char* op = "forward";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, input_ids, "input_ids");
    if (batch < 0 || length < 0) attn::detail::fail(attn::ErrorCode::shape, op, "input_ids", {"dims of at least 0"}, {attn::Shape{batch, length}});
    const attn::Shape shape{batch, length};
    attn::checked_size(shape, op, "input_ids");
    attn::EncodingTensors<2> inputs;
    inputs.input_ids = Numbers<std::int32_t>(input_ids, shape);
    const attn::Shape none{0, 0};
    inputs.token_type_ids = token_type_ids != nullptr ? Numbers<std::int32_t>(token_type_ids, shape) : Numbers<std::int32_t>(none);
    inputs.attention_mask = attention_mask != nullptr ? Numbers<std::uint8_t>(attention_mask, shape) : Numbers<std::uint8_t>(none);
    const auto from = to_known(op, "options", options, attn_text_forward_options_init);
    attn::TextForwardOptions chosen;
    chosen.output_attentions = from.output_attentions;
    chosen.output_hidden_states = from.output_hidden_states;
    chosen.is_causal = from.is_causal;
    chosen.mask = to_mask(op, "mask", from.mask);
    if (from.head_mask != nullptr) chosen.head_mask = attn::TensorCopy(Given(op, "head_mask", from.head_mask));
    if (const attn::Trace names = to_trace(op, from.trace, from.trace_count); names.any()) chosen.trace = {.names = names};
    auto result = model->module.forward(inputs, chosen);
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("last_hidden_state", std::move(result.last_hidden_state));
    if (result.logits) tensors->put("logits", std::move(*result.logits));
    put_layers(*tensors, std::move(result));
    return tensors;
  });
}

attn_status attn_text_model_attribute(const attn_text_model* model, const attn_text* text, const char* method, const char* target,
                                      attn_tensors** results, attn_error** error) {
  const char* op = "attribute";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, text, "text");
    attn::AttributeOptions options;
    options.method = static_cast<attn::AttributionMethod>(find_name(op, "method", method, attn::kAttributionMethodNames));
    if (target != nullptr) options.target = std::string(target);
    const attn::TextAttribution found = model->module.attribute(to_string(op, "text", *text), options);
    const auto L = static_cast<std::int64_t>(found.scores.size());
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("scores", Numbers<float>(found.scores.data(), {L}));
    tensors->put("offsets", to_numbers({found.offsets}, {L, 2}));
    if (found.delta) {
      const auto delta = static_cast<float>(*found.delta);
      tensors->put("delta", Numbers<float>(&delta, {1}));
    }
    return tensors;
  });
}

attn_status attn_text_model_state_dict(const attn_text_model* model, attn_tensors** state, attn_error** error) {
  return state_dict(model, "model", state, error);
}

attn_status attn_text_model_load_state_dict(attn_text_model* model, const attn_tensors* state, bool strict, attn_error** error) {
  return load_state_dict(model, "model", state, strict, error);
}

attn_status attn_text_model_save_pretrained(const attn_text_model* model, const char* folder, attn_file_weights weights, attn_error** error) {
  return guarded(error, [&] {
    const char* op = "save_pretrained";
    check_pointer(op, model, "model");
    check_pointer(op, folder, "folder");
    attn::SaveOptions options;
    if (in_range<attn_file_weights>(op, "weights", weights, ATTN_FILE_INT8) != ATTN_FILE_AS_IS)
      options.weights = static_cast<attn::FileWeights>(weights - ATTN_FILE_FLOAT32);
    model->module.save_pretrained(std::string(folder), options);
  });
}

}  // extern "C"
