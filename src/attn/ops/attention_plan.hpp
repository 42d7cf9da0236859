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

// Describes a call of attention, checked before anything is allocated: a spec determines a plan, which the core executes
// (attention_core.hpp). Neither changes afterwards.
namespace attn {

/// Sliding window: query i at position p = i + offset sees keys p - left … p + right; -1: unbounded on that side.
struct Window {
  std::int64_t left = -1, right = -1;

  /// Returns whether all keys are visible.
  /// @code
  /// std::cout << attn::Window{}.open() << ' ' << attn::Window{.left = 2}.open();  // 1 0
  /// @endcode
  bool open() const { return left < 0 && right < 0; }
};

namespace detail {

/// `count` consecutive sequences of the same length.
struct SequenceGroup {
  std::int64_t count = 0, length = 0;
};

/// Projected relative positions of disentangled attention in one layer (He et al. 2020, section 3.1), rows of H·D. With r = rows[i - j],
/// scale · q_i · keys[r] (content to position) and scale · k_j · queries[r] (position to content) are added to score (i,j).
struct RelativePositions {
  const float* key_panels = nullptr;   ///< keys packed by pack(); null: no content to position
  const float* queries = nullptr;      ///< null: no position to content
  std::int64_t width = 0;              ///< H·D
  const std::int32_t* rows = nullptr;  ///< indexed by query - key, which may be negative; never decreasing
  // For backward: the number of rows, the embeddings x (count,E) that were projected, the dropout applied to them, and the unpacked keys (null
  // if there is no content to position).
  std::int64_t count = 0;
  const float *x = nullptr, *keys = nullptr;
  Dropout dropout = {};
};

/// Bias added to the scores after softcap: that of head h, query i and key j is data[h · row + j - i]; null: none.
struct PositionBias {
  const float* data = nullptr;
  std::int64_t row = 0;
  const RelativePositions* relative = nullptr;  ///< one per layer in a stack, a single one in attention; null: none
};

/// All settings of a call except its inputs and their sizes. Refers to the caller's masks and runs.
struct AttentionSpec {
  std::int64_t num_heads = 1, num_key_value_heads = 1;
  std::int64_t head_dim = 0, value_head_dim = 0;  ///< width of queries and keys, and of values
  float scale = 1;
  float softcap = 0;  ///< scores become softcap · tanh(score / softcap); 0: unchanged
  Window window = {};
  std::int64_t query_offset = 0;  ///< position of the first query
  bool is_causal = false;         ///< masks keys after the query's position
  std::optional<MaskView> mask = std::nullopt, key_padding_mask = std::nullopt;
  FullyMasked fully_masked = FullyMasked::zero;
  std::int64_t extra_keys = 0;  ///< keys after the given ones that no mask covers and every query sees
  /// In a layer, sequences of different lengths without padding between them, each row attending to its own sequence: B is 1, L = S is the
  /// total number of rows, and there are no masks. Empty: B sequences of length L.
  std::span<const SequenceGroup> runs = {};
  bool need_weights = false, average_weights = false;
  bool output_present = false;  ///< return past and new keys and values concatenated
  Trace trace = {};
  bool reproducible = false;  ///< bit-identical on all architectures
  /// A query at a position that key_padding_mask blocks sees no key, because queries and keys are the same tokens.
  bool queries_are_padded = false;
  bool relative_positions = false;  ///< whether the inputs have relative positions
};

/// L queries and S keys: the first `past` keys are from earlier calls, the last ones are the spec's extra keys.
struct AttentionSizes {
  std::int64_t B = 1, L = 0, S = 0, past = 0;
  std::int64_t query_width = 0, key_width = 0;  ///< widths of the traces q and k
  bool has_batch = true, has_heads = true;      ///< whether results have these dimensions
};

/// Shapes of the results. The constructor throws MASK if a mask does not fit or has invalid values.
struct AttentionPlan {
  AttentionPlan(std::string_view op, const AttentionSpec& spec, const AttentionSizes& sizes, const Shape& output);

  const AttentionSpec spec;
  const AttentionSizes sizes;
  const Shape output;                               ///< as returned to the caller
  const Shape weights, present_key, present_value;  ///< only if requested
  const std::array<Shape, kAttentionTraceCount> trace_shapes;
};

/// Output buffers for results; null if not requested.
struct AttentionBuffers {
  float* output = nullptr;
  float* weights = nullptr;
  float *present_key = nullptr, *present_value = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
  /// (B,H,L), ln Σ exp(masked score), from which a backward can recompute the weights; -infinity if there is no key to attend to.
  float* log_sum_exp = nullptr;

  float* of(TraceName name) const { return trace[static_cast<std::size_t>(name)]; }
};

/// counted() results of a plan, for its dry run.
AttentionBuffers counted_buffers(const AttentionPlan& plan);

/// Dimensions of an input of rank 2, 3 or 4; missing ones are 1.
struct HeadDims {
  std::int64_t B = 1, H = 1, rows = 0, width = 0;
};

/// Throws SHAPE for any other rank.
HeadDims head_dims(std::string_view op, std::string_view name, const TensorView& x);

/// Returns the requested traces. A request for all traces of attention (with or without weighted_values) is reduced to those that the op has;
/// otherwise throws ARGUMENT for a name that it does not have, with `names` as the list of expected ones.
Trace available_traces(std::string_view op, Trace asked, Trace available, std::string_view names);

/// Returns the scale of the options (throws CONFIG unless finite), by default 1/√D.
float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D);
/// Throws CONFIG unless softcap is 0 or a normal number above 0.
float check_softcap(std::string_view op, float softcap);
/// Throws CONFIG if a side is below -1; limits very large sides.
Window check_window(std::string_view op, const Window& window);
/// Throws CONFIG if the offset is outside ±2⁵³.
std::int64_t check_query_offset(std::string_view op, std::int64_t offset);

}  // namespace detail
}  // namespace attn
