#include "attn/models/model_writer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "attn/io/files.hpp"
#include "attn/io/float_formats.hpp"
#include "attn/io/json_text.hpp"
#include "attn/io/safetensors_layout.hpp"
#include "attn/models/family.hpp"
#include "attn/models/model_folder.hpp"

// web/lib/src/model/export_model.ts is the counterpart.
namespace attn::detail {
namespace {

constexpr std::string_view kWriterOp = "save_pretrained";

std::vector<float> values_of(const StateTensor& tensor) {
  std::vector<float> values(tensor.size());
  tensor.get(values.data());
  return values;
}

/// Image models have no words.
bool is_words(const EncoderModel& model, std::string_view name) {
  const std::string_view words = model.config().family->names.word_embeddings;
  return !words.empty() && name.ends_with(text({words, ".weight"}));
}

template <class Number>
void put(std::ostream& to, const std::vector<Number>& numbers) {
  to.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
}

/// `ignore` has poolers and heads that are not written, so that transformers does not look for their int8 weights.
std::string quantization_of(const EncoderModel& model) {
  const std::string weights =
      R"("format":"int-quantized","weights":{"num_bits":8,"type":"int","symmetric":true,"strategy":"channel","dynamic":false},)";
  const std::string inputs = R"({"num_bits":8,"type":"int","symmetric":false,"strategy":"token","dynamic":true})";
  std::string groups = R"("group_0":{"targets":["Linear"],)" + weights + R"("input_activations":)" + inputs + R"(,"output_activations":null})";
  for (const auto& [name, tensor] : model.tensors())
    if (is_words(model, name) && model.is_int8_in_files(tensor)) {
      const std::string words = name.substr(0, name.rfind('.'));
      groups += R"(,"group_1":{"targets":["re:.*\\.)" + words.substr(words.rfind('.') + 1) + R"($"],)" + weights +
                R"("input_activations":null,"output_activations":null})";
    }
  const char* const ignored = !model.has_head() ? R"("re:(.*\\.)?(cls|lm_head|pooler|vocab_transform|vocab_projector|head|decoder)(\\..*)?$")" : "";
  return R"({"quant_method":"compressed-tensors","format":"int-quantized","quantization_status":"compressed","kv_cache_scheme":null,)"
         R"("global_compression_ratio":null,"config_groups":{)" +
         groups + R"(},"ignore":[)" + ignored + "]}";
}

/// As texts, because transformers distinguishes 2.0 from 2.
std::vector<std::string> members_of(std::string_view json) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string> members;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      while (json[++i] != '"')
        if (json[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) start = i + 1;
    } else if (depth == 1 && (c == ',' || c == '}')) {
      std::string_view member = json.substr(start, i - start);
      member.remove_prefix(std::min(member.find_first_not_of(kSpace), member.size()));
      if (!member.empty()) members.emplace_back(member.substr(0, member.find_last_not_of(kSpace) + 1));
      start = i + 1;
    }
    if (c == '}' || c == ']') --depth;
  }
  return members;
}

std::string name_of(std::string_view member) {
  std::size_t end = 1;
  while (member[end] != '"') end += member[end] == '\\' ? 2U : 1U;
  const std::string text = '[' + std::string(member.substr(0, end + 1)) + ']';
  return *parse_json("config.json", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, text.size()).array()->front().string();
}

constexpr std::string_view kHeadMembers[] = {"architectures", "id2label", "label2id", "num_labels", "problem_type"};

std::vector<std::string> head_members(const EncoderModel& model) {
  if (!model.is_head_new()) return {};
  const ModelConfig& config = model.config();
  std::string names, numbers;
  for (std::size_t i = 0; i < config.labels.size(); ++i) {
    std::string label;
    append_json_string(label, config.labels[i]);
    const std::string number = std::to_string(i), comma = i > 0 ? ", " : "";
    names += comma + '"' + number + "\": " + label;
    numbers += comma + label + ": " + number;
  }
  return {"\"architectures\": [\"" + std::string(config.family->architecture) + "ForSequenceClassification\"]", "\"id2label\": {" + names + '}',
          "\"label2id\": {" + numbers + '}'};
}

}  // namespace

void check_weights_as(const EncoderModel& model, FileWeights weights) {
  for (const auto& [name, tensor] : model.tensors()) {
    if (weights == FileWeights::float16)
      for (const float value : values_of(tensor))
        if (std::isfinite(value) && std::isinf(float_from_half(half_from_float(value))))
          fail(ErrorCode::out_of_range, kWriterOp, name, {"numbers up to 65504, the largest of float16"}, {value});
    if (weights == FileWeights::int8 && model.is_int8_in_files(tensor) && !tensor.is_quantized()) check_finite(kWriterOp, name, values_of(tensor));
  }
}

void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to) {
  struct Source {
    const std::string* name;
    const StateTensor* tensor;
    bool is_scale;
  };
  std::vector<SafetensorsItem> items;
  std::map<std::string, Source> sources;
  for (const auto& entry : model.tensors()) {
    const auto& [tensor_name, tensor] = entry;
    const Shape shape = tensor.shape();
    const auto add = [&](const std::string& name, std::string_view dtype, std::uint64_t width, const Shape& of_item, bool is_scale = false) {
      items.push_back({name, dtype, width, of_item});
      sources.emplace(name, Source{&entry.first, &entry.second, is_scale});
    };
    if (weights == FileWeights::int8 && model.is_int8_in_files(tensor)) {
      const Shape rows = tensor.by_rows().shape(), scales{rows[0], 1};
      add(tensor_name, "I8", 1, rows);
      add(tensor_name + "_scale", "F32", 4, scales, true);
      // transformers expects separate scales for a tied classifier, which shares the int8 data.
      if (model.config().is_tied() && is_words(model, tensor_name))
        add(text({model.config().head_names().classifier, ".weight_scale"}), "F32", 4, scales, true);
    } else {
      const bool half = weights == FileWeights::float16;
      add(tensor_name, half ? "F16" : "F32", half ? 2U : 4U, shape);
    }
  }
  sort_safetensors(items);
  const std::string start = safetensors_start(kWriterOp, items, {{"format", "pt"}});
  check_safetensors_memory(kWriterOp, items);
  to.write(start.data(), static_cast<std::streamsize>(start.size()));
  for (const SafetensorsItem& item : items) {
    const auto& [name, source, is_scale] = sources.at(item.name);
    const StateTensor& tensor = *source;
    if (item.dtype == "I8" || is_scale) {
      std::vector<std::int8_t> rows(tensor.size());
      std::vector<float> scales(static_cast<std::size_t>(tensor.by_rows().shape()[0]));
      tensor.get_quantized(kWriterOp, *name, rows.data(), scales.data());
      is_scale ? put(to, scales) : put(to, rows);
    } else if (item.dtype == "F16") {
      const std::vector<float> values = values_of(tensor);
      std::vector<std::uint16_t> halves(values.size());
      std::transform(values.begin(), values.end(), halves.begin(), half_from_float);
      put(to, halves);
    } else {
      put(to, values_of(tensor));
    }
  }
}

std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights) {
  // int8 files have other tensors as float32.
  const std::string type = weights == FileWeights::float16 ? R"("float16")" : R"("float32")";
  const Json json = parse_python_json("config.json", config, kMaxConfig);
  const Json* const list = json.find("architectures");
  const bool named = list != nullptr && list->array() != nullptr && !list->array()->empty() && list->array()->front().string() != nullptr;
  std::vector<std::string> members = head_members(model);
  bool typed = false;
  for (const std::string& member : members_of({reinterpret_cast<const char*>(config.data()), config.size()})) {
    const std::string name = name_of(member);
    if (name == "dtype" || name == "torch_dtype") {
      members.push_back('"' + name + "\": " + type);
      typed = true;
    } else if (model.is_head_new() && std::find(std::begin(kHeadMembers), std::end(kHeadMembers), name) != std::end(kHeadMembers)) {
      continue;
    } else if (name == "architectures" && !model.has_head() && named) {
      std::string architecture = *list->array()->front().string(), text;
      for (const std::string_view head : {"ForMaskedLM", "ForPreTraining", "LMHeadModel"})
        if (architecture.ends_with(head)) architecture.replace(architecture.size() - head.size(), head.size(), "Model");
      append_json_string(text, architecture);
      members.push_back("\"architectures\": [" + text + ']');
    } else if (name != "quantization_config") {
      members.push_back(member);
    }
  }
  if (!typed) members.push_back("\"torch_dtype\": " + type);
  if (weights == FileWeights::int8) members.push_back("\"quantization_config\": " + quantization_of(model));
  std::string text;
  for (const std::string& member : members) text += (text.empty() ? "{\n  " : ",\n  ") + member;
  return text + "\n}\n";
}

void save_model(const EncoderModel& model, const SmallFiles& files, const std::string& base, const FilePath& path, const SaveOptions& options,
                StagedFiles& staged) {
  const FileWeights weights = options.weights.value_or(model.is_quantized() ? FileWeights::int8 : FileWeights::float32);
  check_weights_as(model, weights);
  const std::filesystem::path folder(path.text());
  try {
    for (const auto& [name, bytes] : files) {
      std::ostream& to = staged.open(below(folder, name));
      if (name == base + "config.json")
        to << config_as(bytes, model, weights);
      else
        to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    write_weights(model, weights, staged.open(below(folder, base + "model.safetensors")));
    staged.commit();
  } catch (const std::system_error& error) {
    ErrorDetail more;
    more.emplace("errno", static_cast<double>(error.code().value()));
    fail(ErrorCode::argument, kWriterOp, "path", {"a folder whose files can be written"}, {"unwritable (", error.what(), ")"}, std::move(more));
  }
}

}  // namespace attn::detail
