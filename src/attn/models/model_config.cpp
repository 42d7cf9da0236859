#include "attn/models/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "attn/models/family.hpp"
#include "attn/models/quantization_config.hpp"
#include "attn/models/sentence_config.hpp"

namespace attn::detail {
namespace {

const Json kNone{Json::Object()};
// Allocated per position before missing weights reveal a wrong value.
constexpr std::int64_t kMaxLabels = 100'000, kMaxPositions = 1 << 20;
constexpr const Family* kFamilies[] = {&kBert,         &kDistilBert,
                                       &kRoberta,      &kCamembert,
                                       &kData2VecText, &kMpnet,
                                       &kModernBert,   &kErnie,
                                       &kElectra,      &kDeberta,
                                       &kAlbert,       &kNomicBert,
                                       &kGte,          &kNew,
                                       &kGpt2,         &kLlama,
                                       &kMistral,      &kQwen2,
                                       &kQwen3,        &kGptNeoX,
                                       &kGemma2,       &kGemma3,
                                       &kVit,          &kDeit,
                                       &kDinov2,       &kDinov2WithRegisters};

const Family& family_of(const ConfigReader& config) {
  const std::string_view type = config.string("model_type", "");
  if (type == "longformer" || type == "big_bird")
    config.refuse(ErrorCode::unsupported, "model_type", {"an encoder with full attention"}, {type, ", which has sparse attention"},
                  "modernbert, nomic_bert, new and jina-embeddings-v2 accept texts of the same length");
  std::string all;
  for (const Family* family : kFamilies)
    for (const std::string_view name : family->model_types) {
      // Jina's models have the same model_type as BERT.
      if (name == type) return family == &kBert && config.string("position_embedding_type", "") == "alibi" ? kJinaBert : *family;
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
  config.refuse(ErrorCode::unsupported, "model_type", {"one of ", all}, {type.empty() ? "missing" : type},
                "Run other families in transformers or, exported to ONNX, in onnxruntime");
}

const HeadNames& names_of(const Family& family, Task task) {
  static constexpr HeadNames kNoHead;
  switch (task) {
    case Task::text_classification:
      return family.text_classification;
    case Task::token_classification:
      return family.token_classification;
    case Task::fill_mask:
      return family.fill_mask;
    case Task::question_answering:
      return family.question_answering;
    case Task::multiple_choice:
      return family.multiple_choice;
    case Task::text_generation:
      return family.text_generation;
    case Task::image_classification:
      return family.image_classification;
    case Task::embedding:
      break;
  }
  return kNoHead;
}

Task task_of(const ConfigReader& config, const Family& family) {
  const Json* list = config.find("architectures");
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return Task::embedding;
  // Pre-training heads are read as fill-mask.
  constexpr std::pair<std::string_view, Task> kEnds[] = {{"ForSequenceClassification", Task::text_classification},
                                                         {"ForTokenClassification", Task::token_classification},
                                                         {"ForMaskedLM", Task::fill_mask},
                                                         {"ForPreTraining", Task::fill_mask},
                                                         {"ForQuestionAnswering", Task::question_answering},
                                                         {"ForMultipleChoice", Task::multiple_choice},
                                                         {"ForCausalLM", Task::text_generation},
                                                         {"LMHeadModel", Task::text_generation},
                                                         {"ForImageClassification", Task::image_classification},
                                                         {"ForImageClassificationWithTeacher", Task::image_classification},
                                                         {"Model", Task::embedding}};
  const std::string name = text({words_of(list->array()->front())});
  for (const auto& [end, task] : kEnds)
    if (name.ends_with(end)) {
      if (!names_of(family, task).classifier.empty()) return task;
      if (task == Task::embedding || task == Task::fill_mask) return Task::embedding;
    }
  std::string known;
  for (const auto& [end, task] : kEnds)
    if (task == Task::embedding || !names_of(family, task).classifier.empty())
      known += (known.empty() ? "" : ", ") + std::string(family.architecture) + std::string(end);
  config.refuse(ErrorCode::unsupported, "architectures[0]", {"one of ", known}, {name},
                "In Python AutoModel.from_pretrained(folder).save_pretrained(other) leaves the head out");
}

/// Without id2label LABEL_0, LABEL_1, … as in transformers, also for label 0 in files that count from 1.
std::vector<std::string> read_labels(const ConfigReader& config) {
  const Json* names = config.find("id2label");
  const bool named = names != nullptr && names->object() != nullptr && !names->object()->empty();
  const std::int64_t count = named ? static_cast<std::int64_t>(names->object()->size()) : config.whole("num_labels", 1, kMaxLabels, 2);
  if (count > kMaxLabels) config.refuse(ErrorCode::config, "id2label", {"at most ", kMaxLabels, " labels"}, {count});
  std::vector<std::string> labels;
  for (std::int64_t id = 0; id < count; ++id) labels.push_back("LABEL_" + std::to_string(id));
  if (!named) return labels;
  for (const auto& [key, label] : *names->object()) {
    if (key.empty() || key.size() > 9 || !std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }))
      config.refuse(ErrorCode::config, "id2label", {"names by their numbers"}, {"\"", key, "\""});
    if (label.is_null() || label.object() != nullptr || label.array() != nullptr)
      config.refuse(ErrorCode::config, "id2label", {"a name for each number"}, {label.kind(), " for ", key});
    if (const auto id = static_cast<std::size_t>(std::atoll(key.c_str())); id < labels.size()) labels[id] = text({words_of(label)});
  }
  return labels;
}

ClassificationFunction classification_function(const ConfigReader& config, std::size_t labels) {
  const std::string_view type = config.string("problem_type", "");
  if (type == "regression") return ClassificationFunction::none;
  if (type == "multi_label_classification") return ClassificationFunction::sigmoid;
  if (!type.empty() && type != "single_label_classification")
    config.refuse(ErrorCode::unsupported, "problem_type", {"regression, single_label_classification or multi_label_classification"}, {type});
  return labels == 1 ? ClassificationFunction::sigmoid : ClassificationFunction::softmax;
}

/// transformers checks the list in every family.
void check_layer_types(const ConfigReader& config, std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) static_cast<void>(config.is_sliding(static_cast<std::size_t>(layer), false));
  constexpr const char* kName = "layer_types";
  if (const Json* const types = config.find(kName); types != nullptr && types->array()->size() != static_cast<std::size_t>(layers))
    config.refuse(ErrorCode::config, kName, {"a kind for each of ", layers, " layers"}, {types->array()->size(), " kinds"});
}

/// A number, a list, or null. Ids outside the vocabulary have no effect.
void read_eos(const ConfigReader& config, ModelConfig& model) {
  const Json* const given = config.find("eos_token_id");
  if (given == nullptr) return;
  model.eos_token_ids.clear();
  const auto add = [&](const Json& id) {
    const double* const number = id.number();
    if (number == nullptr || std::floor(*number) != *number) config.refuse(ErrorCode::config, "eos_token_id", {"token ids"}, {words_of(id)});
    if (*number >= 0 && *number < static_cast<double>(model.vocab_size)) model.eos_token_ids.push_back(static_cast<std::int64_t>(*number));
  };
  if (given->array() == nullptr) return add(*given);
  for (const Json& id : *given->array()) add(id);
}

/// Notes settings that change transformers' text and that attn does not read from `file`.
void note_generation(const ConfigReader& config, const char* file, ModelConfig& model) {
  struct Setting {
    const char* name;
    double no_effect;
    bool is_option;  ///< of generate()
  };
  constexpr Setting kSettings[] = {{"do_sample", 0, true},   {"repetition_penalty", 1, true},
                                   {"num_beams", 1, false},  {"no_repeat_ngram_size", 0, false},
                                   {"min_length", 0, false}, {"min_new_tokens", 0, false}};
  constexpr Setting kOfSampling[] = {{"temperature", 1, true}, {"top_k", 0, true}, {"top_p", 1, true}, {"min_p", 0, true}, {"typical_p", 1, false}};
  constexpr const char* kOthers[] = {
      "suppress_tokens",     "begin_suppress_tokens",           "bad_words_ids", "sequence_bias", "forced_bos_token_id",
      "forced_eos_token_id", "exponential_decay_length_penalty"};
  const auto note = [&](const char* name, std::string_view help) {
    model.notes.push_back(text({"generate: ", name, " of ", file, " is not used", help}));
  };
  const auto note_all = [&](std::span<const Setting> settings) {
    for (const auto& [name, no_effect, is_option] : settings) {
      const Json* const value = config.find(name);
      if (value == nullptr || (value->number() != nullptr && *value->number() == no_effect)) continue;
      if (value->boolean() == nullptr || *value->boolean()) note(name, is_option ? ": pass it as an option" : "");
    }
  };
  note_all(kSettings);
  const Json* const sample = config.find("do_sample");
  if (sample != nullptr && sample->boolean() != nullptr && *sample->boolean()) note_all(kOfSampling);
  for (const char* const name : kOthers)
    if (const Json* const value = config.find(name); value != nullptr && (value->array() == nullptr || !value->array()->empty())) note(name, "");
}

/// As transformers' GenerationConfig.
void read_generation(const ConfigReader& config, const ModelFiles& files, ModelConfig& model) {
  if (!files.generation) {
    read_eos(config, model);
    return note_generation(config, "config.json", model);
  }
  constexpr const char* kFile = "generation_config.json";
  const Json generation = parse_python_json(kFile, *files.generation, kMaxConfig);
  const ConfigReader reader(kFile, generation);
  read_eos(reader, model);
  if (!reader.has("eos_token_id") && config.has("eos_token_id"))
    model.notes.emplace_back("generate: eos_token_id of config.json is not used, as in transformers, because generation_config.json has none");
  note_generation(reader, kFile, model);
}

}  // namespace

TextPart words_of(const Json& json) {
  if (const std::string* value = json.string()) return *value;
  if (const double* value = json.number()) return *value;
  if (const bool* value = json.boolean()) return *value ? "true" : "false";
  return json.kind();
}

std::string_view ModelConfig::tokenizer_class() const { return family->tokenizer_class; }

const HeadNames& ModelConfig::head_names() const { return names_of(*family, task); }

std::int64_t ModelConfig::stored_layer(std::int64_t place) const {
  if (hidden_groups == 0) return place;
  // Floating point, as in transformers.
  const double times = static_cast<double>(num_hidden_layers / inner_layers), group = times / static_cast<double>(hidden_groups);
  return static_cast<std::int64_t>(static_cast<double>(place / inner_layers) / group) * inner_layers + place % inner_layers;
}

std::int64_t ModelConfig::outputs() const {
  switch (task) {
    case Task::fill_mask:
    case Task::text_generation:
      return vocab_size;
    case Task::question_answering:
      return 2;
    case Task::multiple_choice:
      return 1;
    default:
      return num_labels();
  }
}

void ConfigReader::refuse(ErrorCode code, const char* name, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got,
                          std::string_view help) const {
  std::string path = name;
  const ConfigReader* at = this;
  for (; at->parent_ != nullptr; at = at->parent_) path = text({at->name_, ".", path});
  fail(code, at->name_, path, expected, got, help);
}

const Json* ConfigReader::find(const char* name) const { return json_.find(name); }

bool ConfigReader::is_empty() const { return json_.object() == nullptr || json_.object()->empty(); }

bool ConfigReader::is_null(const char* name) const { return json_.object() != nullptr && json_.object()->find(name) != nullptr && !has(name); }

std::int64_t ConfigReader::whole(const char* name, std::int64_t least, std::int64_t most) const {
  const Json* value = json_.find(name);
  const double* number = value != nullptr ? value->number() : nullptr;
  if (number == nullptr || !(*number >= static_cast<double>(least)) || !(*number <= static_cast<double>(most)) || std::floor(*number) != *number)
    refuse(ErrorCode::config, name, {"a whole number from ", least, " to ", most}, {value != nullptr ? words_of(*value) : TextPart("missing")});
  return static_cast<std::int64_t>(*number);
}

std::int64_t ConfigReader::whole(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise) const {
  return has(name) ? whole(name, least, most) : otherwise;
}

double ConfigReader::positive(const char* name, double otherwise) const {
  const Json* value = json_.find(name);
  if (value == nullptr) return otherwise;
  const double* number = value->number();
  if (number == nullptr || !(*number > 0) || !std::isfinite(*number) || *number < 1e-30 || *number > 1e30)
    refuse(ErrorCode::config, name, {"a number above 0, from 1e-30 to 1e30"}, {words_of(*value)});
  return *number;
}

float ConfigReader::number(const char* name, float otherwise) const {
  const Json* value = json_.find(name);
  if (value == nullptr) return otherwise;
  const double* number = value->number();
  return number != nullptr ? static_cast<float>(*number) : std::numeric_limits<float>::quiet_NaN();
}

bool ConfigReader::flag(const char* name, bool otherwise) const {
  const Json* value = json_.find(name);
  if (value == nullptr) return otherwise;
  if (value->boolean() == nullptr) refuse(ErrorCode::config, name, {"true or false"}, {words_of(*value)});
  return *value->boolean();
}

std::string_view ConfigReader::string(const char* name, std::string_view otherwise) const {
  const Json* value = json_.find(name);
  if (value == nullptr) return otherwise;
  if (value->string() == nullptr) refuse(ErrorCode::config, name, {"a string"}, {value->kind()});
  return *value->string();
}

Activation ConfigReader::activation(const char* name, Activation otherwise) const {
  if (is_null(name)) refuse(ErrorCode::config, name, {"a string"}, {"null"});
  if (!has(name)) return otherwise;
  constexpr std::pair<std::string_view, Activation> kNames[] = {{"gelu", Activation::gelu},
                                                                {"gelu_python", Activation::gelu},
                                                                {"gelu_new", Activation::gelu_tanh},
                                                                {"gelu_fast", Activation::gelu_tanh},
                                                                {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                {"gelu_python_tanh", Activation::gelu_tanh},
                                                                {"gelu_accurate", Activation::gelu_tanh},
                                                                {"relu", Activation::relu},
                                                                {"silu", Activation::silu},
                                                                {"swish", Activation::silu},
                                                                {"tanh", Activation::tanh},
                                                                {"mish", Activation::mish},
                                                                {"quick_gelu", Activation::quick_gelu},
                                                                {"sigmoid", Activation::sigmoid},
                                                                {"linear", Activation::identity}};
  const std::string_view given = string(name, {});
  for (const auto& [known, activation] : kNames)
    if (given == known) return activation;
  refuse(ErrorCode::unsupported, name, {"one of gelu, gelu_new, gelu_pytorch_tanh, relu, silu, tanh, mish, quick_gelu, sigmoid, linear"}, {given});
}

ConfigReader ConfigReader::object(const char* name) const& {
  const Json* value = json_.find(name);
  if (value != nullptr && value->object() == nullptr) refuse(ErrorCode::config, name, {"an object"}, {value->kind()});
  return {*this, name, value != nullptr ? *value : kNone};
}

void ConfigReader::only(const char* name, std::string_view value) const {
  const std::string_view given = string(name, value);
  if (given != value) refuse(ErrorCode::unsupported, name, {value}, {given});
}

void ConfigReader::only_false(const char* name) const {
  if (flag(name, false)) refuse(ErrorCode::unsupported, name, {"false"}, {"true"});
}

bool ConfigReader::is_sliding(std::size_t layer, bool otherwise) const {
  constexpr const char* kName = "layer_types";
  const Json* const types = find(kName);
  if (types == nullptr) return otherwise;
  const Json::Array* const list = types->array();
  if (list == nullptr) refuse(ErrorCode::config, kName, {"a list"}, {types->kind()});
  if (layer >= list->size()) refuse(ErrorCode::config, kName, {"a kind for each layer"}, {list->size(), " kinds"});
  const std::string kind = text({words_of((*list)[layer])});
  // attention means full_attention, as in transformers.
  if (kind != "sliding_attention" && kind != "full_attention" && kind != "attention")
    refuse(ErrorCode::unsupported, kName, {"full_attention or sliding_attention for each layer"}, {kind});
  return kind == "sliding_attention";
}

void configure_sizes(const ConfigReader& config, ModelConfig& model, const SizeNames& names) {
  // As transformers' attribute_map: the common name has priority.
  constexpr SizeNames kCommon;
  const auto name = [&](const char* own, const char* common) { return config.has(common) ? common : own; };
  model.vocab_size = names.vocab_size != nullptr ? config.size(names.vocab_size) : 1;
  model.hidden_size = config.size(name(names.hidden_size, kCommon.hidden_size));
  model.num_hidden_layers = config.whole(name(names.num_hidden_layers, kCommon.num_hidden_layers), 1, kMaxLayers);
  model.num_attention_heads = config.size(name(names.num_attention_heads, kCommon.num_attention_heads));
  if (names.intermediate_size != nullptr) model.intermediate_size = config.size(names.intermediate_size);
  model.max_position_embeddings = model.max_length =
      names.positions != nullptr ? config.whole(name(names.positions, kCommon.positions), 1, kMaxPositions, names.max_position_embeddings)
                                 : kMaxPositions;
  // pad_token_id matters only for gradients.
  const Json* const pad = config.find("pad_token_id");
  const double id = pad != nullptr && pad->number() != nullptr ? *pad->number()
                    : config.is_null("pad_token_id")           ? -1
                                                               : static_cast<double>(names.pad_token_id);
  if (id >= 0 && id < static_cast<double>(model.vocab_size)) model.pad_token_id = static_cast<std::int64_t>(id);
  if (names.hidden_act != nullptr) model.hidden_act = config.activation(names.hidden_act);
  if (names.layer_norm_eps != nullptr)
    model.layer_norm_eps = static_cast<float>(config.positive(names.layer_norm_eps, static_cast<double>(model.layer_norm_eps)));
}

void configure_windows(const ConfigReader& config, ModelConfig& model, bool has_window, std::int64_t first, std::int64_t period) {
  const std::int64_t keys = has_window ? config.whole("sliding_window", 1, 0x7fffffff, 4096) : 0;  // includes the query
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer) {
    const auto place = static_cast<std::size_t>(layer);
    if (!config.is_sliding(place, layer >= first && (period == 0 || (layer + 1) % period != 0))) continue;
    if (!has_window) config.refuse(ErrorCode::unsupported, "sliding_window", {"a number of keys for the layers with sliding_attention"}, {"none"});
    model.distances[place].window = keys - 1;
  }
}

void configure_rotary(ModelConfig& model, double theta) {
  model.positions = PositionRows::none;
  model.distances.assign(static_cast<std::size_t>(model.num_hidden_layers), {.rope_theta = theta});
}

void configure_dropout(const ConfigReader& config, ModelConfig& model, float otherwise) {
  const float hidden = config.number("hidden_dropout_prob", otherwise);
  model.dropout = {.attention_weights = config.number("attention_probs_dropout_prob", otherwise),
                   .attention_output = hidden,
                   .feed_forward_output = hidden,
                   .embeddings = hidden,
                   .classifier = config.number("classifier_dropout", hidden)};
}

std::string_view tokenizer_class_of(std::span<const std::uint8_t> config_json) {
  const Json json = parse_python_json("config.json", config_json, kMaxConfig);
  const ConfigReader config("config.json", json);
  if (json.object() == nullptr) config.refuse(ErrorCode::format, "the file", {"an object"}, {json.kind()});
  try {
    return family_of(config).tokenizer_class;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return {};
  }
}

ModelConfig read_model_config(const ModelFiles& files) {
  const Json json = parse_python_json("config.json", files.config, kMaxConfig);
  const ConfigReader config("config.json", json);
  if (json.object() == nullptr) config.refuse(ErrorCode::format, "the file", {"an object"}, {json.kind()});

  ModelConfig model;
  const Family& family = family_of(config);
  model.family = &family;
  config.only_false("is_decoder");
  config.only_false("add_cross_attention");
  read_quantization(config, model);
  model.task = task_of(config, family);
  // sentence-transformers reads only the base model.
  if (model.predicts_tokens() && files.modules) model.task = Task::embedding;
  if (model.task == Task::fill_mask) model.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  family.configure(config, model);
  check_layer_types(config, model.num_hidden_layers / model.inner_layers);
  if (model.is_causal && (config.is_null("is_causal") || !config.flag("is_causal", true)))
    config.refuse(ErrorCode::unsupported, "is_causal", {"true"}, {config.is_null("is_causal") ? "null" : "false"});
  if (model.max_length < 1)  // positions begin after padding_idx
    config.refuse(ErrorCode::config, "max_position_embeddings", {"a number of at least ", model.padding_idx + 2}, {model.max_position_embeddings});
  if (model.head_dim == 0 && model.hidden_size % model.num_attention_heads != 0)
    config.refuse(ErrorCode::config, "the hidden size", {"a multiple of the number of heads, ", model.num_attention_heads}, {model.hidden_size});
  if (!model.distances.empty() && model.head_width() % 2 != 0)
    config.refuse(ErrorCode::config, "a head's width", {"an even number"}, {model.head_width()}, "Rotary positions turn pairs of numbers");

  if (model.task == Task::text_classification) {
    model.labels = read_labels(config);
    model.classification_function = model.text_function = classification_function(config, model.labels.size());
    read_score_function(config, model);
  } else if (model.task == Task::token_classification) {
    model.labels = read_labels(config);
  } else if (model.task == Task::image_classification) {
    model.labels = read_labels(config);
    model.classification_function = classification_function(config, model.labels.size());
  } else if (model.task == Task::question_answering) {
    if (const std::size_t outputs = read_labels(config).size(); outputs != 2)
      config.refuse(ErrorCode::config, "id2label", {"2 labels for the start and the end of an answer"}, {outputs});
  }
  if (model.task == Task::text_generation) read_generation(config, files, model);
  if (model.image) return model;
  read_sentence_files(files, model);
  if (model.num_labels() == 1) model.text_function = model.classification_function;
  read_token_types(files.tokenizer_config, model);
  return model;
}

}  // namespace attn::detail
