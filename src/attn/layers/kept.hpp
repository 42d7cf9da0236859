#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "attn/layers/encoder_forward.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/ops/attention_plan.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

// Data that forwards save for their backward.
namespace attn::detail {

/// Rows of inputs are contiguous.
struct KeptAttention {
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  bool is_self = true;                                                ///< key and value are the query; comparing pointers fails if one is empty
  float *q = nullptr, *k = nullptr, *v = nullptr, *merged = nullptr;  ///< (B,H,L,D), (B,Hkv,S,D), (B,Hkv,S,Dv), (B·L,H·Dv)
  Dropout dropout = {};
  PositionBias position_bias = {};
  AttentionPatch patch = {};  ///< `values` only marks that the caller replaced the heads' results
};

/// A spec with copies of masks and runs: the caller's may be gone by the backward.
class KeptAttentionCall {
 public:
  KeptAttentionCall(const AttentionSpec& call, const AttentionSizes& of_call);
  KeptAttentionCall(const KeptAttentionCall&) = delete;  // the spec points to the copies
  KeptAttentionCall& operator=(const KeptAttentionCall&) = delete;

  AttentionSpec spec;
  const AttentionSizes sizes;

 private:
  struct Copy {
    AlignedArray<std::uint8_t> flags;
    AlignedFloats values;
  };
  static void keep(MaskView& mask, Copy& copy);
  std::array<Copy, 2> copies_;
  std::vector<SequenceGroup> runs_;
};

/// The forward writes results that the caller did not request directly to the saved buffers; copy() copies the others.
class CaptureBuffers {
 public:
  void keep(float*& place, float* kept, std::size_t size);
  void copy() const;

 private:
  struct Copy {
    const float* from;
    float* to;
    std::size_t size;
  };
  std::vector<Copy> copies_;
};

/// Norms and the activated hidden layer are recomputed.
struct KeptLayer {
  float* x = nullptr;                                       ///< (B·L,E)
  bool is_patched = false;                                  ///< the caller replaced x
  KeptAttention attention = {};                             ///< its inputs are null: they are x or norm1(x)
  float *attn_residual = nullptr, *ff_residual = nullptr;   ///< (B·L,E); ff_residual is null if norm_first
  float *attention_output = nullptr, *ff_output = nullptr;  ///< (B·L,E) before post norms; null without these
  float *linear1 = nullptr, *linear_gate = nullptr;         ///< (B·L,F) before the activation; linear_gate is null if not gated
};

struct KeptEncoder {
  KeptEncoder(const EncoderPlan& plan, const ForwardRandom& from);

  const Shape x;
  const std::int64_t B, L, E;
  KeptAttentionCall call;
  ForwardRandom random;
  std::vector<KeptLayer> layers;
  float* last = nullptr;    ///< (B·L,E) input of the final norm; null without one
  float* output = nullptr;  ///< (B·L,E) of a stack; null for a single layer
  AlignedFloats numbers = {};
};

/// Row-major without gaps; returns the end.
float* copy_rows(const TensorView& x, float* to);

}  // namespace attn::detail
