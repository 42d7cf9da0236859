#include "attn/models/sentence_config.hpp"

#include <algorithm>
#include <array>

#include "attn/io/folder_name.hpp"
#include "attn/models/family.hpp"

namespace attn::detail {
namespace {

struct Mode {
  std::string_view name;  ///< value of pooling_mode
  std::string_view flag;  ///< suffix of pooling_mode_ in older files
  Pooling pooling;
};

// In the order of concatenation.
constexpr std::array<Mode, 6> kModes{{{"cls", "cls_token", Pooling::cls},
                                      {"max", "max_tokens", Pooling::max},
                                      {"mean", "mean_tokens", Pooling::mean},
                                      {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
                                      {"weightedmean", "weightedmean_tokens", Pooling::weightedmean},
                                      {"lasttoken", "lasttoken", Pooling::lasttoken}}};

Json read_file(const char* file, const ModelFiles::File& bytes) {
  Json json = parse_python_json(file, *bytes, kMaxConfig);
  if (json.object() == nullptr) ConfigReader(file, json).refuse(ErrorCode::format, "the file", {"an object"}, {json.kind()});
  return json;
}

constexpr std::size_t kMostModules = 8;

struct Modules {
  static constexpr std::array<std::string_view, 4> kSteps{"Transformer", "Pooling", "Dense", "Normalize"};  ///< in this order
  static constexpr std::size_t kDense = 2;
  ModuleFolders folders;
  bool normalize = false;
};

Modules read_modules(const ModelFiles::File& bytes) {
  const Json json = parse_python_json("modules.json", *bytes, kMaxConfig);
  const ConfigReader reader("modules.json", json);
  if (json.array() == nullptr) reader.refuse(ErrorCode::format, "the file", {"an array"}, {json.kind()});
  // Files are read before the memory limit is checked.
  if (json.array()->size() > kMostModules)
    reader.refuse(ErrorCode::unsupported, "the number of modules", {"at most ", kMostModules}, {json.array()->size()});
  Modules modules;
  std::size_t step = 0;
  for (std::size_t i = 0; i < json.array()->size(); ++i) {
    const Json& module = (*json.array())[i];
    const Json *given = module.find("type"), *path = module.find("path");
    const std::string type = text({given != nullptr ? words_of(*given) : TextPart("missing")}), kind = type.substr(type.rfind('.') + 1);
    const std::size_t known = static_cast<std::size_t>(
        std::find(Modules::kSteps.begin() + static_cast<std::ptrdiff_t>(step), Modules::kSteps.end(), kind) - Modules::kSteps.begin());
    if (known == Modules::kSteps.size() || (i < 2 && known != i))
      reader.refuse(ErrorCode::unsupported, text({"module ", i}).c_str(), {"Transformer, Pooling, any number of Dense, then optionally Normalize"},
                    {type}, "For other modules pool the result of forward() yourself");
    const std::string folder = path != nullptr ? std::string(module_folder(text({words_of(*path)}))) : "";
    if (!is_folder_name(folder)) reader.refuse(ErrorCode::unsupported, text({"the path of ", kind}).c_str(), {"the name of a folder"}, {folder});
    if (known == 0) modules.folders.transformer = folder;
    if (known == 1) modules.folders.pooling = folder;
    if (known == Modules::kDense) modules.folders.denses.push_back(folder);
    modules.normalize = known > Modules::kDense;
    step = known == Modules::kDense ? known : known + 1;
  }
  return modules;
}

/// pooling_mode is a name or a list; older files have one flag per mode.
void read_pooling(const ModelFiles::File& bytes, ModelConfig& model) {
  constexpr const char *kFile = "1_Pooling/config.json", *kPrefix = "pooling_mode_", *kWhat = "the pooling mode";
  const Json json = read_file(kFile, bytes);
  const ConfigReader reader(kFile, json);
  std::vector<std::string> names;
  const Json* mode = reader.find("pooling_mode");
  if (mode != nullptr && mode->array() != nullptr)
    for (const Json& each : *mode->array()) names.push_back(text({words_of(each)}));
  else if (mode != nullptr)
    names.emplace_back(reader.string("pooling_mode", ""));
  else
    for (const Mode& known : kModes)
      if (reader.flag(text({kPrefix, known.flag}).c_str(), false)) names.emplace_back(known.name);
  model.poolings.clear();
  for (const std::string& name : names) {
    const auto found = std::find_if(kModes.begin(), kModes.end(), [&](const Mode& known) { return known.name == name; });
    if (found == kModes.end() || model.poolings.size() == kModes.size())
      reader.refuse(ErrorCode::unsupported, kWhat, {"some of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken"}, {name});
    model.poolings.push_back(found->pooling);
  }
  if (model.poolings.empty()) model.poolings = {Pooling::mean};
  model.include_prompt = reader.flag("include_prompt", true);
}

std::optional<Activation> torch_activation(std::string_view path) {
  constexpr std::pair<std::string_view, Activation> kClasses[] = {
      {"Identity", Activation::identity}, {"Tanh", Activation::tanh}, {"Sigmoid", Activation::sigmoid}, {"ReLU", Activation::relu},
      {"GELU", Activation::gelu},         {"SiLU", Activation::silu}, {"Mish", Activation::mish}};
  const std::string_view last = path.substr(path.rfind('.') + 1);
  for (const auto& [name, activation] : kClasses)
    if (path.starts_with("torch.") && last == name) return activation;
  return std::nullopt;
}

void read_dense(const std::string& folder, const ModelFiles::File& bytes, ModelConfig& model) {
  const std::string file = text({folder, "/config.json"});
  const Json json = read_file(file.c_str(), bytes);
  const ConfigReader reader(file.c_str(), json);
  DenseConfig dense{
      .in_features = reader.size("in_features"), .out_features = reader.size("out_features"), .bias = reader.flag("bias", true), .folder = folder};
  const std::string_view path = reader.string("activation_function", "torch.nn.modules.activation.Tanh");
  const std::optional<Activation> activation = torch_activation(path);
  if (!activation)
    reader.refuse(ErrorCode::unsupported, "activation_function", {"Identity, Tanh, Sigmoid, ReLU, GELU, SiLU or Mish of torch.nn"}, {path});
  dense.activation = *activation;
  for (const char* const name : {"module_input_name", "module_output_name"}) reader.only(name, "sentence_embedding");
  reader.only_false("use_residual");
  const std::int64_t given = model.whole_embedding_size(model.poolings.size());
  if (dense.in_features != given)
    reader.refuse(ErrorCode::config, "in_features",
                  {given, model.denses.empty() ? ", the width of the pooled vector" : ", the output width of the Dense before it"},
                  {dense.in_features});
  model.denses.push_back(std::move(dense));
}

/// The value is the path of a torch.nn class.
void read_activation(const ConfigReader& reader, const char* name, ModelConfig& model) {
  if (!reader.has(name) || model.labels.empty()) return;
  const std::string_view path = reader.string(name, "");
  const std::optional<Activation> activation = torch_activation(path);
  if (activation == Activation::identity)
    model.classification_function = ClassificationFunction::none;
  else if (activation == Activation::sigmoid)
    model.classification_function = ClassificationFunction::sigmoid;
  else if (path.starts_with("torch.") && path.ends_with(".Softmax"))
    model.classification_function = ClassificationFunction::softmax;
  else
    reader.refuse(ErrorCode::unsupported, name, {"Identity, Sigmoid or Softmax of torch.nn"}, {path});
}

void read_prompts(const ModelFiles::File& bytes, ModelConfig& model) {
  constexpr const char* kFile = "config_sentence_transformers.json";
  const Json json = read_file(kFile, bytes);
  const ConfigReader reader(kFile, json);
  const ConfigReader prompts = reader.object("prompts");
  if (const Json* all = reader.find("prompts"))
    for (const auto& given : *all->object()) {
      const std::string& name = given.first;
      const auto known = std::find_if(model.prompts.begin(), model.prompts.end(), [&](const Prompt& each) { return each.name == name; });
      Prompt& prompt = known != model.prompts.end() ? *known : model.prompts.emplace_back(Prompt{name, ""});
      if (given.second.string() == nullptr && !given.second.is_null())
        prompts.refuse(ErrorCode::config, name.c_str(), {"a string"}, {given.second.kind()});
      prompt.text = given.second.is_null() ? "" : *given.second.string();
    }
  if (reader.has("default_prompt_name")) {
    const std::string_view name = reader.string("default_prompt_name", "");
    const auto found = std::find_if(model.prompts.begin(), model.prompts.end(), [&](const Prompt& prompt) { return prompt.name == name; });
    if (found == model.prompts.end()) reader.refuse(ErrorCode::config, "default_prompt_name", {"a name in prompts"}, {name});
    model.default_prompt = found->text;
  }
  read_activation(reader, "activation_fn", model);
  if (reader.has("truncate_dim")) model.truncate_dim = reader.size("truncate_dim");
}

void check_transformer(const ConfigReader& reader, ModelConfig& model) {
  const std::string_view output = reader.string("module_output_name", "token_embeddings");
  if (output != "token_embeddings" && output != "scores")
    reader.refuse(ErrorCode::unsupported, "module_output_name", {"token_embeddings or scores"}, {output});
  for (const char* const name : {"processing_kwargs", "tokenizer_args"})
    if (const Json* const given = reader.find(name); given != nullptr && (given->object() == nullptr || !given->object()->empty()))
      model.notes.push_back(text({"sentence_bert_config.json: ", name, " is not used"}));
}

/// From sentence_bert_config.json, else tokenizer_config.json, else the number of positions.
void read_lengths(const ModelFiles& files, ModelConfig& model) {
  const auto read = [&](const ConfigReader& reader, const char* name) {
    const Json* value = reader.find(name);
    // transformers writes 10^30 for no limit.
    if (model.default_length > 0 || value == nullptr || (value->number() != nullptr && *value->number() > 0x7fffffff)) return;
    model.default_length = reader.size(name);
  };
  if (files.sentence_bert_config) {
    constexpr const char* kFile = "sentence_bert_config.json";
    // The file may contain null.
    Json json = parse_python_json(kFile, *files.sentence_bert_config, kMaxConfig);
    if (!json.is_null()) json = read_file(kFile, files.sentence_bert_config);
    const ConfigReader reader(kFile, json);
    model.lower_case = reader.flag("do_lower_case", false);
    check_transformer(reader, model);
    read(reader, "max_seq_length");
  }
  if (files.tokenizer_config) {
    const Json json = read_file("tokenizer_config.json", files.tokenizer_config);
    for (const char* const name : {"model_max_length", "max_len"}) read({"tokenizer_config.json", json}, name);
  }
  model.default_length = model.default_length > 0 ? std::min(model.default_length, model.max_length) : model.max_length;
}

}  // namespace

ModuleFolders read_module_folders(const ModelFiles::File& modules) { return modules ? read_modules(modules).folders : ModuleFolders(); }

void read_sentence_files(const ModelFiles& files, ModelConfig& model) {
  if (files.modules) {
    const Modules modules = read_modules(files.modules);
    const auto& [transformer, pooling, denses] = modules.folders;
    const auto require = [&](const ModelFiles::File& file, const std::string& folder, std::string_view name) {
      if (file) return;
      const Json none;
      ConfigReader("modules.json", none)
          .refuse(ErrorCode::format, text({folder, "/", name}).c_str(), {"a file"}, {"missing"}, "modules.json names its folder");
    };
    if (pooling) {
      require(files.pooling, *pooling, "config.json");
      read_pooling(files.pooling, model);
    }
    for (std::size_t i = 0; i < denses.size(); ++i) {
      const ModelFiles::Dense given = i < files.denses.size() ? files.denses[i] : ModelFiles::Dense();
      require(given.config, denses[i], "config.json");
      require(given.weights, denses[i], "model.safetensors");
      read_dense(denses[i], given.config, model);
    }
    model.normalize = modules.normalize;
  }
  model.prompts = {{"query", ""}, {"document", ""}};
  if (files.prompts) read_prompts(files.prompts, model);
  read_lengths(files, model);
}

void read_score_function(const ConfigReader& config, ModelConfig& model) {
  read_activation(config, "sbert_ce_default_activation_function", model);
  const ConfigReader written = config.object("sentence_transformers");
  read_activation(written, "activation_fn", model);
}

void read_token_types(const ModelFiles::File& tokenizer_config, ModelConfig& model) {
  // A single row: all types are 0.
  if (model.type_vocab_size < 2) return void(model.token_types = model.type_vocab_size == 0);
  std::string made_for(model.family->tokenizer_class);
  model.token_types = false;
  if (tokenizer_config) {
    constexpr const char* kFile = "tokenizer_config.json";
    const Json json = read_file(kFile, tokenizer_config);
    const ConfigReader reader(kFile, json);
    made_for = reader.string("tokenizer_class", made_for);
    if (const Json* names = reader.find("model_input_names"); names != nullptr && names->array() != nullptr) {
      const Json::Array& list = *names->array();
      model.token_types =
          std::any_of(list.begin(), list.end(), [](const Json& name) { return name.string() != nullptr && *name.string() == "token_type_ids"; });
      return;
    }
  }
  model.token_types = made_for.starts_with("BertTokenizer") || made_for.starts_with("ElectraTokenizer") || made_for.starts_with("DebertaV2Tokenizer");
}

}  // namespace attn::detail
