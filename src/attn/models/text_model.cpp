#include "attn/models/text_model.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>
#include <type_traits>

#include "attn/io/files.hpp"
#include "attn/io/gguf/reader.hpp"
#include "attn/io/safetensors_shards.hpp"
#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/fine_tuning.hpp"
#include "attn/models/model_gradient.hpp"
#include "attn/models/model_loader.hpp"
#include "attn/models/model_writer.hpp"
#include "attn/models/sentence_config.hpp"
#include "attn/models/text_model_parts.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

constexpr std::uintmax_t kMaxSmallFile = 64 << 20;

[[noreturn]] void refuse_file(ErrorCode code, const std::filesystem::path& path, std::initializer_list<detail::TextPart> expected,
                              std::initializer_list<detail::TextPart> got, std::string_view help = {}) {
  detail::fail(code, "TextModel::load", path.string(), expected, got, help);
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code none;
  return path.native().ends_with(".gguf") && !std::filesystem::is_directory(path, none);
}

void check_folder(const std::filesystem::path& path) {
  std::error_code none;
  if (is_gguf(path) || !std::filesystem::is_regular_file(path, none)) return;
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  refuse_file(ErrorCode::format, path, {"a folder"}, {"a file"}, detail::text({"Give its folder, ", folder}));
}

/// Joins folder and name as strings: libstdc++ 12 frees an invalid pointer if copying a path runs out of memory.
std::filesystem::path below(const std::filesystem::path& folder, std::string_view name) {
  std::filesystem::path::string_type joined = folder.native();
  if (!joined.empty() && !name.empty() && joined.back() != '/') joined += '/';
  joined.append(name.begin(), name.end());
  return {std::move(joined)};
}

using File = std::optional<std::vector<std::uint8_t>>;

void check_open(const detail::InputFile& file, const std::filesystem::path& path) {
  if (file.problem() != nullptr) refuse_file(ErrorCode::format, path, {"a regular file"}, {file.problem()});
}

/// Reads a whole file. Returns none if it does not exist and is not required.
File read_file(const std::filesystem::path& path, bool required = false) {
  std::error_code none;
  if (!required && !std::filesystem::exists(path, none)) return std::nullopt;
  detail::InputFile file(path);
  check_open(file, path);
  const std::uintmax_t size = file.size();
  // Refused, because treating an empty file as missing would select other settings.
  if (size == 0) refuse_file(ErrorCode::format, path, {"a file with content"}, {"empty"});
  if (size > kMaxSmallFile) refuse_file(ErrorCode::format, path, {"at most ", kMaxSmallFile, " bytes"}, {size, " bytes"});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) refuse_file(ErrorCode::format, path, {"a file"}, {"unreadable"});
  return bytes;
}

bool contains(const std::vector<std::uint8_t>& file, std::string_view text) {
  return std::search(file.begin(), file.end(), text.begin(), text.end()) != file.end();
}

bool is_language_model(const std::vector<std::uint8_t>& config) { return contains(config, "CausalLM") || contains(config, "LMHeadModel"); }

constexpr const char* kChatTemplate = "chat_template.jinja";

constexpr const char* kIndex = "model.safetensors.index.json";

/// Fails if the folder has weights in another known format instead of model.safetensors.
void check_weights(const std::filesystem::path& folder) {
  const auto there = [&](const char* name) {
    std::error_code none;
    return std::filesystem::exists(below(folder, name), none);
  };
  if (there("model.safetensors") || there(kIndex)) return;
  if (there("pytorch_model.bin"))
    refuse_file(ErrorCode::unsupported, folder, {"model.safetensors"}, {"a checkpoint with pytorch_model.bin, which can run code when it is read"},
                "Load it with transformers and save it with save_pretrained");
  if (there("onnx/model.onnx") || there("model.onnx"))
    refuse_file(ErrorCode::unsupported, folder, {"model.safetensors"}, {"a graph for onnxruntime"},
                "The checkpoint has it from which model.onnx was exported");
}

/// Passes model.safetensors to the loader; without it the files that the index names.
void stream_weights(const std::filesystem::path& folder, detail::ModelLoader& loader) {
  const std::filesystem::path path = below(folder, "model.safetensors"), index = below(folder, kIndex);
  const auto write = [&](std::span<const std::uint8_t> bytes) { loader.write(bytes); };
  std::error_code none;
  if (!std::filesystem::exists(path, none) && std::filesystem::exists(index, none))
    return detail::read_safetensors_shards("TextModel::load", index, write);
  detail::InputFile file(path);
  check_open(file, path);
  file.read_rest(write);
}

struct GgufFile {
  explicit GgufFile(const std::filesystem::path& path) : file(path), reader((check_open(file, path), file), file.size()) {}

  detail::InputFile file;
  detail::gguf::Reader reader;
};

}  // namespace

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
    detail::fail(ErrorCode::argument, "tokenize", "what the caller's tokenizer gave", {"(", texts, ",L) of everything"}, {"lists of other lengths"});
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

TextModel TextModel::load(const FilePath& path, const TextModelOptions& options) {
  const std::filesystem::path folder(path.text());
  check_folder(folder);
  auto parts = std::make_unique<Parts>();
  std::optional<GgufFile> gguf;
  if (is_gguf(folder)) gguf.emplace(folder);
  const auto read = [&](const std::string& name, bool required = false) {
    File file = gguf ? gguf->reader.read(name) : read_file(below(folder, name), required);
    if (file) parts->files.emplace_back(name, *file);
    return file;
  };
  const File modules = read("modules.json");
  const detail::ModuleFolders folders = detail::read_module_folders(modules);
  const auto slashed = [](const std::string& name) { return name.empty() ? name : name + '/'; };
  parts->base = slashed(folders.transformer);
  const std::filesystem::path base = below(folder, folders.transformer);
  const auto file_of = [&](const std::optional<std::string>& module, const char* name) {
    return module ? read(slashed(*module) + name) : std::nullopt;
  };
  const File config = read(parts->base + "config.json", true), pooling = file_of(folders.pooling, "config.json"),
             dense = file_of(folders.dense, "config.json"), dense_weights = file_of(folders.dense, "model.safetensors"),
             sentence_bert_config = modules ? read(parts->base + "sentence_bert_config.json") : std::nullopt,
             prompts = modules ? read("config_sentence_transformers.json") : std::nullopt,
             tokenizer_config = read(parts->base + "tokenizer_config.json"), tokenizer = read(parts->base + "tokenizer.json"),
             generation = is_language_model(*config) ? read(parts->base + "generation_config.json") : std::nullopt;
  // Callers apply it; save_pretrained() writes it again.
  if (is_language_model(*config) && (!tokenizer_config || !contains(*tokenizer_config, "\"chat_template\""))) read(parts->base + kChatTemplate);
  // transformers reads the next two files only if there is no added_tokens_decoder.
  const bool is_old = !tokenizer_config || !contains(*tokenizer_config, "\"added_tokens_decoder\"");
  const File special_tokens_map = is_old ? read(parts->base + "special_tokens_map.json") : std::nullopt,
             added_tokens = is_old ? read(parts->base + "added_tokens.json") : std::nullopt;
  detail::ModelLoader loader({.config = *config,
                              .modules = modules,
                              .pooling = pooling,
                              .sentence_bert_config = sentence_bert_config,
                              .tokenizer_config = tokenizer_config,
                              .prompts = prompts,
                              .dense = dense,
                              .dense_weights = dense_weights,
                              .generation = generation},
                             options.weights ? std::optional(*options.weights == Weights::int8) : std::nullopt);
  try {
    if (gguf && gguf->reader.no_tokenizer()) throw Error(*gguf->reader.no_tokenizer());
    if (!tokenizer) detail::fail(ErrorCode::unsupported, "tokenize", "the checkpoint", {"one with tokenizer.json"}, {"one without it"});
    parts->tokenizer = Tokenizer::parse(*tokenizer, tokenizer_config, loader.config().tokenizer_class(),
                                        {.special_tokens_map = special_tokens_map, .added_tokens = added_tokens});
    if (loader.config().lower_case && !parts->tokenizer->lower_cases()) {
      parts->tokenizer.reset();
      detail::fail(ErrorCode::unsupported, "sentence_bert_config.json", "do_lower_case", {"false"}, {"true"}, "This tokenizer keeps capitals");
    }
    if (parts->tokenizer->file_->padding.side == Side::left && !loader.config().is_causal) {
      parts->tokenizer.reset();
      detail::fail(ErrorCode::unsupported, "tokenizer_config.json", "padding_side", {"right"}, {"left"},
                   "Padding on the left would move tokens to other positions");
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    parts->no_tokenizer = error;
  }
  if (tokenizer && !parts->tokenizer && options.tokenizer && !loader.config().lower_case) {
    const auto bytes = [](const std::vector<std::uint8_t>& file) { return std::span<const std::uint8_t>(file); };
    parts->callers =
        options.tokenizer(*tokenizer, tokenizer_config ? std::optional(bytes(*tokenizer_config)) : std::nullopt, loader.config().tokenizer_class());
  }
  if (gguf) {
    gguf->reader.write_weights([&](std::span<const std::uint8_t> piece) { loader.write(piece); });
  } else {
    check_weights(base);
    stream_weights(base, loader);
  }
  parts->model = loader.finish();
  return TextModel(std::move(parts));
}

void TextModel::save_pretrained(const FilePath& path, const SaveOptions& options) const {
  const EncoderModel& model = encoder();
  const FileWeights weights = options.weights.value_or(this->weights() == Weights::int8 ? FileWeights::int8 : FileWeights::float32);
  detail::check_weights_as(model, weights);
  const std::filesystem::path folder(path.text());
  detail::StagedFiles files;
  try {
    for (const auto& [name, bytes] : parts_->files) {
      std::ostream& to = files.open(below(folder, name));
      if (name == parts_->base + "config.json")
        to << detail::config_as(bytes, model, weights);
      else
        to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    detail::write_weights(model, weights, files.open(below(folder, parts_->base + "model.safetensors")));
    files.commit();
  } catch (const std::system_error& error) {
    detail::fail(ErrorCode::argument, "save_pretrained", "path", {"a folder whose files can be written"}, {"unwritable (", error.what(), ")"});
  }
}

Weights TextModel::weights() const { return encoder().is_quantized() ? Weights::int8 : Weights::float32; }

template <class Tokenize>
EncodedTexts TextModel::encode_all(const TokenizeOptions& options, Tokenize tokenize) const {
  EncodedTexts encoding = tokenize(parts_->limited(options));
  if (!parts_->model->config().token_types) std::fill(encoding.token_type_ids.begin(), encoding.token_type_ids.end(), 0);
  return encoding;
}

/// Calls run(batch, rows) for batches of the texts text_at(i), which are of similar length.
template <class TextAt, class Run>
void TextModel::run_texts(std::size_t count, TextAt text_at, const TokenizeOptions& options, std::int64_t batch_size,
                          const std::function<void(std::int64_t, std::int64_t)>& on_progress, std::vector<bool>* truncated, Run run) const {
  using Text = std::remove_cvref_t<decltype(text_at(0))>;
  encode(std::vector<Text>(), 0, 0, options);  // checks options and checkpoint even if there are no texts
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
  TextBatch batch;
  ModelPlan plan;

  Parts(const EncoderModel& of, std::string_view op, const TokenIds& inputs, const ModelForwardOptions& options)
      : model(of), batch(op, inputs), plan(of.plan(op, batch.inputs(), options)) {}
};

detail::TextForward::TextForward(std::string_view op, const EncoderModel& model, const TokenIds& inputs, const TextForwardOptions& options,
                                 std::optional<EncoderTraceOptions> trace) {
  ModelForwardOptions given{.output_attentions = options.output_attentions,
                            .output_hidden_states = options.output_hidden_states,
                            .trace = std::move(trace),
                            .mask = options.mask,
                            .is_causal = options.is_causal,
                            .head_mask = options.head_mask,
                            .logits = options.output_logits,
                            .cache = options.cache};
  if (options.patch) {
    given.patched_layer = options.patch->layer;
    given.hidden_state = options.patch->hidden_state;
    given.merged = options.patch->merged;
  }
  parts_ = std::make_unique<Parts>(model, op, inputs, given);
}

detail::TextForward::~TextForward() = default;
const detail::EncoderPlan& detail::TextForward::encoder() const { return parts_->plan.encoder; }
const Shape& detail::TextForward::logits() const { return parts_->plan.logits; }
void detail::TextForward::run(const EncoderBuffers& buffers, float* logits) const {
  parts_->model.run(parts_->plan, parts_->batch.inputs(), buffers, logits);
}

namespace {

std::int64_t label_of(std::string_view op, std::string_view name, const std::vector<std::string>& labels,
                      const std::variant<std::int64_t, std::string>& given) {
  if (const std::int64_t* number = std::get_if<std::int64_t>(&given)) return *number;
  const auto& label = std::get<std::string>(given);
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found != labels.end()) return found - labels.begin();
  std::string all;
  for (const std::string& each : labels) all += (all.empty() ? "" : ", ") + each;
  if (all.empty()) detail::fail(ErrorCode::out_of_range, op, name, {"a number"}, {label}, "The checkpoint has no labels");
  detail::fail(ErrorCode::out_of_range, op, name, {"one of ", all}, {label});
}

}  // namespace

/// Returns the labels of a text classification head; empty for another head.
static std::vector<std::string> text_labels(const EncoderModel& model) {
  return model.config().task == Task::text_classification ? model.config().labels : std::vector<std::string>();
}

detail::TextGradient::TextGradient(EncoderModel& model, const TokenIds& inputs, const GradientOptions& options) {
  constexpr std::string_view kOp = "gradients";
  const GradientTarget& target = options.target;
  ModelGradientTarget given{.row = target.row, .component = target.component, .token = target.token};
  if (target.label) given.label = std::get<std::int64_t>(*target.label);
  const TextBatch batch(kOp, inputs);
  gradient_ = std::make_unique<ModelGradient>(kOp, model, batch.inputs(), given, options.embeddings, options.attentions, options.parameters);
}

detail::TextGradient::~TextGradient() = default;
const detail::ModelGradient& detail::TextGradient::operator*() const { return *gradient_; }

GradientOptions TextModel::numbered(const GradientOptions& options) const {
  if (!options.target.label) return options;
  const detail::ModelConfig& config = parts_->model->config();
  const std::string* const name = std::get_if<std::string>(&*options.target.label);
  GradientOptions given = options;
  if (name != nullptr && config.predicts_tokens()) {
    const std::optional<std::int64_t> id = token_to_id(*name);
    if (!id) detail::fail(ErrorCode::out_of_range, "gradients", "target.label", {"a token of the vocabulary"}, {*name});
    given.target.label = *id;
  } else {
    static const std::vector<std::string> kEnds{"start", "end"};
    given.target.label =
        label_of("gradients", "target.label", config.task == Task::question_answering ? kEnds : config.labels, *options.target.label);
  }
  return given;
}

TextAttribution TextModel::attribute(const std::string& text, const AttributeOptions& options) const {
  const detail::FloatEnvironment environment;
  constexpr std::string_view kOp = "attribute";
  const EncoderModel& model = encoder();
  EncodedTexts encoding = detail::naming_text("text", 0, [&] { return encode({text}, 0, 1, {}); });
  const std::vector<std::int64_t> ids(encoding.input_ids.begin(), encoding.input_ids.end());
  const std::vector<std::int64_t> types(encoding.token_type_ids.begin(), encoding.token_type_ids.end());
  std::vector<std::uint8_t> special;
  for (const auto& offset : encoding.offsets[0]) special.push_back(offset ? 0 : 1);
  detail::AttributionCall call{.ids = ids,
                               .types = types,
                               .special = special,
                               .pad_id = parts_->ask([](const auto& any) { return any.pad_id(); }),
                               .method = options.method,
                               .steps = options.steps};
  if (options.target) {
    call.target = label_of(kOp, "target", text_labels(model), *options.target);
  } else if (model.has_text_head()) {
    const detail::ModelInputs inputs{.shape = {1, static_cast<std::int64_t>(ids.size())}, .input_ids = ids, .token_type_ids = types};
    const detail::ModelPlan plan = model.plan(kOp, inputs, {});
    std::vector<float> hidden(ids.size() * static_cast<std::size_t>(plan.encoder.E)), logits(static_cast<std::size_t>(plan.logits[1]));
    model.run(plan, inputs, {hidden.data(), {}, {}}, logits.data());
    call.target = std::max_element(logits.begin(), logits.end()) - logits.begin();
  } else if (options.method != AttributionMethod::attention_rollout) {
    detail::fail(ErrorCode::argument, kOp, "target", {"the number of a component"}, {"missing"}, "The checkpoint has no head");
  }
  const detail::Attribution attribution(kOp, model, call);
  std::vector<double> sums(ids.size());
  std::vector<float> scores(ids.size());
  std::array<float, 2> values{};
  for (std::int64_t portion = 0; portion < attribution.portions(); ++portion) {
    std::array<float, 2> of_portion{};
    attribution.run(portion, scores.data(), of_portion.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(scores[i]);
    if (portion == 0) values = of_portion;
  }
  std::transform(sums.begin(), sums.end(), scores.begin(), [](double sum) { return static_cast<float>(sum); });
  TextAttribution result{std::move(encoding.tokens[0]), std::move(encoding.offsets[0]), std::move(scores)};
  if (options.method == AttributionMethod::integrated_gradients) result.delta = detail::convergence_delta(sums, values.data());
  return result;
}

namespace {

constexpr std::string_view kFineTune = "fine_tune";

void check_fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options) {
  if (examples.empty()) detail::fail(ErrorCode::argument, kFineTune, "examples", {"at least one example"}, {"empty"});
  if (options.epochs < 1) detail::fail(ErrorCode::config, kFineTune, "epochs", {"a number of at least 1"}, {options.epochs});
  detail::check_batch_size(kFineTune, options.batch_size);
  if (!(options.validation >= 0 && options.validation < 1))
    detail::fail(ErrorCode::config, kFineTune, "validation", {"a number from 0 up to, not including, 1"}, {options.validation});
  for (std::size_t i = 0; i < options.labels.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (options.labels[i] == options.labels[before])
        detail::fail(ErrorCode::argument, kFineTune, detail::text({"labels[", i, "]"}), {"another label"}, {options.labels[i], " again"});
}

/// Returns the labels in the options, else those of the model, else those in the examples.
std::vector<std::string> labels_of(const std::vector<FineTuneExample>& examples, const std::vector<std::string>& asked,
                                   const std::vector<std::string>& model) {
  if (!asked.empty()) return asked;
  if (!model.empty()) return model;
  std::set<std::string> names;
  std::int64_t most = 1;  // at least two classes
  for (const FineTuneExample& example : examples) {
    if (const auto* name = std::get_if<std::string>(&example.label)) names.insert(*name);
    if (const auto* number = std::get_if<std::int64_t>(&example.label)) most = std::max(most, *number);
  }
  if (!names.empty()) return {names.begin(), names.end()};
  if (most > std::ssize(examples) && most > 1)
    detail::fail(ErrorCode::out_of_range, kFineTune, "labels", {"at most as many labels as examples"}, {most + 1});
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i <= most; ++i) labels.push_back(detail::text({"LABEL_", i}));
  return labels;
}

std::vector<double> targets_of(const std::vector<FineTuneExample>& examples, const std::vector<std::string>& labels) {
  std::vector<double> targets;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const std::string where = detail::text({"examples[", i, "].label"});
    double target = 0;
    if (const auto* number = std::get_if<double>(&examples[i].label))
      target = *number;
    else if (const auto* name = std::get_if<std::string>(&examples[i].label))
      target = static_cast<double>(label_of(kFineTune, where, labels, *name));
    else
      target = static_cast<double>(std::get<std::int64_t>(examples[i].label));
    targets.push_back(target);
  }
  return targets;
}

}  // namespace

FineTuneResult TextModel::fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options) {
  EncoderModel& model = encoder();
  const detail::ModelConfig& config = model.config();
  check_fine_tune(examples, options);
  model.check_gradients(kFineTune);
  const std::vector<std::string> before = text_labels(model), labels = labels_of(examples, options.labels, before);
  const bool is_new = labels != before;
  const std::vector<double> targets = targets_of(examples, labels);
  const std::vector<std::size_t> order = detail::training_order(examples.size(), options.seed, 0);
  const auto held_out =
      std::min(examples.size() - 1, static_cast<std::size_t>(std::llround(options.validation * static_cast<double>(examples.size()))));
  const std::vector<std::size_t> validating(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(held_out)),
      training(order.begin() + static_cast<std::ptrdiff_t>(held_out), order.end());
  const auto size = static_cast<std::size_t>(options.batch_size);
  const auto per_epoch = static_cast<std::int64_t>((training.size() - 1) / size + 1), steps = options.epochs * per_epoch;
  const bool of_head = options.layers == 0;
  const detail::FineTuningOptions given{.steps = steps,
                                        .learning_rate = options.learning_rate.value_or(of_head ? 1e-3 : 5e-5),
                                        .weight_decay = options.weight_decay,
                                        .layers = options.layers,
                                        .seed = options.seed};
  const detail::HeadLoss loss =
      detail::check_fine_tuning(kFineTune, model, given, is_new ? std::optional<std::int64_t>(std::ssize(labels)) : std::nullopt);
  detail::check_targets(kFineTune, targets, std::ssize(labels), loss);
  std::vector<detail::TextRow> rows;
  const TokenizeOptions limited = parts_->limited({});
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const FineTuneExample& example = examples[i];
    rows.push_back(detail::naming_text(detail::text({"examples[", i, "]"}), i, [&] {
      return example.text_pair ? parts_->row(std::pair(example.text, *example.text_pair), 0, limited) : parts_->row(example.text, 0, limited);
    }));
    rows.back().index = i;
  }
  if (is_new) model.set_head(labels, options.seed);
  detail::FineTuning tuning(kFineTune, model, given);

  const auto width = static_cast<std::size_t>(config.hidden_size);
  const auto batch_of = [&](std::span<const std::size_t> places) {
    std::vector<detail::TextRow> some;
    for (const std::size_t place : places) some.push_back(rows[place]);
    std::stable_sort(some.begin(), some.end(), [](const detail::TextRow& a, const detail::TextRow& b) { return a.ids.size() > b.ids.size(); });
    return some;
  };
  const auto targets_at = [&](std::span<const detail::TextRow> some) {
    std::vector<double> of_rows;
    for (const detail::TextRow& row : some) of_rows.push_back(targets[row.index]);
    return of_rows;
  };
  const auto in_portions = [&](std::span<const std::size_t> places, const auto& run) {
    for (std::size_t first = 0; first < places.size(); first += size) run(batch_of(places.subspan(first, std::min(size, places.size() - first))));
  };
  std::vector<float> pooled(of_head ? rows.size() * width : 0);
  if (of_head)
    in_portions(order, [&](const std::vector<detail::TextRow>& some) {
      std::vector<float> part(some.size() * width);
      tuning.pool(detail::TextBatch(std::span(some)).inputs(), part.data());
      for (std::size_t i = 0; i < some.size(); ++i) std::copy_n(part.data() + i * width, width, pooled.data() + some[i].index * width);
    });
  const auto pooled_at = [&](std::span<const detail::TextRow> some) {
    std::vector<float> of_rows;
    for (const detail::TextRow& row : some) of_rows.insert(of_rows.end(), pooled.data() + row.index * width, pooled.data() + (row.index + 1) * width);
    return of_rows;
  };

  FineTuneResult result;
  FineTuneProgress progress{.steps = steps};
  for (progress.epoch = 1; progress.epoch <= options.epochs; ++progress.epoch) {
    std::vector<std::size_t> now;
    for (const std::size_t place : detail::training_order(training.size(), options.seed, static_cast<std::uint32_t>(progress.epoch)))
      now.push_back(training[place]);
    double sum = 0;
    for (std::int64_t i = 0; i < per_epoch; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * size;
      const std::vector<detail::TextRow> some = batch_of(std::span(now).subspan(first, std::min(size, now.size() - first)));
      progress.loss =
          of_head ? tuning.step(pooled_at(some), targets_at(some)) : tuning.step(detail::TextBatch(std::span(some)).inputs(), targets_at(some));
      ++progress.step;
      const detail::FloatEnvironment environment;
      sum += progress.loss;
      result.loss = sum / static_cast<double>(i + 1);
      if (i + 1 == per_epoch && !validating.empty()) {
        detail::Judgement judgement;
        in_portions(validating, [&](const std::vector<detail::TextRow>& part) {
          const detail::Judgement of_part =
              of_head ? tuning.judge(pooled_at(part), targets_at(part)) : tuning.judge(detail::TextBatch(std::span(part)).inputs(), targets_at(part));
          judgement.loss += of_part.loss;
          if (of_part.right) judgement.right = judgement.right.value_or(0) + *of_part.right;
        });
        const auto count = static_cast<double>(validating.size());
        progress.validation_loss = judgement.loss / count;
        if (judgement.right) result.validation_accuracy = progress.validation_accuracy = static_cast<double>(*judgement.right) / count;
      }
      if (options.on_progress && !options.on_progress(progress)) return result;
      progress.validation_loss = progress.validation_accuracy = std::nullopt;
    }
  }
  return result;
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
  MemoryEstimate memory("embed");
  memory.add("the result", shape);
  memory.check();
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
              std::vector<float> part(rows.size() * width);
              model.embed(batch.inputs(), how, part.data());
              for (std::size_t i = 0; i < rows.size(); ++i) std::copy_n(part.data() + i * width, width, y + rows[i].index * width);
            });
}

template <class Text>
std::vector<std::vector<LabelScore>> TextModel::classify_all(const std::vector<Text>& texts, const ClassifyOptions& options) const {
  detail::check_batch_size("classify", options.batch_size);
  if (options.top_k && *options.top_k < 1) detail::fail(ErrorCode::config, "classify", "top_k", {"a number of at least 1"}, {*options.top_k});
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
                std::stable_sort(of_text.begin(), of_text.end(), [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; });
                if (options.top_k) of_text.resize(std::min(of_text.size(), static_cast<std::size_t>(*options.top_k)));
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
std::map<std::string, std::vector<std::uint8_t>> detail::files_of(const TextModel& model) {
  std::map<std::string, std::vector<std::uint8_t>> files;
  for (const auto& [name, bytes] : model.parts_->files)
    if (name.starts_with(model.parts_->base)) files.emplace(name.substr(model.parts_->base.size()), bytes);
  return files;
}

const std::vector<std::string>& TextModel::notes() const { return parts_->model->config().notes; }
const std::vector<std::string>& TextModel::labels() const { return parts_->model->config().labels; }
std::int64_t TextModel::max_length() const { return parts_->model->config().default_length; }

}  // namespace attn
