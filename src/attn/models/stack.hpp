#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "attn/layers/gradients.hpp"
#include "attn/layers/kept.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/layers/transformer_encoder.hpp"
#include "attn/models/model_config.hpp"
#include "attn/models/model_inputs.hpp"

namespace attn::detail {

/// By layer: packed keys of relative positions, and queries; for backward also unpacked keys, and the projections' input.
using RelativeLayers = std::vector<AlignedFloats>;
struct ScorePositions {
  PositionBias bias = {};
  std::vector<std::int32_t> rows = {};  ///< of the table of relative positions, by query - key
  std::vector<RelativePositions> relative = {};
  const RelativeLayers* layers = nullptr;  ///< the stack's, or own_layers
  std::unique_ptr<const RelativeLayers> own_layers = nullptr;
};

/// Shared by all calls once one has computed it. Until then each call computes its own, without a lock: meanwhile an executor may call again, and
/// another thread may fork().
template <class T>
class Published {
 public:
  Published() = default;
  ~Published() { reset(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  const T* get() const { return value_.load(std::memory_order_acquire); }
  /// Returns `value`, or that of an earlier call.
  const T* publish(std::unique_ptr<const T> value) {
    const T* before = nullptr;
    return value_.compare_exchange_strong(before, value.get(), std::memory_order_acq_rel) ? value.release() : before;
  }
  /// Only between calls.
  void reset() { delete value_.exchange(nullptr, std::memory_order_acq_rel); }

 private:
  std::atomic<const T*> value_{nullptr};
};

/// The layers, and the position terms of their scores (MPNet's buckets, ALiBi, DeBERTa's relative positions, RoPE).
class Stack {
 public:
  /// `config` must outlive it.
  Stack(std::string_view op, const ModelConfig& config);

  bool is_quantized() const { return layers_.is_quantized(); }
  void visit_parameters(ParameterVisitor& visitor);
  void make_tables();
  /// Discards values that were computed from weights. Call it before weights change.
  void forget() { relative_layers_.reset(); }

  EncoderPlan plan(std::string_view op, const ModelInputs& inputs, const EncoderForwardOptions& forward, KeyValueCache* cache = nullptr) const;
  /// x (B,L,E)
  void run(const EncoderPlan& plan, const ModelInputs& inputs, const float* x, const EncoderBuffers& buffers, Scratch& scratch) const;

  struct Kept {
    std::shared_ptr<const KeptEncoder> layers;
    ScorePositions positions = {};
  };
  Kept run_and_keep(const EncoderPlan& plan, const ModelInputs& inputs, const float* x, const ForwardRandom& random, const EncoderBuffers& buffers,
                    Scratch& scratch) const;
  /// of_x (B,L,E): the gradient of the output becomes that of the input, or of the input of layer `first`. `traces` is by layer, or empty.
  void backward(const Kept& kept, std::optional<std::int64_t> first, bool wants_parameters, const std::vector<TraceBuffers>& traces, float* of_x,
                Gradients& gradients, Scratch& scratch) const;

 private:
  /// For the longest sequence; with `random` for a backward, with that dropout.
  ScorePositions score_positions(const ModelInputs& inputs, Scratch& scratch, const ForwardRandom* random) const;
  ScorePositions relative_positions(std::int64_t longest, Scratch& scratch, const ForwardRandom* random) const;
  /// Without `random` they are computed once, until weights change.
  void add_relative_layers(ScorePositions& positions, Scratch& scratch, const ForwardRandom* random) const;
  std::size_t packed_positions() const;

  const ModelConfig& config_;
  TransformerEncoder layers_;
  std::vector<float> position_bias_;  // (buckets,H), or empty
  Table relative_;                    // (rows,E), or empty
  Norm relative_norm_ = Norm::identity(0);
  mutable Published<RelativeLayers> relative_layers_;
};

}  // namespace attn::detail
