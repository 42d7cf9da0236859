#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/safetensors_stream.hpp"
#include "attn/models/encoder_model.hpp"

namespace attn::detail {

/// Puts a model together out of model.safetensors, which comes in pieces: each number goes to its place as it comes, so that besides the
/// model itself nothing of its size is ever there.
class ModelLoader {
 public:
  /// Throws FORMAT, CONFIG, UNSUPPORTED, and MEMORY where the weights that config.json speaks of are above the limit.
  explicit ModelLoader(const ModelFiles& files);

  /// The next piece, of any size. Throws FORMAT and UNSUPPORTED as parse_safetensors; and, as soon as the header is complete, one
  /// MISMATCH that lists all missing, unexpected and mis-shaped tensors, before room is made for any. What is called after it throws it again.
  void write(std::span<const std::uint8_t> bytes);
  /// The model. Throws FORMAT where bytes are missing.
  std::unique_ptr<EncoderModel> finish();

  const ModelConfig& config() const { return model_->config(); }

 private:
  struct Target {
    CheckpointTensor tensor;  ///< called without the prefix, until the file is there
    bool in_base = true;      ///< so it may have the prefix
    std::string legacy = {};  ///< how old checkpoints call it
  };

  std::vector<Target> targets(const Parameters& parameters) const;
  void match(std::vector<Target> targets);
  /// Finds every tensor's place and makes room.
  void prepare();
  /// Values from the row-major index `first` on, where the last ones ended; to their place row by row.
  void set(const CheckpointTensor& tensor, std::size_t first, std::span<const float> values);

  std::unique_ptr<EncoderModel> model_;
  Parameters parameters_;
  SafetensorsStream stream_;
  std::vector<const CheckpointTensor*> of_entry_;  // by entry of the file; null where it is not needed
  std::vector<Target> targets_;
  std::vector<float> row_;  // begun, the rest is still to come
  bool prepared_ = false;
};

}  // namespace attn::detail
