#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace attn {

/// Intermediate results of attention, in the order in which they are computed.
enum class TraceName : std::uint8_t {
  q_proj,           ///< (B,L,H·D) query projection, bias included
  k_proj,           ///< (B,S,H·D)
  v_proj,           ///< (B,S,H·Dv)
  q,                ///< (B,H,L,D)
  k,                ///< (B,H,S,D)
  v,                ///< (B,H,S,Dv)
  scores,           ///< (B,H,L,S) q kᵀ · scale, with softcap and position terms, before masks
  masked_scores,    ///< (B,H,L,S) after masks, -infinity for blocked keys
  probabilities,    ///< (B,H,L,S) after softmax
  weights,          ///< (B,H,L,S) after dropout; multiplied by the values
  weighted_values,  ///< (B,H,L,S,Dv) each weight times its value
  context,          ///< (B,H,L,Dv) sums of weighted values
  merged,           ///< (B,L,H·Dv) concatenated heads
  output,           ///< (B,L,E) after the output projection
  // Encoder layers only:
  attn_residual,  ///< (B,L,E) x + attention
  norm1,          ///< (B,L,E) output of norm1, in pre-norm and post-norm layers
  ff_hidden,      ///< (B,L,F) after the activation and the gate
  ff_output,      ///< (B,L,E) output of linear2
  ff_residual,    ///< (B,L,E) the second residual sum
  norm2,          ///< (B,L,E) output of norm2
  // Models with disentangled attention only (He et al. 2020), the scaled terms of the scores:
  c2c,  ///< (B,H,L,S) content to content: q kᵀ
  c2p,  ///< (B,H,L,S) content to position: queries times position keys
  p2c,  ///< (B,H,L,S) position to content: keys times position queries
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
/// The first traces are those of attention; only encoder layers have the others.
inline constexpr std::size_t kAttentionTraceCount = 14;
/// The first traces, up to norm2, are those of every encoder layer.
inline constexpr std::size_t kLayerTraceCount = 20;

/// Returns the name of an intermediate result, the same as in other languages.
/// @code
/// std::cout << to_string(attn::TraceName::masked_scores);  // masked_scores
/// @endcode
constexpr std::string_view to_string(TraceName name) { return kTraceNames[static_cast<std::size_t>(name)]; }

/// Set of intermediate results that a call should return.
/// @code
/// xt::xtensor<float, 2> q{{1, 2}}, k{{3, 4}, {1, 0}}, v{{1}, {3}};
/// const auto result = attn::scaled_dot_product_attention(q, k, v, {.scale = 1.0F, .trace = {attn::TraceName::scores}});
/// std::cout << result.trace->at(attn::TraceName::scores);  // {{ 11.,   1.}}
/// @endcode
class Trace {
 public:
  constexpr Trace() = default;
  /// Creates a set of these names.
  constexpr Trace(std::initializer_list<TraceName> names) {
    for (const TraceName name : names) bits_ |= 1U << static_cast<unsigned>(name);
  }
  /// Returns all names that the op or layer has, except the large weighted_values.
  /// @code
  /// const attn::Trace names = attn::Trace::all();
  /// std::cout << names.has(attn::TraceName::scores) << ' ' << names.has(attn::TraceName::weighted_values);  // 1 0
  /// @endcode
  static constexpr Trace all() {
    Trace trace;
    trace.bits_ = kAll;
    return trace;
  }
  /// Returns the names of attention, without those that only encoder layers have.
  /// @code
  /// const attn::Trace names = attn::Trace::of_attention();
  /// std::cout << names.has(attn::TraceName::output) << ' ' << names.has(attn::TraceName::ff_hidden);  // 1 0
  /// @endcode
  static constexpr Trace of_attention() { return from_bits((1U << kAttentionTraceCount) - 1); }
  /// Creates the set from a number whose bit i stands for the i-th TraceName, as bits() returns it.
  /// @code
  /// const attn::Trace names{attn::TraceName::q_proj, attn::TraceName::k_proj};
  /// std::cout << names.bits() << ' ' << attn::Trace::from_bits(names.bits()).has(attn::TraceName::k_proj);  // 3 1
  /// @endcode
  static constexpr Trace from_bits(std::uint32_t bits) {
    Trace trace;
    trace.bits_ = bits;
    return trace;
  }
  /// Returns whether the set contains a name; all() has an example.
  constexpr bool has(TraceName name) const { return (bits_ >> static_cast<unsigned>(name) & 1U) != 0; }
  /// Returns the set as a number for from_bits(), which has an example.
  constexpr std::uint32_t bits() const { return bits_; }
  /// Returns whether the set contains any name.
  /// @code
  /// std::cout << attn::Trace{}.any() << ' ' << attn::Trace{attn::TraceName::scores}.any();  // 0 1
  /// @endcode
  constexpr bool any() const { return bits_ != 0; }

 private:
  static constexpr std::uint32_t kAll = ((1U << kTraceNames.size()) - 1) & ~(1U << static_cast<unsigned>(TraceName::weighted_values));
  std::uint32_t bits_ = 0;
};

}  // namespace attn
