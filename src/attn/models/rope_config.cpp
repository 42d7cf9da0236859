#include <string_view>

#include "attn/models/family.hpp"
#include "attn/ops/elementary.hpp"

// As transformers' RotaryEmbeddingConfigMixin.
namespace attn::detail {
namespace {

constexpr const char *kFactor = "factor", *kShare = "partial_rotary_factor", *kTheta = "rope_theta", *kTruncate = "truncate";
constexpr const char *kFull = "full_attention", *kSliding = "sliding_attention";

/// `outer` has the settings by kind of layer, or is null.
struct RopeSettings {
  const ConfigReader& config;
  const ConfigReader& rope;
  const ConfigReader* outer = nullptr;
};

double needed(const ConfigReader& rope, const char* name) {
  if (!rope.has(name)) rope.refuse(ErrorCode::config, name, {"a number above 0"}, {rope.is_null(name) ? "null" : "missing"});
  return rope.positive(name, 1);
}

/// A value outside of the parameters has priority, unless they are by kind of layer.
std::int64_t original_positions(const RopeSettings& from, std::int64_t positions) {
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const std::int64_t own = from.rope.whole(kOriginal, 1, 0x7fffffff, positions);
  return from.outer != nullptr ? own : from.config.whole(kOriginal, 1, 0x7fffffff, own);
}

RopeScaling yarn_of(const RopeSettings& from, ModelConfig& model) {
  const ConfigReader& rope = from.rope;
  // As transformers.
  const ConfigReader& rounding = from.outer != nullptr ? *from.outer : rope;
  if (from.outer != nullptr && (rope.has(kTruncate) || rope.is_null(kTruncate)))
    model.notes.emplace_back("config.json: truncate of YaRN is not used within the parameters of a kind of layer, as in transformers");
  RopeScaling yarn{.yarn_positions = original_positions(from, model.max_position_embeddings),
                   .fast = rope.positive("beta_fast", 32),
                   .slow = rope.positive("beta_slow", 1),
                   .whole = !rounding.is_null(kTruncate) && rounding.flag(kTruncate, true)};
  yarn.factor =
      rope.is_null(kFactor) ? static_cast<double>(model.max_position_embeddings) / static_cast<double>(yarn.yarn_positions) : needed(rope, kFactor);
  const auto magnitude = [&](double weight) { return yarn.factor > 1 ? 0.1 * weight * log_of(yarn.factor) + 1 : 1; };
  const bool has_both = rope.has("mscale") && rope.has("mscale_all_dim");
  const double otherwise = has_both ? magnitude(rope.positive("mscale", 1)) / magnitude(rope.positive("mscale_all_dim", 1)) : magnitude(1);
  yarn.magnitude = static_cast<float>(rope.positive("attention_factor", otherwise));
  return yarn;
}

RopeScaling llama3_of(const RopeSettings& from, std::int64_t positions) {
  const ConfigReader& rope = from.rope;
  constexpr const char* kHigh = "high_freq_factor";
  const RopeScaling scaling{.factor = needed(rope, kFactor),
                            .original_positions = original_positions(from, positions),
                            .low_frequency_factor = needed(rope, "low_freq_factor"),
                            .high_frequency_factor = needed(rope, kHigh)};
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
    rope.refuse(ErrorCode::config, kHigh, {"a number above low_freq_factor ", scaling.low_frequency_factor}, {scaling.high_frequency_factor});
  return scaling;
}

void configure_rope(const RopeSettings& from, ModelConfig& model, double theta) {
  const ConfigReader& rope = from.rope;
  const char* const kind = rope.has("rope_type") ? "rope_type" : "type";
  const std::string_view type = rope.string(kind, "default");
  if (type == "linear" || (type == "ntk" && !model.is_causal)) {
    const double factor = needed(rope, kFactor);
    const bool is_ntk = type == "ntk" && factor > 1;  // a larger base; the rest of the factor for all pairs
    if (is_ntk) theta *= factor;
    const auto D = static_cast<double>(model.hidden_size) / static_cast<double>(model.num_attention_heads);
    model.rope.factor = is_ntk ? pow_of(factor, 2 / D) : type == "ntk" ? 1 : factor;
  } else if (type == "llama3") {
    model.rope = llama3_of(from, model.max_position_embeddings);
  } else if (type == "yarn") {
    if (theta <= 1) rope.refuse(ErrorCode::config, kTheta, {"a number above 1"}, {theta});
    model.rope = yarn_of(from, model);
  } else if (type == "dynamic") {
    static_cast<void>(needed(rope, kFactor));  // differs only beyond max_position_embeddings
  } else if (type != "default") {
    rope.refuse(ErrorCode::unsupported, kind,
                {model.is_causal ? "default, dynamic, linear, llama3 or yarn" : "default, dynamic, linear, llama3, ntk or yarn"}, {type});
  }
  configure_rotary(model, theta);
}

void refuse_share(const ConfigReader& reader) {
  if (const double share = reader.positive(kShare, 1); share != 1) reader.refuse(ErrorCode::unsupported, kShare, {"null or 1"}, {share});
}

}  // namespace

void configure_rope_parameters(const ConfigReader& config, ModelConfig& model, double theta, double share) {
  const ConfigReader parameters = config.object("rope_parameters"), scaling = config.object("rope_scaling");
  // The older name has priority, as in transformers.
  const ConfigReader& rope = scaling.is_empty() ? parameters : scaling;
  for (const char* const kind : {kFull, kSliding})
    if (rope.has(kind)) rope.refuse(ErrorCode::unsupported, kind, {"no parameters by kind of layer in this family"}, {"given"});
  if (rope.has("mixed_b")) rope.refuse(ErrorCode::unsupported, "mixed_b", {"null"}, {"given"});
  if (share > 0) {
    const auto width = static_cast<double>(model.head_width());
    share = rope.positive(kShare, share) * width;
    model.rotary_width = share <= width ? static_cast<std::int64_t>(share) : 0;
    if (model.rotary_width < 2 || model.rotary_width % 2 != 0)
      rope.refuse(ErrorCode::config, kShare, {"an even number of a head's ", width, " columns"}, {share, " of them"});
  } else {
    theta = config.positive(kTheta, theta);  // GPT-NeoX has another name
    refuse_share(config);
    refuse_share(rope);
  }
  configure_rope({config, rope}, model, rope.positive(kTheta, theta));
}

double configure_rope_by_layer_type(const ConfigReader& config, ModelConfig& model, double theta, double local_theta) {
  const ConfigReader parameters = config.object("rope_parameters"), scaling = config.object("rope_scaling");
  const ConfigReader full = parameters.object(kFull), local = parameters.object(kSliding);
  const bool is_scaled = !scaling.is_empty();
  if (is_scaled) {
    // transformers merges it into rope_parameters.full_attention.
    if (!parameters.is_empty() && full.is_empty())
      config.refuse(ErrorCode::unsupported, "rope_scaling", {"null together with rope_parameters without full_attention"}, {"given"});
    if (!scaling.has("rope_type")) scaling.refuse(ErrorCode::unsupported, "rope_type", {"a kind of RoPE"}, {"missing"});
    full.only("rope_type", "default");
  }
  if (const Json* const given = config.find("rope_parameters"))
    for (const auto& [name, value] : *given->object())
      if (name != kFull && name != kSliding && name != kTruncate && !value.is_null())
        model.notes.push_back("config.json: rope_parameters." + name +
                              " is not used, as in transformers: this family reads parameters by kind of layer");
  for (const char* const kind : {"rope_type", "type"}) local.only(kind, "default");
  for (const ConfigReader* const reader : {&config, &full, &local, &scaling}) refuse_share(*reader);
  theta = full.positive(kTheta, config.positive(kTheta, theta));
  const ConfigReader& rope = is_scaled ? scaling : full;
  configure_rope({config, rope, &parameters}, model, rope.positive(kTheta, theta));
  return local.positive(kTheta, config.positive("rope_local_base_freq", local_theta));
}

}  // namespace attn::detail
