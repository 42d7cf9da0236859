#include "attn/ops/attention.hpp"

#include <algorithm>

#include "attn/ops/attention_core.hpp"
#include "attn/ops/attention_inputs.hpp"

namespace attn::detail {

AttentionSpec spec_of(std::string_view op, const AttentionOptions& options, Trace available, std::string_view available_names) {
  return {.softcap = check_softcap(op, options.softcap.value_or(0.0F)),
          .window = check_window(op, options.window.value_or(Window{})),
          .query_offset = check_query_offset(op, options.query_offset.value_or(0)),
          .is_causal = options.is_causal,
          .mask = options.mask,
          .key_padding_mask = options.key_padding_mask,
          .fully_masked = options.fully_masked,
          .need_weights = options.need_weights,
          .average_weights = options.average_weights,
          .output_present = options.output_present || options.past,
          .trace = available_traces(op, options.trace, available, available_names)};
}

AttentionPlan plan_scaled_dot_product_attention(const TensorView& query, const TensorView& key, const TensorView& value,
                                                const AttentionOptions& options) {
  constexpr std::string_view kOp = "scaled_dot_product_attention";
  const CheckedInputs checked = check_attention_inputs(kOp, query, key, value, options, false);
  AttentionSpec spec = checked.spec;
  spec.scale = attention_scale(kOp, options.scale, spec.head_dim);
  AttentionPlan plan(kOp, spec, checked.sizes, checked.output);
  check_memory(kOp, [&] { scaled_dot_product_attention(plan, query, key, value, options, counted_buffers(plan)); });
  return plan;
}

void scaled_dot_product_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                  const AttentionOptions& options, const AttentionBuffers& buffers) {
  const KeyValueView joined = join_past(plan, key, value, options, buffers);
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const AttentionInputs inputs{.query = heads_of(query),
                               .key = heads_of(joined.key),
                               .value = heads_of(joined.value),
                               .context = heads_of(buffers.output, spec.num_heads, sizes.L, spec.value_head_dim),
                               .dropout = dropout_of_call("scaled_dot_product_attention", options.dropout, options.seed)};
  Scratch scratch;
  attention_core(spec, sizes, inputs, buffers, scratch);
  copy_input_traces(plan, query, joined, buffers);
}

}  // namespace attn::detail
