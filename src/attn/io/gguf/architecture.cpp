#include "attn/io/gguf/architecture.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "attn/io/gguf/json_object.hpp"
#include "attn/tensor/view.hpp"

// Keys and names are those of llama.cpp (gguf-py/gguf/constants.py), and what is undone here is what its convert_hf_to_gguf.py does.
namespace attn::detail::gguf {
namespace {

struct Name {
  std::string_view gguf, checkpoint;  ///< without .weight and .bias
  Order order = Order::same;
};

constexpr Name kGpt2Layer[] = {
    {"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn", Order::transposed}, {"attn_output", "attn.c_proj", Order::transposed},
    {"ffn_norm", "ln_2"},  {"ffn_up", "mlp.c_fc", Order::transposed},      {"ffn_down", "mlp.c_proj", Order::transposed}};
constexpr Name kGpt2[] = {
    {"token_embd", "transformer.wte"}, {"position_embd", "transformer.wpe"}, {"output_norm", "transformer.ln_f"}, {"output", "lm_head"}};
constexpr Name kLlamaLayer[] = {{"attn_norm", "input_layernorm"},
                                {"attn_q", "self_attn.q_proj", Order::rotary},
                                {"attn_k", "self_attn.k_proj", Order::rotary},
                                {"attn_v", "self_attn.v_proj"},
                                {"attn_output", "self_attn.o_proj"},
                                {"ffn_norm", "post_attention_layernorm"},
                                {"ffn_gate", "mlp.gate_proj"},
                                {"ffn_up", "mlp.up_proj"},
                                {"ffn_down", "mlp.down_proj"}};
constexpr Name kLlama[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

constexpr std::string_view kNames = "gpt2, llama, qwen2";

/// Metadata under the prefix of the architecture.
class Settings {
 public:
  Settings(const Metadata& metadata, const std::string& name) : metadata_(metadata), prefix_(name + ".") {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  std::optional<std::int64_t> whole(std::string_view name) const { return metadata_.whole(key(name)); }
  std::optional<double> number(std::string_view name) const { return metadata_.number(key(name)); }
  const std::string* string(std::string_view name) const { return metadata_.string(key(name)); }
  std::int64_t required(std::string_view name) const {
    const std::optional<std::int64_t> value = whole(name);
    if (!value) refuse(key(name), {"a whole number"}, {"missing"});
    return *value;
  }
  double required_number(std::string_view name) const {
    const std::optional<double> value = number(name);
    if (!value) refuse(key(name), {"a number"}, {"missing"});
    return *value;
  }
  /// Refuses a setting that changes the computation, unless it is missing or `neutral`.
  void must_be(std::string_view name, double neutral) const {
    const std::string whole_name = key(name);
    const Value* const value = metadata_.find(whole_name);
    if (value == nullptr) return;
    const auto* const flag = std::get_if<bool>(value);
    const double given = flag != nullptr ? (*flag ? 1 : 0) : *metadata_.number(whole_name);
    if (given != neutral) refuse(whole_name, {neutral}, {given}, ErrorCode::unsupported);
  }

 private:
  const Metadata& metadata_;
  std::string prefix_;
};

std::int64_t rows_of(const Header& header, std::string_view name) {
  const Tensor* const tensor = header.find(name);
  if (tensor == nullptr) refuse("the list of tensors", {"one with ", name}, {"one without it"});
  if (tensor->dims.size() != 2) refuse(text({"the rank of ", name}), {2}, {tensor->dims.size()});
  return static_cast<std::int64_t>(tensor->dims[1]);
}

std::string config_of_gpt2(const Header& header, const Settings& settings) {
  JsonObject config;
  config.add("architectures", "[\"GPT2LMHeadModel\"]").add_string("model_type", "gpt2").add_string("activation_function", "gelu_new");
  config.add_whole("vocab_size", rows_of(header, "token_embd.weight")).add_whole("n_positions", settings.required("context_length"));
  config.add_whole("n_embd", settings.required("embedding_length")).add_whole("n_layer", settings.required("block_count"));
  config.add_whole("n_head", settings.required("attention.head_count")).add_whole("n_inner", settings.required("feed_forward_length"));
  config.add_number("layer_norm_epsilon", settings.required_number("attention.layer_norm_epsilon"));
  config.add_flag("tie_word_embeddings", header.find("output.weight") == nullptr);
  return config.take();
}

void add_rope(JsonObject& config, const Settings& settings) {
  JsonObject rope;
  rope.add_number("rope_theta", settings.number("rope.freq_base").value_or(10000));
  const std::string* const type = settings.string("rope.scaling.type");
  const std::string kind = type != nullptr ? *type : "linear";  // the default of llama.cpp
  if (kind != "none" && kind != "linear") refuse(settings.key("rope.scaling.type"), {"none or linear"}, {kind}, ErrorCode::unsupported);
  settings.must_be("rope.scaling.attn_factor", 1);
  const std::optional<double> old = settings.number("rope.scale_linear");
  const double factor = settings.number("rope.scaling.factor").value_or(old.value_or(1));
  const bool is_linear = kind == "linear" && factor != 0 && factor != 1;
  rope.add_string("rope_type", is_linear ? "linear" : "default");
  if (is_linear) rope.add_number("factor", factor);
  config.add("rope_parameters", rope.take());
}

struct Heads {
  std::int64_t count, of_keys, width;
};

Heads heads_of(const Settings& settings) {
  const std::int64_t count = settings.required("attention.head_count"), width = settings.required("embedding_length");
  if (count < 1 || width < 1 || count > width)
    refuse(settings.key("attention.head_count"), {"a number from 1 to ", width, ", the embedding_length"}, {count});
  const Heads heads{count, settings.whole("attention.head_count_kv").value_or(count), settings.whole("attention.key_length").value_or(width / count)};
  const auto must_be_width = [&](std::string_view name) {
    const std::int64_t given = settings.whole(name).value_or(heads.width);
    if (given != heads.width) refuse(settings.key(name), {heads.width, ", the width of a head"}, {given}, ErrorCode::unsupported);
  };
  must_be_width("attention.value_length");
  must_be_width("rope.dimension_count");
  if (heads.width < 2 || heads.width % 2 != 0) refuse("the width of a head", {"an even number of at least 2"}, {heads.width});
  return heads;
}

/// Whether any layer has one of these. transformers has one switch for attention and one for the MLP, so a model that has only some is a mismatch.
bool has_one(const Header& header, std::initializer_list<std::string_view> names) {
  return std::any_of(header.tensors.begin(), header.tensors.end(), [&](const Tensor& tensor) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return std::string_view(tensor.name).ends_with(name); });
  });
}

std::string config_of_llama(const Header& header, const Settings& settings, bool is_llama) {
  for (const char* name : {"expert_count", "attention.sliding_window", "use_parallel_residual"}) settings.must_be(name, 0);
  for (const char* name : {"attention.causal", "logit_scale", "residual_scale", "embedding_scale"}) settings.must_be(name, 1);
  settings.must_be("attention.scale", 0);
  const Heads heads = heads_of(settings);
  JsonObject config;
  config.add("architectures", is_llama ? "[\"LlamaForCausalLM\"]" : "[\"Qwen2ForCausalLM\"]");
  config.add_string("model_type", is_llama ? "llama" : "qwen2").add_string("hidden_act", "silu");
  config.add_whole("vocab_size", rows_of(header, "token_embd.weight")).add_whole("max_position_embeddings", settings.required("context_length"));
  config.add_whole("hidden_size", settings.required("embedding_length")).add_whole("num_hidden_layers", settings.required("block_count"));
  config.add_whole("num_attention_heads", heads.count).add_whole("num_key_value_heads", heads.of_keys).add_whole("head_dim", heads.width);
  config.add_whole("intermediate_size", settings.required("feed_forward_length"));
  config.add_number("rms_norm_eps", settings.required_number("attention.layer_norm_rms_epsilon"));
  config.add_flag("tie_word_embeddings", header.find("output.weight") == nullptr);
  if (is_llama) {
    config.add_flag("attention_bias", has_one(header, {".attn_q.bias", ".attn_k.bias", ".attn_v.bias", ".attn_output.bias"}));
    config.add_flag("mlp_bias", has_one(header, {".ffn_gate.bias", ".ffn_up.bias", ".ffn_down.bias"}));
  }
  add_rope(config, settings);
  return config.take();
}

/// Translates "blk.3.attn_q.weight" and names outside layers.
class Translation {
 public:
  Translation(std::span<const Name> model, std::span<const Name> layer, std::string_view layers, std::int64_t count)
      : model_(model), layer_(layer), layers_(layers), count_(count) {}

  /// Returns none if the name is unknown.
  std::optional<NamedTensor> of(const Tensor& tensor) const {
    std::string_view name = tensor.name;
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) return std::nullopt;
    const std::string_view suffix = name.substr(dot);
    if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
    name = name.substr(0, dot);
    std::string prefix;
    const bool in_layer = name.starts_with("blk.");
    if (in_layer) {
      name.remove_prefix(4);
      const std::size_t end = std::min(name.find('.'), name.size());
      std::uint32_t number = 0;
      const auto [stop, error] = std::from_chars(name.data(), name.data() + end, number);
      if (error != std::errc() || stop != name.data() + end || end == name.size() || (name[0] == '0' && end > 1)) return std::nullopt;
      if (static_cast<std::int64_t>(number) >= count_) return std::nullopt;
      prefix = text({layers_, number, "."});
      name.remove_prefix(end + 1);
    }
    for (const Name& each : in_layer ? layer_ : model_)
      if (each.gguf == name) {
        const bool transposes = each.order == Order::transposed && suffix == ".weight";
        const Order order = each.order == Order::transposed && !transposes ? Order::same : each.order;
        return NamedTensor{&tensor, text({prefix, each.checkpoint, suffix}), shape_of(tensor, transposes), order};
      }
    return std::nullopt;
  }

 private:
  static Shape shape_of(const Tensor& tensor, bool transposes) {
    std::vector<std::int64_t> dims(tensor.dims.rbegin(), tensor.dims.rend());
    if (transposes) {
      if (dims.size() != 2) refuse(text({"the rank of ", tensor.name}), {2}, {dims.size()});
      std::swap(dims[0], dims[1]);
    }
    return to_shape(dims);
  }

  std::span<const Name> model_, layer_;
  std::string_view layers_;
  std::int64_t count_;
};

/// Sets the rows per head. The rows of a tensor, or the values of a bias, must be whole heads.
void set_heads(NamedTensor& named, std::uint64_t width) {
  const std::uint64_t rows = named.tensor->dims.back();
  const bool is_vector = named.tensor->dims.size() == 1;
  if (is_vector && named.tensor->type->values != 1)
    refuse(text({"the type of ", named.tensor->name}), {"F32, F16 or BF16"}, {named.tensor->type->name}, ErrorCode::unsupported);
  if (named.tensor->dims.size() > 2 || rows % width != 0)
    refuse(text({"the shape of ", named.tensor->name}), {"a matrix whose rows are a multiple of ", width, ", the width of a head"}, {named.shape});
  named.head_rows = width;
}

}  // namespace

Architecture read_architecture(const Header& header) {
  const std::string* const name = header.metadata.string("general.architecture");
  if (name == nullptr) refuse("general.architecture", {"one of ", kNames}, {"missing"});
  const Settings settings(header.metadata, *name);
  const bool is_gpt2 = *name == "gpt2", is_llama = *name == "llama";
  if (!is_gpt2 && !is_llama && *name != "qwen2") refuse("general.architecture", {"one of ", kNames}, {*name}, ErrorCode::unsupported);
  if (const std::int64_t files = header.metadata.whole("split.count").value_or(1); files > 1)
    refuse("split.count", {1, ", a model in one file"}, {files}, ErrorCode::unsupported, "llama.cpp's gguf-split --merge joins the files");
  if (header.find("rope_freqs.weight") != nullptr)
    refuse("the list of tensors", {"one without rope_freqs.weight"}, {"one with it"}, ErrorCode::unsupported,
           "attn does not read scaled RoPE frequencies of GGUF files. Use the checkpoint in safetensors");
  Architecture made;
  made.config = is_gpt2 ? config_of_gpt2(header, settings) : config_of_llama(header, settings, is_llama);
  const std::int64_t layers = settings.required("block_count");
  const Translation names =
      is_gpt2 ? Translation(kGpt2, kGpt2Layer, "transformer.h.", layers) : Translation(kLlama, kLlamaLayer, "model.layers.", layers);
  const std::int64_t head_width = is_llama ? heads_of(settings).width : 0;
  for (const Tensor& tensor : header.tensors) {
    std::optional<NamedTensor> named = names.of(tensor);
    if (!named) refuse("the list of tensors", {"tensors of ", *name}, {tensor.name}, ErrorCode::unsupported);
    // Only the converter of llama reorders rows.
    if (named->order == Order::rotary && !is_llama) named->order = Order::same;
    if (named->order == Order::rotary) set_heads(*named, static_cast<std::uint64_t>(head_width));
    made.tensors.push_back(std::move(*named));
  }
  return made;
}

}  // namespace attn::detail::gguf
