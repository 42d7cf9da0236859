#include <cmath>

#include "c/handles.hpp"

using namespace attn::c;

struct attn_multi_head_attention {
  attn::MultiHeadAttention module;
};

struct attn_transformer_encoder {
  attn::TransformerEncoder module;
};

extern "C" {

void attn_attention_options_init(attn_attention_options* options) {
  *options = {};
  options->scale = options->dropout = options->softcap = NAN;
  options->window_left = options->window_right = -1;
}

attn_status attn_scaled_dot_product_attention(const attn_view* query, const attn_view* key, const attn_view* value,
                                              const attn_attention_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "scaled_dot_product_attention";
  return making(op, results, error, [&] {
    const Given q(op, "query", query);
    const Given k(op, "key", key);
    const Given v(op, "value", value);
    const attn::AttentionOptions chosen = to_options(op, options);
    const attn::detail::AttentionPlan plan = attn::detail::plan_scaled_dot_product_attention(q, k, v, chosen);
    return to_tensors(attn::detail::run_attention_plan<attn::kAnyRank, attn::kAnyRank>(
        plan, [&](const attn::detail::AttentionBuffers& buffers) { attn::detail::scaled_dot_product_attention(plan, q, k, v, chosen, buffers); }));
  });
}

void attn_multi_head_attention_options_init(attn_multi_head_attention_options* options) {
  *options = {};
  options->bias = options->out_proj = true;
  options->scale = NAN;
}

attn_status attn_multi_head_attention_new(const attn_multi_head_attention_options* options, attn_multi_head_attention** layer, attn_error** error) {
  const char* op = "MultiHeadAttention";
  return making(op, layer, error, [&] {
    check_pointer(op, options, "options");
    return std::make_unique<attn_multi_head_attention>(attn::MultiHeadAttention({.embed_dim = options->embed_dim,
                                                                                 .num_heads = options->num_heads,
                                                                                 .num_key_value_heads = given_or_none(options->num_key_value_heads),
                                                                                 .kdim = given_or_none(options->kdim),
                                                                                 .vdim = given_or_none(options->vdim),
                                                                                 .head_dim = given_or_none(options->head_dim),
                                                                                 .value_head_dim = given_or_none(options->value_head_dim),
                                                                                 .bias = options->bias,
                                                                                 .add_bias_kv = options->add_bias_kv,
                                                                                 .add_zero_attn = options->add_zero_attn,
                                                                                 .scale = given_or_none(options->scale),
                                                                                 .out_proj = options->out_proj}));
  });
}

void attn_multi_head_attention_free(attn_multi_head_attention* layer) { delete layer; }

attn_status attn_multi_head_attention_load_state_dict(attn_multi_head_attention* layer, const attn_tensors* state, bool strict, attn_error** error) {
  return load_state_dict(layer, "layer", state, strict, error);
}

attn_status attn_multi_head_attention_state_dict(const attn_multi_head_attention* layer, attn_tensors** state, attn_error** error) {
  return state_dict(layer, "layer", state, error);
}

attn_status attn_multi_head_attention_forward(const attn_multi_head_attention* layer, const attn_view* query, const attn_view* key,
                                              const attn_view* value, const attn_attention_options* options, attn_tensors** results,
                                              attn_error** error) {
  const char* op = "MultiHeadAttention";
  return making(op, results, error, [&] {
    check_pointer(op, layer, "layer");
    if ((key == nullptr) != (value == nullptr))
      attn::detail::fail(attn::ErrorCode::argument, op, key == nullptr ? "key" : "value", {"both key and value, or neither"}, {"NULL"});
    const Given q(op, "query", query);
    const Given k(op, "key", key != nullptr ? key : query);
    const Given v(op, "value", value != nullptr ? value : query);
    // The layer projects the query once if key and value are the same view.
    const attn::TensorView& keys = key != nullptr ? k : q;
    const attn::TensorView& values = value != nullptr ? v : q;
    const attn::AttentionOptions chosen = to_options(op, options);
    const attn::detail::AttentionPlan plan = layer->module.plan(q, keys, values, chosen);
    return to_tensors(attn::detail::run_attention_plan<attn::kAnyRank, attn::kAnyRank>(
        plan, [&](const attn::detail::AttentionBuffers& buffers) { layer->module.run(plan, q, keys, values, chosen, buffers); }));
  });
}

void attn_transformer_encoder_options_init(attn_transformer_encoder_options* options) {
  const attn::TransformerEncoderOptions defaults;
  *options = {};
  options->dim_feedforward = defaults.dim_feedforward;
  options->activation = "relu";
  options->layer_norm_eps = defaults.layer_norm_eps;
  options->bias = defaults.bias;
}

void attn_encoder_forward_options_init(attn_encoder_forward_options* options) { *options = {}; }

attn_status attn_transformer_encoder_new(const attn_transformer_encoder_options* options, attn_transformer_encoder** encoder, attn_error** error) {
  const char* op = "TransformerEncoder";
  return making(op, encoder, error, [&] {
    check_pointer(op, options, "options");
    return std::make_unique<attn_transformer_encoder>(attn::TransformerEncoder(
        {.d_model = options->d_model,
         .nhead = options->nhead,
         .dim_feedforward = options->dim_feedforward,
         .activation = static_cast<attn::Activation>(find_name(op, "activation", options->activation, attn::kActivationNames)),
         .layer_norm_eps = options->layer_norm_eps,
         .norm_first = options->norm_first,
         .bias = options->bias,
         .gated = options->gated,
         .num_key_value_heads = given_or_none(options->num_key_value_heads),
         .num_layers = options->num_layers,
         .final_norm = options->final_norm}));
  });
}

void attn_transformer_encoder_free(attn_transformer_encoder* encoder) { delete encoder; }

attn_status attn_transformer_encoder_load_state_dict(attn_transformer_encoder* encoder, const attn_tensors* state, bool strict, attn_error** error) {
  return load_state_dict(encoder, "encoder", state, strict, error);
}

attn_status attn_transformer_encoder_state_dict(const attn_transformer_encoder* encoder, attn_tensors** state, attn_error** error) {
  return state_dict(encoder, "encoder", state, error);
}

attn_status attn_transformer_encoder_forward(const attn_transformer_encoder* encoder, const attn_view* x, const attn_encoder_forward_options* options,
                                             attn_tensors** results, attn_error** error) {
  const char* op = "TransformerEncoder";
  return making(op, results, error, [&] {
    check_pointer(op, encoder, "encoder");
    const Given view(op, "x", x);
    attn::EncoderForwardOptions chosen;
    if (options != nullptr) {
      chosen.mask = to_mask(op, "mask", options->mask);
      chosen.key_padding_mask = to_mask(op, "key_padding_mask", options->key_padding_mask);
      chosen.is_causal = options->is_causal;
      chosen.output_attentions = options->output_attentions;
      chosen.output_hidden_states = options->output_hidden_states;
      if (const attn::Trace names = to_trace(op, options->trace, options->trace_count); names.any()) chosen.trace = {.names = names};
    }
    const attn::detail::EncoderPlan plan = encoder->module.plan(view, chosen);
    auto result =
        attn::detail::run_encoder_plan<3>(plan, [&](const attn::detail::EncoderBuffers& buffers) { encoder->module.run(plan, view, buffers); });
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("output", std::move(result.output));
    put_layers(*tensors, std::move(result));
    return tensors;
  });
}

}  // extern "C"
