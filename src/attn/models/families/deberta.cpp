#include <algorithm>
#include <cmath>

#include "attn/models/families/bert.hpp"
#include "attn/ops/elementary.hpp"

// DeBERTa v2 and v3 (He et al. 2020 and 2021), transformers' DebertaV2Model: score = (q kᵀ + q K_rᵀ + k Q_rᵀ) / √(3 D), r the row of the table for
// the distance of query and key.
namespace attn::detail {
namespace deberta {

constexpr std::string_view kTypes[] = {"deberta-v2"};
constexpr std::string_view kIgnored[] = {"cls.",    "lm_predictions.",     "mask_predictions.",
                                         "pooler.", "embeddings.position", "deberta.embeddings.position"};
constexpr std::int64_t kMostRows = 1 << 24;  // in half of the table

extern const Family kNewMaskHead;

/// `words` is such as "c2p|p2c".
bool has_word(std::string_view words, std::string_view word) {
  std::string found;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    if (i == words.size() || words[i] == '|') {
      if (found == word) return true;
      found.clear();
    } else if (words[i] != ' ') {
      found += static_cast<char>(words[i] >= 'A' && words[i] <= 'Z' ? words[i] + ('a' - 'A') : words[i]);
    }
  }
  return false;
}

/// pos_att_type is a string or a list.
bool has_part(const ConfigReader& config, std::string_view part) {
  const Json* const given = config.find("pos_att_type");
  if (given == nullptr) return false;
  if (const Json::Array* const list = given->array())
    return std::any_of(list->begin(), list->end(), [&](const Json& each) { return each.string() != nullptr && *each.string() == part; });
  return has_word(config.string("pos_att_type", ""), part);
}

void configure(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-7F;
  configure_sizes(config, model);
  const auto only = [&](const char* name, std::int64_t value) {
    if (config.has(name) && config.whole(name, 0, 0x7fffffff) != value)
      config.refuse(ErrorCode::unsupported, name, {value}, {config.whole(name, 0, 0x7fffffff)});
  };
  only("embedding_size", model.hidden_size);
  only("pooler_hidden_size", model.hidden_size);
  only("attention_head_size", model.hidden_size / model.num_attention_heads);
  only("conv_kernel_size", 0);  // deberta-v2-xlarge has a convolution
  model.type_vocab_size = config.whole("type_vocab_size", 0, 0x7fffffff, 0);
  if (!config.flag("position_biased_input", true)) model.positions = PositionRows::none;
  model.clears_padding = true;
  model.decoder_activation = model.hidden_act;
  model.classifier_activation = config.has("pooler_hidden_act") ? config.activation("pooler_hidden_act") : Activation::gelu;
  if (!config.flag("legacy", true)) {
    model.family = &kNewMaskHead;
    model.tie_word_embeddings = true;
  }

  RelativeConfig& relative = model.relative;
  relative.c2p = has_part(config, "c2p");
  relative.p2c = has_part(config, "p2c");
  relative.scale_factor = 1 + (relative.c2p ? 1 : 0) + (relative.p2c ? 1 : 0);
  relative.has_norm = has_word(config.string("norm_rel_ebd", "none"), "layer_norm");  // in the checkpoint even if unused
  if (config.flag("relative_attention", false)) {
    const std::int64_t most = config.whole("max_relative_positions", -1, kMostRows, -1);
    relative.max_distance = most < 1 ? std::min(model.max_position_embeddings, kMostRows) : most;
    relative.buckets = std::max<std::int64_t>(config.whole("position_buckets", -1, kMostRows, -1), 0);
    relative.span = relative.buckets > 0 ? relative.buckets : relative.max_distance;
    // The logarithmic scale above half of the buckets divides by log((max_distance - 1) / middle).
    const std::int64_t middle = relative.buckets / 2;
    if (relative.buckets == 1 || (relative.buckets > 0 && relative.max_distance - 1 <= middle && model.max_position_embeddings - 1 > middle))
      config.refuse(ErrorCode::config, "position_buckets", {"a number of at least 2 and below twice max_relative_positions, ", relative.max_distance},
                    {relative.buckets});
    relative.shares_projections = config.flag("share_att_key", false);
  } else {
    relative.c2p = relative.p2c = false;
  }
  configure_dropout(config, model);
  model.dropout.relative_positions = model.dropout.embeddings;
  model.dropout.pooled = config.number("pooler_dropout", 0);
  model.dropout.classifier = config.number("cls_dropout", model.dropout.embeddings);
}

constexpr TensorNames names() {
  TensorNames all = kBertNames;
  all.query = "attention.self.query_proj";
  all.key = "attention.self.key_proj";
  all.value = "attention.self.value_proj";
  all.relative_embeddings = "encoder.rel_embeddings";
  all.relative_norm = "encoder.LayerNorm";
  all.position_key = "attention.self.pos_key_proj";
  all.position_query = "attention.self.pos_query_proj";
  return all;
}

constexpr HeadNames kContextHead{.dense = "pooler.dense", .classifier = "classifier"};

constexpr Family family(const HeadNames& fill_mask) {
  Family all = bert_family(kTypes, "DebertaV2", "deberta.", kIgnored, &configure, names());
  all.text_classification = all.multiple_choice = kContextHead;
  all.fill_mask = fill_mask;
  all.tokenizer_class = "DebertaV2Tokenizer";
  return all;
}

const Family kNewMaskHead = family({.dense = "lm_predictions.lm_head.dense",
                                    .norm = "lm_predictions.lm_head.LayerNorm",
                                    .classifier = "lm_predictions.lm_head.decoder",
                                    .classifier_bias = "lm_predictions.lm_head.bias"});

}  // namespace deberta

const Family kDeberta = deberta::family(kBertMaskHead);

/// As transformers' make_log_bucket_position: each step is rounded to float32.
std::int64_t RelativeConfig::row(std::int64_t distance) const {
  const std::int64_t middle = buckets / 2, size = std::abs(distance);
  std::int64_t bucket = size;
  if (buckets > 0 && size > middle) {
    const auto log = [](double x) { return static_cast<float>(log_of(static_cast<double>(static_cast<float>(x)))); };
    const auto mid = static_cast<float>(middle);
    const float place =
        log(static_cast<double>(static_cast<float>(size) / mid)) / log(static_cast<double>(max_distance - 1) / static_cast<double>(middle));
    bucket = static_cast<std::int64_t>(std::ceil(place * static_cast<float>(middle - 1)) + mid);
  }
  return std::clamp<std::int64_t>((distance < 0 ? -bucket : bucket) + span, 0, rows() - 1);
}

}  // namespace attn::detail
