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

void(attn_attention_options_init)(attn_attention_options* options, size_t size) {
  init_options<attn_attention_options>(options, size, {.scale = NAN, .dropout = NAN, .softcap = NAN, .window_left = -1, .window_right = -1});
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

void(attn_multi_head_attention_options_init)(attn_multi_head_attention_options* options, size_t size) {
  init_options<attn_multi_head_attention_options>(options, size, {.bias = true, .out_proj = true, .scale = NAN});
}

attn_status attn_multi_head_attention_new(const attn_multi_head_attention_options* options, attn_multi_head_attention** layer, attn_error** error) {
  const char* op = "MultiHeadAttention";
  return making(op, layer, error, [&] {
    check_pointer(op, options, "options");
    const auto from = to_known(op, "options", options, attn_multi_head_attention_options_init);
    return std::make_unique<attn_multi_head_attention>(attn::MultiHeadAttention({.embed_dim = from.embed_dim,
                                                                                 .num_heads = from.num_heads,
                                                                                 .num_key_value_heads = given_or_none(from.num_key_value_heads),
                                                                                 .kdim = given_or_none(from.kdim),
                                                                                 .vdim = given_or_none(from.vdim),
                                                                                 .head_dim = given_or_none(from.head_dim),
                                                                                 .value_head_dim = given_or_none(from.value_head_dim),
                                                                                 .bias = from.bias,
                                                                                 .add_bias_kv = from.add_bias_kv,
                                                                                 .add_zero_attn = from.add_zero_attn,
                                                                                 .scale = given_or_none(from.scale),
                                                                                 .out_proj = from.out_proj}));
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
    // The layer projects the query once if all are the same view.
    const attn::TensorView& keys = key != nullptr ? k : q;
    const attn::TensorView& values = value != nullptr ? v : q;
    const attn::AttentionOptions chosen = to_options(op, options);
    const attn::detail::AttentionPlan plan = layer->module.plan(q, keys, values, chosen);
    return to_tensors(attn::detail::run_attention_plan<attn::kAnyRank, attn::kAnyRank>(
        plan, [&](const attn::detail::AttentionBuffers& buffers) { layer->module.run(plan, q, keys, values, chosen, buffers); }));
  });
}

void(attn_transformer_encoder_layer_options_init)(attn_transformer_encoder_layer_options* options, size_t size) {
  const attn::TransformerEncoderLayerOptions defaults;
  init_options<attn_transformer_encoder_layer_options>(
      options, size,
      {.dim_feedforward = defaults.dim_feedforward, .activation = "relu", .layer_norm_eps = defaults.layer_norm_eps, .bias = defaults.bias});
}

void(attn_transformer_encoder_options_init)(attn_transformer_encoder_options* options, size_t size) {
  init_options<attn_transformer_encoder_options>(options, size, {});
}

void(attn_encoder_forward_options_init)(attn_encoder_forward_options* options, size_t size) {
  init_options<attn_encoder_forward_options>(options, size, {});
}

attn_status attn_transformer_encoder_new(const attn_transformer_encoder_options* options, attn_transformer_encoder** encoder, attn_error** error) {
  const char* op = "TransformerEncoder";
  return making(op, encoder, error, [&] {
    check_pointer(op, options, "options");
    const auto stack = to_known(op, "options", options, attn_transformer_encoder_options_init);
    check_pointer(op, stack.layer, "layer");
    const auto layer = to_known(op, "layer", stack.layer, attn_transformer_encoder_layer_options_init);
    return std::make_unique<attn_transformer_encoder>(attn::TransformerEncoder(
        {.layer = {.d_model = layer.d_model,
                   .nhead = layer.nhead,
                   .dim_feedforward = layer.dim_feedforward,
                   .activation = static_cast<attn::Activation>(find_name(op, "activation", layer.activation, attn::kActivationNames)),
                   .layer_norm_eps = layer.layer_norm_eps,
                   .norm_first = layer.norm_first,
                   .bias = layer.bias,
                   .gated = layer.gated,
                   .num_key_value_heads = given_or_none(layer.num_key_value_heads)},
         .num_layers = stack.num_layers,
         .final_norm = stack.final_norm}));
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
    const auto from = to_known(op, "options", options, attn_encoder_forward_options_init);
    attn::EncoderForwardOptions chosen;
    chosen.mask = to_mask(op, "mask", from.mask);
    chosen.key_padding_mask = to_mask(op, "key_padding_mask", from.key_padding_mask);
    chosen.is_causal = from.is_causal;
    chosen.output_attentions = from.output_attentions;
    chosen.output_hidden_states = from.output_hidden_states;
    if (const attn::Trace names = to_trace(op, from.trace, from.trace_count); names.any()) chosen.trace = {.names = names};
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
