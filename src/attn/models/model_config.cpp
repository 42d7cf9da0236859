#include "attn/models/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "attn/models/family.hpp"
#include "attn/models/quantization_config.hpp"
#include "attn/models/sentence_config.hpp"
#include "attn/ops/elementary.hpp"

namespace attn::detail {
namespace {

const Json kNone{Json::Object()};
// These limit the memory for tables, angles and buckets, which are allocated per position before missing weights reveal a wrong value.
constexpr std::int64_t kMaxLabels = 100'000, kMaxPositions = 1 << 20;
constexpr const Family* kFamilies[] = {&kBert,    &kDistilBert, &kRoberta, &kCamembert, &kData2VecText, &kMpnet, &kModernBert, &kErnie,
                                       &kElectra, &kDeberta,    &kAlbert,  &kNomicBert, &kGte,          &kNew,   &kGpt2,       &kLlama,
                                       &kMistral, &kQwen2,      &kQwen3,   &kGptNeoX,   &kGemma2,       &kGemma3};

const Family& family_of(const ConfigReader& config) {
  const std::string_view type = config.string("model_type", "");
  if (type == "longformer" || type == "big_bird")
    config.refuse(ErrorCode::unsupported, "model_type", {"an encoder with full attention"}, {type, ", which has sparse attention"},
                  "modernbert, nomic_bert, new and jina-embeddings-v2 take texts as long");
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
    case Task::embedding:
      break;
  }
  return kNoHead;
}

/// Derives the task from the class name in `architectures`.
Task task_of(const ConfigReader& config, const Family& family) {
  const Json* list = config.find("architectures");
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return Task::embedding;
  // Pre-training heads are read as fill-mask if the family has such a head.
  constexpr std::pair<std::string_view, Task> kEnds[] = {{"ForSequenceClassification", Task::text_classification},
                                                         {"ForTokenClassification", Task::token_classification},
                                                         {"ForMaskedLM", Task::fill_mask},
                                                         {"ForPreTraining", Task::fill_mask},
                                                         {"ForQuestionAnswering", Task::question_answering},
                                                         {"ForMultipleChoice", Task::multiple_choice},
                                                         {"ForCausalLM", Task::text_generation},
                                                         {"LMHeadModel", Task::text_generation},
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

/// Names in id2label, or LABEL_0, LABEL_1, … if there are none, as in transformers. In files that count from 1, label 0 keeps its default name.
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

/// Reads the ids of tokens that end a text: a number, a list, or null. No text gets an id outside the vocabulary, so these have no effect.
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

/// Adds a note about each setting of generation_config.json that changes transformers' greedy text and that attn does not read.
void note_generation(const ConfigReader& config, ModelConfig& model) {
  struct Setting {
    const char* name;
    double no_effect;
  };
  constexpr Setting kSettings[] = {
      {"repetition_penalty", 1}, {"num_beams", 1}, {"no_repeat_ngram_size", 0}, {"min_length", 0}, {"min_new_tokens", 0}};
  constexpr const char* kOthers[] = {
      "suppress_tokens",     "begin_suppress_tokens",           "bad_words_ids", "sequence_bias", "forced_bos_token_id",
      "forced_eos_token_id", "exponential_decay_length_penalty"};
  const auto note = [&](const char* name, std::string_view help) {
    model.notes.push_back(text({"generate: ", name, " of generation_config.json is not used", help}));
  };
  for (const auto& [name, no_effect] : kSettings) {
    const Json* const value = config.find(name);
    if (value == nullptr || (value->number() != nullptr && *value->number() == no_effect)) continue;
    note(name, name == kSettings[0].name ? ": pass it as an option" : "");
  }
  for (const char* const name : kOthers)
    if (const Json* const value = config.find(name); value != nullptr && (value->array() == nullptr || !value->array()->empty())) note(name, "");
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
  // The same division in floating point as in transformers.
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

Activation ConfigReader::activation(const char* name) const {
  const std::string_view given = string(name, "gelu");
  if (given == "gelu" || given == "gelu_python") return Activation::gelu;
  if (given == "gelu_new" || given == "gelu_fast" || given == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (given == "relu") return Activation::relu;
  if (given == "silu" || given == "swish") return Activation::silu;
  if (given == "tanh") return Activation::tanh;
  if (given == "mish") return Activation::mish;
  if (given == "quick_gelu") return Activation::quick_gelu;
  refuse(ErrorCode::unsupported, name, {"one of gelu, gelu_new, gelu_pytorch_tanh, relu, silu, tanh, mish, quick_gelu"}, {given});
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
  const Json* const types = find("layer_types");
  if (types == nullptr) return otherwise;
  const Json::Array* const list = types->array();
  const std::string* const type = list != nullptr && layer < list->size() ? (*list)[layer].string() : nullptr;
  if (type != nullptr && *type == "sliding_attention") return true;
  if (type == nullptr || *type != "full_attention")
    refuse(ErrorCode::unsupported, "layer_types", {"full_attention or sliding_attention for each layer"},
           {type != nullptr ? *type : std::string(types->kind())});
  return false;
}

void configure_sizes(const ConfigReader& config, ModelConfig& model, const SizeNames& names) {
  model.vocab_size = config.size("vocab_size");
  model.hidden_size = config.size(names.hidden_size);
  model.num_hidden_layers = config.whole(names.num_hidden_layers, 1, kMaxLayers);
  model.num_attention_heads = config.size(names.num_attention_heads);
  if (names.intermediate_size != nullptr) model.intermediate_size = config.size(names.intermediate_size);
  model.max_position_embeddings = model.max_length = config.whole(names.positions, 1, kMaxPositions, names.max_position_embeddings);
  // pad_token_id matters only for gradients, so an id outside the table is treated as none.
  const Json* const pad = config.find("pad_token_id");
  const double id = pad != nullptr && pad->number() != nullptr ? *pad->number()
                    : config.is_null("pad_token_id")           ? -1
                                                               : static_cast<double>(names.pad_token_id);
  if (id >= 0 && id < static_cast<double>(model.vocab_size)) model.pad_token_id = static_cast<std::int64_t>(id);
  if (names.hidden_act != nullptr) model.hidden_act = config.activation(names.hidden_act);
  if (names.layer_norm_eps != nullptr)
    model.layer_norm_eps = static_cast<float>(config.positive(names.layer_norm_eps, static_cast<double>(model.layer_norm_eps)));
}

void configure_rotary(ModelConfig& model, double theta) {
  model.positions = PositionRows::none;
  model.distances.assign(static_cast<std::size_t>(model.num_hidden_layers), {.rope_theta = theta});
}

/// A value outside of the parameters counts more, unless they are nested by kind of layer.
static std::int64_t original_positions(const ConfigReader& config, const ConfigReader& rope, bool is_nested, std::int64_t positions) {
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const std::int64_t own = rope.whole(kOriginal, 1, 0x7fffffff, positions);
  return is_nested ? own : config.whole(kOriginal, 1, 0x7fffffff, own);
}

/// Reads YaRN with transformers' defaults.
static RopeScaling yarn_of(const ConfigReader& rope, std::int64_t original, std::int64_t positions) {
  RopeScaling yarn{.yarn_positions = original,
                   .fast = rope.positive("beta_fast", 32),
                   .slow = rope.positive("beta_slow", 1),
                   .whole = !rope.is_null("truncate") && rope.flag("truncate", true)};
  yarn.factor = rope.positive("factor", static_cast<double>(positions) / static_cast<double>(yarn.yarn_positions));
  const auto magnitude = [&](double weight) { return yarn.factor > 1 ? 0.1 * weight * log_of(yarn.factor) + 1 : 1; };
  const bool has_both = rope.has("mscale") && rope.has("mscale_all_dim");
  const double otherwise = has_both ? magnitude(rope.positive("mscale", 1)) / magnitude(rope.positive("mscale_all_dim", 1)) : magnitude(1);
  yarn.magnitude = static_cast<float>(rope.positive("attention_factor", otherwise));
  return yarn;
}

void configure_rope_parameters(const ConfigReader& config, ModelConfig& model, double theta, double share) {
  const ConfigReader parameters = config.object("rope_parameters"), scaling = config.object("rope_scaling");
  // As in transformers, the older name counts more unless it is empty.
  const bool is_scaled = !scaling.is_empty();
  const ConfigReader& all = is_scaled ? scaling : parameters;
  const bool is_nested = parameters.has("full_attention") || all.has("full_attention");
  const ConfigReader full = parameters.object("full_attention"), of_full = all.object("full_attention");
  const ConfigReader& rope = all.has("full_attention") ? of_full : all;
  const char* const kind = rope.has("rope_type") ? "rope_type" : "type";
  const std::string_view type = rope.string(kind, "default");
  constexpr const char* kShare = "partial_rotary_factor";
  for (const char* const name : {"mixed_b", kShare})
    if (rope.has(name) && (name != kShare || share == 0)) rope.refuse(ErrorCode::unsupported, name, {"null"}, {"given"});
  if (share > 0) {
    const auto width = static_cast<double>(model.head_width());
    share = rope.positive(kShare, share) * width;
    model.rotary_width = share <= width ? static_cast<std::int64_t>(share) : 0;
    if (model.rotary_width < 2 || model.rotary_width % 2 != 0)
      rope.refuse(ErrorCode::config, kShare, {"an even number of a head's ", width, " columns"}, {share, " of them"});
  }
  // GPT-NeoX has a name of its own for the base.
  if (share == 0) theta = config.positive("rope_theta", theta);
  theta = rope.positive("rope_theta", is_scaled ? full.positive("rope_theta", theta) : theta);
  // Other kinds do not read it.
  const auto original = [&] { return original_positions(config, rope, is_nested, model.max_position_embeddings); };
  if (type == "linear" || (type == "ntk" && !model.is_causal)) {
    const double factor = rope.positive("factor", 1);
    const bool is_ntk = type == "ntk" && factor > 1;  // a larger base, and the rest of the factor for all pairs
    if (is_ntk) theta *= factor;
    const auto D = static_cast<double>(model.hidden_size) / static_cast<double>(model.num_attention_heads);
    model.rope.factor = is_ntk ? pow_of(factor, 2 / D) : type == "ntk" ? 1 : factor;
  } else if (type == "llama3") {
    model.rope = {.factor = rope.positive("factor", 1),
                  .original_positions = original(),
                  .low_frequency_factor = rope.positive("low_freq_factor", 1),
                  .high_frequency_factor = rope.positive("high_freq_factor", 4)};
    if (model.rope.high_frequency_factor <= model.rope.low_frequency_factor)
      rope.refuse(ErrorCode::config, "high_freq_factor", {"a number above low_freq_factor ", model.rope.low_frequency_factor},
                  {model.rope.high_frequency_factor});
  } else if (type == "yarn") {
    if (theta <= 1) rope.refuse(ErrorCode::config, "rope_theta", {"a number above 1"}, {theta});
    model.rope = yarn_of(rope, original(), model.max_position_embeddings);
  } else if (type != "default" && type != "dynamic") {  // dynamic differs from default only beyond max_position_embeddings
    rope.refuse(ErrorCode::unsupported, kind,
                {model.is_causal ? "default, dynamic, linear, llama3 or yarn" : "default, dynamic, linear, llama3, ntk or yarn"}, {type});
  }
  configure_rotary(model, theta);
}

void configure_dropout(const ConfigReader& config, ModelConfig& model, float otherwise) {
  const float hidden = config.number("hidden_dropout_prob", otherwise);
  model.dropout = {.attention_weights = config.number("attention_probs_dropout_prob", otherwise),
                   .attention_output = hidden,
                   .feed_forward_output = hidden,
                   .embeddings = hidden,
                   .classifier = config.number("classifier_dropout", hidden)};
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
  } else if (model.task == Task::question_answering) {
    if (const std::size_t outputs = read_labels(config).size(); outputs != 2)
      config.refuse(ErrorCode::config, "id2label", {"2 labels for the start and the end of an answer"}, {outputs});
  }
  if (model.task == Task::text_generation) {
    read_eos(config, model);
    if (files.generation) {
      constexpr const char* kFile = "generation_config.json";
      const Json generation = parse_python_json(kFile, *files.generation, kMaxConfig);
      const ConfigReader reader(kFile, generation);
      read_eos(reader, model);
      note_generation(reader, model);
    }
  }
  read_sentence_files(files, model);
  if (model.num_labels() == 1) model.text_function = model.classification_function;
  read_token_types(files.tokenizer_config, model);
  return model;
}

}  // namespace attn::detail
