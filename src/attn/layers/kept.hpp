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

// What forwards keep for their backward. Internal.
namespace attn::detail {

/// What one attention leaves: where its inputs and its steps lie. Rows of inputs are side by side.
struct KeptAttention {
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  bool is_self = true;                                                ///< key and value are the query; pointers do not tell where one is empty
  float *q = nullptr, *k = nullptr, *v = nullptr, *merged = nullptr;  ///< (B,H,L,D), (B,Hkv,S,D), (B,Hkv,S,Dv), (B·L,H·Dv)
  Dropout dropout = {};
  PositionBias position_bias = {};
  MergedPatch patch = {};  ///< values: whether there are
};

/// A spec whose masks and runs are copies, for the caller's may be gone when its backward comes.
class KeptAttentionCall {
 public:
  KeptAttentionCall(const AttentionSpec& call, const AttentionSizes& of_call);
  KeptAttentionCall(const KeptAttentionCall&) = delete;  // the spec points to the copies
  KeptAttentionCall& operator=(const KeptAttentionCall&) = delete;

  AttentionSpec spec;
  const AttentionSizes sizes;

 private:
  struct Copy {
    std::vector<std::uint8_t> flags;
    std::vector<float> values;
  };
  static void keep(MaskView& mask, Copy& copy);
  std::array<Copy, 2> copies_;
  std::vector<SequenceRun> runs_;
};

/// Places that a forward fills and someone may want besides: those that nobody wants are given to it, the others are copied afterwards.
class KeptPlaces {
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

/// What one layer of a stack leaves. Norms and the activated hidden layer are computed again.
struct KeptLayer {
  float* x = nullptr;                                      ///< (B·L,E) what came in
  KeptAttention attention = {};                            ///< its inputs are null: they are x, or norm1 of it
  float *attn_residual = nullptr, *ff_residual = nullptr;  ///< (B·L,E); the second null where norms come first
  float *linear1 = nullptr, *linear_gate = nullptr;        ///< (B·L,F) before the activation; the second null where there is no gate
};

/// What a stack of layers leaves.
struct KeptEncoder {
  KeptEncoder(const EncoderPlan& plan, const ForwardRandom& from);

  const Shape x;
  const std::int64_t B, L, E;
  KeptAttentionCall call;
  ForwardRandom random;
  std::vector<KeptLayer> layers;
  std::int64_t patched_layer = -1;  ///< whose input was the caller's
  float* last = nullptr;            ///< (B·L,E) what the final norm takes; null without one
  float* output = nullptr;          ///< (B·L,E) for what follows a stack; null of a layer alone
  AlignedFloats numbers = {};
};

/// The numbers of x row-major side by side; gives the end.
float* copy_rows(const TensorView& x, float* to);

}  // namespace attn::detail
