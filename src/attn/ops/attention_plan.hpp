#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attn/ops/dropout.hpp"
#include "attn/ops/fully_masked.hpp"
#include "attn/ops/mask_view.hpp"
#include "attn/ops/trace.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/view.hpp"

// What a call of attention is to compute, checked before anything is allocated: a spec, from which follows a plan, which the core executes
// (attention_core.hpp). Neither changes afterwards.
namespace attn {

/// Which keys a query sees by its place: query i stands at position i + offset and sees keys position - left … position + right; -1: no
/// end on that side.
struct Window {
  std::int64_t left = -1, right = -1;

  bool open() const { return left < 0 && right < 0; }
};

namespace detail {

/// Sequences of one length, one after the other.
struct SequenceRun {
  std::int64_t count = 0, length = 0;
};

/// What disentangled attention makes of relative positions in one layer (He et al. 2020, section 3.1), rows of H·D. With r = rows[i - j], score
/// (i,j) gets scale · q_i · keys[r] (content to position) and scale · k_j · queries[r] (position to content).
struct RelativePositions {
  const float* key_panels = nullptr;   ///< the keys as pack() leaves them; null: no content to position
  const float* queries = nullptr;      ///< null: no position to content
  std::int64_t width = 0;              ///< H·D
  const std::int32_t* rows = nullptr;  ///< by query - key, which may be negative; they rise with it
  // For backward: how many rows there are, what they are made of (count,E), which dropout that went through, and the keys as they are, where they
  // have a part.
  std::int64_t count = 0;
  const float *x = nullptr, *keys = nullptr;
  Dropout dropout = {};
};

/// Added to the scores behind softcap: that of head h, query i and key j is at data[h · row + j - i]; null: nothing is.
struct PositionBias {
  const float* data = nullptr;
  std::int64_t row = 0;
  const RelativePositions* relative = nullptr;  ///< of each layer of a stack, of the one layer in attention; null: none
};

/// All that is said of a call besides its inputs and their sizes. Refers to the caller's numbers and runs.
struct AttentionSpec {
  std::int64_t num_heads = 1, num_key_value_heads = 1;
  std::int64_t head_dim = 0, value_head_dim = 0;  ///< in which queries meet keys, and of the values
  float scale = 1;
  float softcap = 0;  ///< scores become softcap · tanh(score / softcap); 0: they stay
  Window window = {};
  std::int64_t query_offset = 0;  ///< position of the first query
  bool is_causal = false;         ///< no key after a query's position
  std::optional<MaskView> mask = std::nullopt, key_padding_mask = std::nullopt;
  FullyMasked fully_masked = FullyMasked::zero;
  std::int64_t extra_keys = 0;  ///< behind the given ones: no mask speaks of them, and every query sees them
  /// In a layer, rows of several lengths without padding between them, each attending to its own sequence: B is 1, L = S is the number of
  /// rows, and there are no masks. Empty: B sequences of L.
  std::span<const SequenceRun> runs = {};
  bool need_weights = false, average_weights = false;
  bool output_present = false;  ///< past and new keys and values side by side
  Trace trace = {};
  bool everywhere = false;  ///< with the bits that all architectures have
  /// A query that key_padding_mask leaves out sees no key, as queries and keys are the same tokens.
  bool queries_are_padded = false;
  bool relative_positions = false;  ///< whether the inputs have them
};

/// L queries and S keys, of which `past` are from earlier calls and the spec's extra ones the last.
struct AttentionSizes {
  std::int64_t B = 1, L = 0, S = 0, past = 0;
  std::int64_t query_width = 0, key_width = 0;  ///< of the traces q and k
  bool has_batch = true, has_heads = true;      ///< whether results have these dimensions
};

/// The results' shapes. Throws MASK where a mask does not fit or has values that it must not have; results and the core's work space are
/// added to the memory.
struct AttentionPlan {
  AttentionPlan(std::string_view op, const AttentionSpec& spec, const AttentionSizes& sizes, const Shape& output, MemoryEstimate& memory);

  const AttentionSpec spec;
  const AttentionSizes sizes;
  const Shape output;                               ///< as the caller sees it
  const Shape weights, present_key, present_value;  ///< only when asked for
  const std::array<Shape, kAttentionTraceCount> trace_shapes;
};

/// Where results go; null where not asked for.
struct AttentionBuffers {
  float* output = nullptr;
  float* weights = nullptr;
  float *present_key = nullptr, *present_value = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
  float* log_sum_exp = nullptr;  ///< (B,H,L), ln Σ exp(masked score), -infinity for no key: with it a backward finds the weights again

  float* of(TraceName name) const { return trace[static_cast<std::size_t>(name)]; }
};

/// (B,H,rows,width) of an input of rank 2, 3 or 4; missing ones are 1.
struct HeadDims {
  std::int64_t B = 1, H = 1, rows = 0, width = 0;
};

/// Throws SHAPE for another rank.
HeadDims head_dims(std::string_view op, std::string_view name, const TensorView& x);

/// Of the traces asked for those that the op has. Asking for all of attention's asks for what there is; else a name that the op
/// does not have is ARGUMENT, with `names` as what it has.
Trace available_traces(std::string_view op, Trace asked, Trace available, std::string_view names);

/// The scale of the options (CONFIG unless finite), else 1/√D.
float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D);
/// Throws CONFIG unless it is 0 or finite and above.
float check_softcap(std::string_view op, float softcap);
/// Throws CONFIG for numbers below -1.
Window check_window(std::string_view op, const Window& window);
/// Throws CONFIG beyond ±2⁵³.
std::int64_t check_query_offset(std::string_view op, std::int64_t offset);

}  // namespace detail
}  // namespace attn
