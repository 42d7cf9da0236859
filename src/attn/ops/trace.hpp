#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace attn {

/// Intermediate results of attention, in the order in which they arise.
enum class TraceName : std::uint8_t {
  q_proj,           ///< (B,L,H·D) query projection, bias included
  k_proj,           ///< (B,S,H·D)
  v_proj,           ///< (B,S,H·Dv)
  q,                ///< (B,H,L,D)
  k,                ///< (B,H,S,D)
  v,                ///< (B,H,S,Dv)
  scores,           ///< (B,H,L,S) q kᵀ · scale through softcap, with what positions add: what masks meet
  masked_scores,    ///< (B,H,L,S) after masks, -infinity where blocked
  probabilities,    ///< (B,H,L,S) after softmax
  weights,          ///< (B,H,L,S) after dropout too: what multiplies the values
  weighted_values,  ///< (B,H,L,S,Dv) each weight times its value
  context,          ///< (B,H,L,Dv) sums of weighted values
  merged,           ///< (B,L,H·Dv) heads side by side
  output,           ///< (B,L,E) after the output projection
  // Of an encoder layer only:
  attn_residual,  ///< (B,L,E) x + attention
  norm1,          ///< (B,L,E) what norm1 gives, wherever it sits
  ff_hidden,      ///< (B,L,F) after the activation, and the gate
  ff_output,      ///< (B,L,E) linear2 of it
  ff_residual,    ///< (B,L,E) the second sum
  norm2,          ///< (B,L,E) what norm2 gives
  // Of a model's disentangled attention only (He et al. 2020), the parts of its scores, scaled:
  c2c,  ///< (B,H,L,S) content to content: q kᵀ
  c2p,  ///< (B,H,L,S) content to position: queries with the keys of relative positions
  p2c,  ///< (B,H,L,S) position to content: keys with the queries of relative positions
};

inline constexpr std::array<std::string_view, 23> kTraceNames{"q_proj",
                                                              "k_proj",
                                                              "v_proj",
                                                              "q",
                                                              "k",
                                                              "v",
                                                              "scores",
                                                              "masked_scores",
                                                              "probabilities",
                                                              "weights",
                                                              "weighted_values",
                                                              "context",
                                                              "merged",
                                                              "output",
                                                              "attn_residual",
                                                              "norm1",
                                                              "ff_hidden",
                                                              "ff_output",
                                                              "ff_residual",
                                                              "norm2",
                                                              "c2c",
                                                              "c2p",
                                                              "p2c"};
/// The first of them are those of attention; the others only encoder layers have.
inline constexpr std::size_t kAttentionTraceCount = 14;
/// And these those of any encoder layer.
inline constexpr std::size_t kLayerTraceCount = 20;

constexpr std::string_view to_string(TraceName name) { return kTraceNames[static_cast<std::size_t>(name)]; }

/// Which intermediate results a call shall return.
class Trace {
 public:
  constexpr Trace() = default;
  constexpr Trace(std::initializer_list<TraceName> names) {
    for (const TraceName name : names) bits_ |= 1U << static_cast<unsigned>(name);
  }
  /// Every one that the op or layer has, but the large weighted_values.
  static constexpr Trace all() {
    Trace trace;
    trace.bits_ = kAll;
    return trace;
  }
  /// Those of attention, without the ones that only encoder layers have.
  static constexpr Trace of_attention() { return from_bits((1U << kAttentionTraceCount) - 1); }
  static constexpr Trace from_bits(std::uint32_t bits) {
    Trace trace;
    trace.bits_ = bits;
    return trace;
  }
  constexpr bool has(TraceName name) const { return (bits_ >> static_cast<unsigned>(name) & 1U) != 0; }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool any() const { return bits_ != 0; }

 private:
  static constexpr std::uint32_t kAll = ((1U << kTraceNames.size()) - 1) & ~(1U << static_cast<unsigned>(TraceName::weighted_values));
  std::uint32_t bits_ = 0;
};

}  // namespace attn
