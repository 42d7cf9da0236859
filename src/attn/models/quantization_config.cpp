#include "attn/models/quantization_config.hpp"

#include <algorithm>
#include <string>

#include "attn/models/family.hpp"

// As compressed-tensors' QuantizationConfig, QuantizationScheme and QuantizationArgs.
namespace attn::detail {
namespace {

/// `otherwise` is the default.
void must_be(const ConfigReader& config, const char* name, std::string_view value, std::string_view otherwise) {
  const Json* const json = config.find(name);
  const std::string given = text({json != nullptr ? words_of(*json) : TextPart(otherwise)});
  if (given != value) config.refuse(ErrorCode::unsupported, name, {value}, {given});
}

void must_be_empty(const ConfigReader& config, const char* name) {
  const Json* value = config.find(name);
  if (value != nullptr && (value->object() == nullptr || !value->object()->empty()))
    config.refuse(ErrorCode::unsupported, name, {"null"}, {words_of(*value)});
}

void check_numbers(const ConfigReader& numbers, std::string_view strategy, std::string_view symmetric, std::string_view dynamic) {
  must_be(numbers, "num_bits", "8", "8");
  must_be(numbers, "type", "int", "int");
  must_be(numbers, "strategy", strategy, "tensor");
  must_be(numbers, "symmetric", symmetric, "true");
  must_be(numbers, "dynamic", dynamic, "false");
  if (const Json* const size = numbers.find("group_size"); size != nullptr && text({words_of(*size)}) != "-1")
    numbers.refuse(ErrorCode::unsupported, "group_size", {"null"}, {words_of(*size)});
  must_be_empty(numbers, "block_structure");
}

/// By name, optionally with the base model's prefix, or by a pattern that ends with it.
bool is_word_table(std::string_view target, const Family& family) {
  std::string name;
  for (const std::string_view start : {"re:", "^", ".*", "\\."})
    if (target.starts_with(start)) target.remove_prefix(start.size());
  if (target.ends_with('$')) target.remove_suffix(1);
  for (const char c : target)
    if (c != '\\') name += c;
  const std::string words(family.names.word_embeddings);
  return name == words || name == std::string(family.prefix) + words || (!name.empty() && words.ends_with("." + name));
}

bool read_group(const ConfigReader& group, const Family& family) {
  const Json* const list = group.find("targets");
  const Json::Array* const targets = list != nullptr ? list->array() : nullptr;
  if (targets == nullptr || targets->empty())
    group.refuse(ErrorCode::config, "targets", {"a list of names"}, {list != nullptr ? list->kind() : "missing"});
  const bool words = is_word_table(text({words_of(targets->front())}), family);
  for (const Json& target : *targets)
    if (const std::string name = text({words_of(target)}); words ? !is_word_table(name, family) : name != "Linear")
      group.refuse(ErrorCode::unsupported, "targets", {"Linear, or ", family.names.word_embeddings, " in its own group"}, {name});
  must_be(group, "format", "int-quantized", "int-quantized");
  const ConfigReader weights = group.object("weights"), inputs = group.object("input_activations");
  if (!group.has("weights")) group.refuse(ErrorCode::unsupported, "weights", {"int8"}, {"missing"});
  check_numbers(weights, "channel", "true", "false");
  must_be_empty(group, "output_activations");
  if (words) {
    must_be_empty(group, "input_activations");
    return true;
  }
  if (!group.has("input_activations")) group.refuse(ErrorCode::unsupported, "input_activations", {"int8"}, {"missing"});
  check_numbers(inputs, "token", "false", "true");
  return false;
}

}  // namespace

void read_quantization(const ConfigReader& config, ModelConfig& model) {
  if (!config.has("quantization_config")) return;
  const ConfigReader all = config.object("quantization_config");
  must_be(all, "quant_method", "compressed-tensors", "missing");
  must_be(all, "format", "int-quantized", "missing");
  must_be(all, "quantization_status", "compressed", "compressed");
  for (const char* const name : {"kv_cache_scheme", "sparsity_config", "moe_sparsity_config", "transform_config"}) must_be_empty(all, name);
  const ConfigReader groups = all.object("config_groups");
  bool linear = false;
  if (const Json* const list = all.find("config_groups"))
    for (const auto& [name, group] : *list->object()) {
      if (group.object() == nullptr) groups.refuse(ErrorCode::unsupported, name.c_str(), {"a scheme written out"}, {group.kind()});
      (read_group(groups.object(name.c_str()), *model.family) ? model.quantized_words : linear) = true;
    }
  if (!linear)
    all.refuse(ErrorCode::unsupported, "config_groups", {"an object with a group for Linear"},
               {all.has("config_groups") ? "an object without a group for Linear" : "missing"});
  model.quantized = true;
}

}  // namespace attn::detail
