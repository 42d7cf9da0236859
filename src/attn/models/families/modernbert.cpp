#include "attn/models/family.hpp"

// ModernBERT (Warner et al. 2024), transformers' ModernBertModel: RoPE, gate, pre-norm, local attention in most layers.
namespace attn::detail {
namespace modernbert {

constexpr std::string_view kTypes[] = {"modernbert"};
constexpr std::string_view kIgnored[] = {"head.", "decoder."};
constexpr std::int64_t kPositions = 8192;
constexpr double kGlobalTheta = 160000, kLocalTheta = 10000;

/// transformers writes rope_parameters since version 5.
double theta_of(const ConfigReader& config, const char* kind, double otherwise) {
  const ConfigReader all = config.object("rope_parameters"), rope = all.object(kind);
  if (all.has("rope_theta"))
    all.refuse(ErrorCode::unsupported, "rope_theta", {"one for full_attention and one for sliding_attention"}, {"one for all"});
  rope.only("rope_type", "default");
  for (const char* const name : {"factor", "partial_rotary_factor"})
    if (rope.has(name)) rope.refuse(ErrorCode::unsupported, name, {"null"}, {"given"});
  return rope.positive("rope_theta", otherwise);
}

void configure(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-5F;
  configure_sizes(config, model,
                  {.hidden_act = "hidden_activation", .layer_norm_eps = "norm_eps", .max_position_embeddings = kPositions, .pad_token_id = 50283});
  config.whole("max_position_embeddings", 1, 1 << 20, kPositions);  // bounds the angles
  model.positions = PositionRows::none;
  model.norm_first = model.normed_input = model.gated = true;
  model.attention_bias = model.attention_output_bias = config.flag("attention_bias", false);
  model.mlp_bias = model.mlp_output_bias = config.flag("mlp_bias", false);
  model.norm_bias = config.flag("norm_bias", false);

  if (config.has("rope_scaling")) config.refuse(ErrorCode::unsupported, "rope_scaling", {"null"}, {"given"});
  const double global = config.positive("global_rope_theta", kGlobalTheta);
  // null selects the global base, a missing member the default.
  const double local = config.is_null("local_rope_theta") ? global : config.positive("local_rope_theta", kLocalTheta);
  const double full = theta_of(config, "full_attention", global), sliding = theta_of(config, "sliding_attention", local);
  // sliding_window counts keys on one side, local_attention on both.
  const std::int64_t window =
      config.has("sliding_window") ? config.whole("sliding_window", 0, 0x7fffffff) : config.whole("local_attention", 0, 0x7fffffff, 128) / 2;
  const bool has_types = config.has("layer_types");
  const auto period = static_cast<std::size_t>(has_types ? 1 : config.whole("global_attn_every_n_layers", 1, 0x7fffffff, 3));
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(model.num_hidden_layers); ++layer)
    model.distances.push_back(config.is_sliding(layer, layer % period != 0) ? LayerDistance{sliding, window} : LayerDistance{full, -1});

  const std::string_view pooling = config.string("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean") config.refuse(ErrorCode::unsupported, "classifier_pooling", {"cls or mean"}, {pooling});
  model.classifier_pooling = pooling == "cls" ? Pooling::cls : Pooling::mean;
  model.classifier_activation = config.has("classifier_activation") ? config.activation("classifier_activation") : Activation::gelu;
  model.classifier_dense_bias = config.flag("classifier_bias", false);
  model.decoder_activation = model.classifier_activation;
  model.decoder_bias = config.flag("decoder_bias", true);
  const float attention = config.number("attention_dropout", 0);
  model.dropout = {.attention_weights = attention,
                   .attention_output = attention,
                   .hidden = config.number("mlp_dropout", 0),
                   .embeddings = config.number("embedding_dropout", 0),
                   .classifier = config.number("classifier_dropout", 0)};
}

constexpr HeadNames kHead{.dense = "head.dense", .norm = "head.norm", .classifier = "classifier"};

}  // namespace modernbert

const Family kModernBert{.model_types = modernbert::kTypes,
                         .architecture = "ModernBert",
                         .prefix = "model.",
                         .names = {.word_embeddings = "embeddings.tok_embeddings",
                                   .embedding_norm = "embeddings.norm",
                                   .layers = "layers.",
                                   .query_key_value = "attn.Wqkv",
                                   .attention_output = "attn.Wo",
                                   .norm1 = "attn_norm",
                                   .gate_linear1 = "mlp.Wi",
                                   .linear2 = "mlp.Wo",
                                   .norm2 = "mlp_norm",
                                   .final_norm = "final_norm"},
                         .text_classification = modernbert::kHead,
                         .token_classification = modernbert::kHead,
                         .question_answering = modernbert::kHead,
                         .multiple_choice = modernbert::kHead,
                         .fill_mask = {.dense = "head.dense", .norm = "head.norm", .classifier = "decoder"},
                         .ignored = modernbert::kIgnored,
                         .configure = &modernbert::configure};

}  // namespace attn::detail
