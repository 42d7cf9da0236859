#include "attn/io/gguf/architecture.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>

#include "attn/io/gguf/json_object.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/view.hpp"

// Keys and names are those of llama.cpp (gguf-py/gguf/constants.py); this file undoes its convert_hf_to_gguf.py.
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
#define ATTN_LLAMA_LAYER                                                                                                             \
  {"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj", Order::rotary}, {"attn_k", "self_attn.k_proj", Order::rotary},    \
      {"attn_v", "self_attn.v_proj"}, {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"}, \
      {"ffn_down", "mlp.down_proj"}, {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"}
constexpr Name kLlamaLayer[] = {ATTN_LLAMA_LAYER, {"ffn_norm", "post_attention_layernorm"}};
constexpr Name kGemmaLayer[] = {ATTN_LLAMA_LAYER,
                                {"post_attention_norm", "post_attention_layernorm"},
                                {"ffn_norm", "pre_feedforward_layernorm"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};
#undef ATTN_LLAMA_LAYER
constexpr Name kLlama[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Name kNeoXLayer[] = {{"attn_norm", "input_layernorm"},   {"attn_qkv", "attention.query_key_value", Order::by_parts},
                               {"attn_output", "attention.dense"}, {"ffn_norm", "post_attention_layernorm"},
                               {"ffn_up", "mlp.dense_h_to_4h"},    {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr Name kNeoX[] = {{"token_embd", "gpt_neox.embed_in"}, {"output_norm", "gpt_neox.final_layer_norm"}, {"output", "embed_out"}};

struct Family {
  std::string_view name, type, model_class;
  std::span<const Name> model, layer;
  std::string_view layers;
  Order order = Order::same;  ///< rotary: the converter reorders rows; less_one: it adds 1 to norms
};

constexpr Family kArchitectures[] = {
    {"gpt2", "gpt2", "GPT2LMHeadModel", kGpt2, kGpt2Layer, "transformer.h."},
    {"llama", "llama", "LlamaForCausalLM", kLlama, kLlamaLayer, "model.layers.", Order::rotary},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", kLlama, kLlamaLayer, "model.layers."},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", kLlama, kLlamaLayer, "model.layers."},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", kLlama, kGemmaLayer, "model.layers.", Order::less_one},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", kLlama, kGemmaLayer, "model.layers.", Order::less_one},
    {"gptneox", "gpt_neox", "GPTNeoXForCausalLM", kNeoX, kNeoXLayer, "gpt_neox.layers."},
};
constexpr std::string_view kArchitectureNames = "gpt2, llama, qwen2, qwen3, gemma2, gemma3, gptneox";

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
  bool flag(std::string_view name, bool otherwise) const { return metadata_.flag(key(name)).value_or(otherwise); }
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
  if (tensor == nullptr) refuse(name, {"a tensor"}, {"missing"});
  if (tensor->dims.size() != 2) refuse(text({"the rank of ", name}), {2}, {tensor->dims.size()});
  return static_cast<std::int64_t>(tensor->dims[1]);
}

JsonObject start_config(const Header& header, const Family& kind) {
  JsonObject config;
  config.add("architectures", text({"[\"", kind.model_class, "\"]"})).add_string("model_type", kind.type);
  config.add_whole("vocab_size", rows_of(header, "token_embd.weight")).add_flag("tie_word_embeddings", header.find("output.weight") == nullptr);
  return config;
}

std::string config_of_gpt2(const Header& header, const Settings& settings, const Family& kind) {
  JsonObject config = start_config(header, kind);
  config.add_string("activation_function", "gelu_new").add_whole("n_positions", settings.required("context_length"));
  config.add_whole("n_embd", settings.required("embedding_length")).add_whole("n_layer", settings.required("block_count"));
  config.add_whole("n_head", settings.required("attention.head_count")).add_whole("n_inner", settings.required("feed_forward_length"));
  config.add_number("layer_norm_epsilon", settings.required_number("attention.layer_norm_epsilon"));
  return config.take();
}

struct Heads {
  std::int64_t count, of_keys, width;
};

/// `is_partial`: RoPE may rotate only a part of each head.
Heads heads_of(const Settings& settings, bool is_partial = false) {
  const std::int64_t count = settings.required("attention.head_count"), width = settings.required("embedding_length");
  if (count < 1 || width < 1 || count > width)
    refuse(settings.key("attention.head_count"), {"a number from 1 to ", width, ", the embedding_length"}, {count});
  const Heads heads{count, settings.whole("attention.head_count_kv").value_or(count), settings.whole("attention.key_length").value_or(width / count)};
  const auto must_be_width = [&](std::string_view name) {
    const std::int64_t given = settings.whole(name).value_or(heads.width);
    if (given != heads.width) refuse(settings.key(name), {heads.width, ", the width of a head"}, {given}, ErrorCode::unsupported);
  };
  must_be_width("attention.value_length");
  if (!is_partial) must_be_width("rope.dimension_count");
  if (heads.width < 2 || heads.width % 2 != 0) refuse("the width of a head", {"an even number of at least 2"}, {heads.width});
  return heads;
}

/// Divisor of theta^(-2 i / D) in Llama 3.1 with low_freq_factor 1 and high_freq_factor 4.
double divisor_of(double frequency, double factor, double positions) {
  const double turns = positions * frequency / (2 * std::numbers::pi);
  if (turns > 4) return 1;
  if (turns < 1) return factor;
  const double share = (turns - 1) / 3;
  return 1 / ((1 - share) / factor + share);
}

/// Finds the parameters from which the converter computed rope_freqs.weight.
void add_llama3(JsonObject& rope, std::span<const float> divisors, double theta) {
  const double factor = *std::max_element(divisors.begin(), divisors.end());
  const auto matches = [&](double positions) {
    for (std::size_t i = 0; i < divisors.size(); ++i) {
      const double expected = divisor_of(std::pow(theta, -static_cast<double>(i) / static_cast<double>(divisors.size())), factor, positions);
      if (!(std::abs(static_cast<double>(divisors[i]) - expected) <= 1e-4 * expected)) return false;
    }
    return true;
  };
  // Published models have 8192.
  for (std::int64_t positions = 16; positions <= (1 << 20); positions *= 2)
    if (matches(static_cast<double>(positions))) {
      rope.add_string("rope_type", "llama3").add_number("factor", factor).add_whole("original_max_position_embeddings", positions);
      rope.add_whole("low_freq_factor", 1).add_whole("high_freq_factor", 4);
      return;
    }
  refuse("rope_freqs.weight", {"divisors by the formula of Llama 3.1 with low_freq_factor 1 and high_freq_factor 4"}, {"a list of other numbers"},
         ErrorCode::unsupported, "Use the checkpoint in safetensors");
}

std::string rope_of(const Settings& settings, std::span<const float> divisors) {
  JsonObject rope;
  const double theta = settings.number("rope.freq_base").value_or(10000);
  rope.add_number("rope_theta", theta);
  const std::string* const type = settings.string("rope.scaling.type");
  const std::string kind = type != nullptr ? *type : "linear";  // llama.cpp's default
  if (kind != "none" && kind != "linear" && kind != "yarn")
    refuse(settings.key("rope.scaling.type"), {"linear, none or yarn"}, {kind}, ErrorCode::unsupported);
  for (const char* name : {"attn_factor", "yarn_ext_factor", "yarn_attn_factor"}) settings.must_be(text({"rope.scaling.", name}), 1);
  settings.must_be("rope.scaling.yarn_log_multiplier", 0);
  const std::optional<double> old = settings.number("rope.scale_linear");
  const double factor = settings.number("rope.scaling.factor").value_or(old.value_or(1));
  const bool is_scaled = kind != "none" && factor != 0 && factor != 1;
  if (!divisors.empty()) {
    if (is_scaled) refuse(settings.key("rope.scaling.factor"), {1, " together with rope_freqs.weight"}, {factor}, ErrorCode::unsupported);
    add_llama3(rope, divisors, theta);
    return rope.take();
  }
  rope.add_string("rope_type", is_scaled ? kind : "default");
  if (is_scaled) rope.add_number("factor", factor);
  if (is_scaled && kind == "yarn") {
    const std::optional<std::int64_t> original = settings.whole("rope.scaling.original_context_length");
    rope.add_whole("original_max_position_embeddings", original ? *original : settings.required("context_length"));
    rope.add_number("beta_fast", settings.number("rope.scaling.yarn_beta_fast").value_or(32));
    rope.add_number("beta_slow", settings.number("rope.scaling.yarn_beta_slow").value_or(1));
  }
  return rope.take();
}

/// transformers has one bias switch for attention and one for the MLP, so a model with only some biases is a mismatch.
bool has_one(const Header& header, std::initializer_list<std::string_view> names) {
  return std::any_of(header.tensors.begin(), header.tensors.end(), [&](const Tensor& tensor) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return std::string_view(tensor.name).ends_with(name); });
  });
}

void add_gemma(JsonObject& config, const Settings& settings, const Family& kind, const Heads& heads) {
  const bool is_2 = kind.name == "gemma2";
  // Only the 27B models, recognised by their layers, do not scale by the head width.
  const bool is_largest = settings.required("block_count") == (is_2 ? 46 : 62);
  config.add_string("hidden_activation", "gelu_pytorch_tanh");
  config.add_whole("query_pre_attn_scalar", is_largest ? settings.required("embedding_length") / heads.count : heads.width);
  config.add_whole("sliding_window", settings.whole("attention.sliding_window").value_or(is_2 ? 4096 : 1024));
  const std::int64_t period = settings.whole("attention.sliding_window_pattern").value_or(is_2 ? 2 : 6);
  if (is_2 && period != 2) refuse(settings.key("attention.sliding_window_pattern"), {2}, {period}, ErrorCode::unsupported);
  if (!is_2) config.add_whole("sliding_window_pattern", period);
  const auto add_cap = [&](const char* name, const char* key, double otherwise) {
    const double cap = settings.number(key).value_or(otherwise);
    if (cap != 0)
      config.add_number(name, cap);
    else
      config.add(name, "null");
  };
  if (is_2) add_cap("attn_logit_softcapping", "attn_logit_softcapping", 50);
  add_cap("final_logit_softcapping", "final_logit_softcapping", is_2 ? 30 : 0);
}

std::string config_of_llama(const Header& header, const Settings& settings, const Family& kind, std::span<const float> divisors) {
  const bool is_gemma = kind.order == Order::less_one;
  for (const char* name : {"expert_count", "use_parallel_residual"}) settings.must_be(name, 0);
  if (!is_gemma) settings.must_be("attention.sliding_window", 0);
  for (const char* name : {"attention.causal", "logit_scale", "residual_scale", "embedding_scale"}) settings.must_be(name, 1);
  settings.must_be("attention.scale", 0);
  const Heads heads = heads_of(settings);
  JsonObject config = start_config(header, kind);
  config.add_whole("max_position_embeddings", settings.required("context_length"));
  config.add_whole("hidden_size", settings.required("embedding_length")).add_whole("num_hidden_layers", settings.required("block_count"));
  config.add_whole("num_attention_heads", heads.count).add_whole("num_key_value_heads", heads.of_keys).add_whole("head_dim", heads.width);
  config.add_whole("intermediate_size", settings.required("feed_forward_length"));
  config.add_number("rms_norm_eps", settings.required_number("attention.layer_norm_rms_epsilon"));
  if (kind.name != "qwen2") config.add_flag("attention_bias", has_one(header, {".attn_q.bias", ".attn_k.bias", ".attn_v.bias", ".attn_output.bias"}));
  if (kind.name == "llama") config.add_flag("mlp_bias", has_one(header, {".ffn_gate.bias", ".ffn_up.bias", ".ffn_down.bias"}));
  if (is_gemma)
    add_gemma(config, settings, kind, heads);
  else
    config.add_string("hidden_act", "silu");
  if (!divisors.empty() && std::ssize(divisors) != heads.width / 2)
    refuse("the length of rope_freqs.weight", {heads.width / 2, ", half the width of a head"}, {divisors.size()});
  const std::string rope = rope_of(settings, divisors);
  if (kind.name != "gemma3") return config.add("rope_parameters", rope).take();
  JsonObject local;
  local.add_string("rope_type", "default").add_number("rope_theta", settings.number("rope.freq_base_swa").value_or(10000));
  return config.add("rope_parameters", JsonObject().add("full_attention", rope).add("sliding_attention", local.take()).take()).take();
}

std::string config_of_neox(const Header& header, const Settings& settings, const Family& kind) {
  const Heads heads = heads_of(settings, true);
  if (heads.of_keys != heads.count) refuse(settings.key("attention.head_count_kv"), {heads.count}, {heads.of_keys}, ErrorCode::unsupported);
  const std::string* const scaling = settings.string("rope.scaling.type");
  if (scaling != nullptr && *scaling != "none") refuse(settings.key("rope.scaling.type"), {"the type none"}, {*scaling}, ErrorCode::unsupported);
  settings.must_be("rope.scaling.factor", 1);
  const std::int64_t turned = settings.whole("rope.dimension_count").value_or(heads.width);
  if (turned < 2 || turned % 2 != 0 || turned > heads.width)
    refuse(settings.key("rope.dimension_count"), {"an even number from 2 to ", heads.width, ", the width of a head"}, {turned});
  // Half a column more, because transformers truncates the product with the width.
  const double share = turned == heads.width ? 1 : (static_cast<double>(turned) + 0.5) / static_cast<double>(heads.width);
  JsonObject config = start_config(header, kind);
  config.add_string("hidden_act", "gelu").add_whole("max_position_embeddings", settings.required("context_length"));
  config.add_whole("hidden_size", settings.required("embedding_length")).add_whole("num_hidden_layers", settings.required("block_count"));
  config.add_whole("num_attention_heads", heads.count).add_whole("intermediate_size", settings.required("feed_forward_length"));
  config.add_number("layer_norm_eps", settings.required_number("attention.layer_norm_epsilon"));
  config.add_flag("use_parallel_residual", settings.flag("use_parallel_residual", true));
  config.add_flag("attention_bias", has_one(header, {".attn_qkv.bias", ".attn_output.bias"}));
  JsonObject rope;
  rope.add_string("rope_type", "default").add_number("rope_theta", settings.number("rope.freq_base").value_or(10000));
  return config.add("rope_parameters", rope.add_number("partial_rotary_factor", share).take()).take();
}

class Names {
 public:
  Names(std::span<const Name> model, std::span<const Name> layer, std::string_view layers, std::int64_t count)
      : model_(model), layer_(layer), layers_(layers), count_(count) {}

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

void set_heads(NamedTensor& named, std::uint64_t width, std::uint64_t unit) {
  const std::uint64_t rows = named.tensor->dims.back();
  const bool is_vector = named.tensor->dims.size() == 1;
  if (is_vector && named.tensor->type->values != 1)
    refuse(text({"the type of ", named.tensor->name}), {"F32, F16 or BF16"}, {named.tensor->type->name}, ErrorCode::unsupported);
  if (named.tensor->dims.size() > 2 || rows % unit != 0)
    refuse(text({"the shape of ", named.tensor->name}), {"a matrix whose rows are a multiple of ", unit, ", the width of a head"}, {named.shape});
  named.head_rows = width;
}

void set_order(NamedTensor& named, const Family& kind, const Settings& settings) {
  const bool is_norm = named.name.ends_with("norm.weight");
  if (named.order == Order::rotary && kind.order != Order::rotary) named.order = Order::same;
  if (is_norm && kind.order == Order::less_one) named.order = Order::less_one;
  if (named.order != Order::rotary && named.order != Order::by_parts) return;
  const auto width = static_cast<std::uint64_t>(heads_of(settings, named.order == Order::by_parts).width);
  set_heads(named, width, named.order == Order::by_parts ? 3 * width : width);
}

constexpr std::string_view kDivisors = "rope_freqs.weight";

}  // namespace

const Tensor* rope_divisors(const Header& header) {
  const Tensor* const tensor = header.find(kDivisors);
  if (tensor == nullptr) return nullptr;
  constexpr std::uint64_t kMost = 1 << 16;
  if (tensor->dims.size() != 1 || tensor->dims[0] > kMost || tensor->type->name != "F32")
    refuse(kDivisors, {"at most ", kMost, " float32 numbers"}, {"another tensor"});
  return tensor;
}

Architecture read_architecture(const Header& header, std::span<const float> divisors) {
  const FloatEnvironment environment;
  const std::string* const name = header.metadata.string("general.architecture");
  if (name == nullptr) refuse("general.architecture", {"one of ", kArchitectureNames}, {"missing"});
  const Settings settings(header.metadata, *name);
  const auto* const found =
      std::find_if(std::begin(kArchitectures), std::end(kArchitectures), [&](const Family& each) { return each.name == *name; });
  if (found == std::end(kArchitectures)) refuse("general.architecture", {"one of ", kArchitectureNames}, {*name}, ErrorCode::unsupported);
  const Family& kind = *found;
  if (const std::int64_t files = header.metadata.whole("split.count").value_or(1); files > 1)
    refuse("split.count", {1, ", a model in one file"}, {files}, ErrorCode::unsupported, "llama.cpp's gguf-split --merge joins the files");
  Architecture made;
  made.config = kind.name == "gpt2"      ? config_of_gpt2(header, settings, kind)
                : kind.name == "gptneox" ? config_of_neox(header, settings, kind)
                                         : config_of_llama(header, settings, kind, divisors);
  const Names names(kind.model, kind.layer, kind.layers, settings.required("block_count"));
  for (const Tensor& tensor : header.tensors) {
    if (kind.name == "llama" && tensor.name == kDivisors) continue;
    std::optional<NamedTensor> named = names.of(tensor);
    if (!named) refuse(tensor.name, {"a tensor of ", *name}, {"unknown"}, ErrorCode::unsupported);
    set_order(*named, kind, settings);
    made.tensors.push_back(std::move(*named));
  }
  return made;
}

}  // namespace attn::detail::gguf
