#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/safetensors_stream.hpp"
#include "attn/layers/state_dict.hpp"
#include "attn/models/encoder_model.hpp"

namespace attn::detail {

/// Puts a model together out of model.safetensors, which comes in pieces: each number goes to its place as it comes, so that besides the
/// model itself nothing of its size is ever there.
class ModelLoader {
 public:
  /// quantized: whether weights of linear maps and the word table are to be int8, whatever the file has; left out, as it has them.
  /// Throws FORMAT, CONFIG, UNSUPPORTED, and MEMORY where the weights that config.json speaks of are above the limit.
  explicit ModelLoader(const ModelFiles& files, std::optional<bool> quantized = std::nullopt);

  /// The next piece, of any size. Throws FORMAT and UNSUPPORTED as parse_safetensors, FORMAT for NaN and infinity in what becomes int8 and for
  /// scales that are none; and, as soon as the header is complete, one
  /// MISMATCH that lists all missing, unexpected and mis-shaped tensors, before room is made for any. What is called after it throws it again. If
  /// tensors are unexpected and nothing else is wrong, they are left out, with a note in the configuration.
  void write(std::span<const std::uint8_t> bytes);
  /// The model. Throws FORMAT where bytes are missing.
  std::unique_ptr<EncoderModel> finish();

  const ModelConfig& config() const { return model_->config(); }

 private:
  struct Target {
    CheckpointTensor tensor;         ///< called without the prefix, until the file is there
    bool in_base = true;             ///< so it may have the prefix
    std::string legacy = {};         ///< how old checkpoints call it
    std::vector<float> scales = {};  ///< of int8: they wait for their rows
  };

  class TargetList;
  std::vector<Target> targets(const Parameters& parameters) const;
  bool has_head() const;
  const Family& named_family() const;
  void match(std::vector<Target> targets);
  void note_unused(const std::vector<std::string>& names);
  /// Finds every tensor's place and makes room.
  void prepare();
  /// Finds the place of a tensor that was found, and of its scales where it is int8.
  void place(Target& target, std::size_t entry, const std::map<std::string_view, std::size_t>& by_name, Mismatch& mismatch);
  void set(const SafetensorsStream::Run& run);
  /// Values from the row-major index `first` on, where the last ones ended, as whole rows; what is left of a row waits in `begun`.
  template <class Number, class Set>
  static void by_row(std::size_t width, std::size_t first, std::span<const Number> values, std::vector<Number>& begun, Set set);
  static void add_scales(Target& target, std::size_t first, std::span<const float> scales);

  std::unique_ptr<EncoderModel> model_;
  Parameters parameters_;
  SafetensorsStream stream_;
  /// What an entry of the file is.
  struct Place {
    Target* target = nullptr;  ///< null where it is not needed
    bool is_scale = false;
  };
  std::vector<Place> of_entry_;
  std::vector<Target> targets_;
  std::vector<float> row_;                  // begun, the rest is still to come
  std::vector<std::int8_t> quantized_row_;  // the same of int8
  bool is_asked_;                           // quantized was given
  bool prepared_ = false;
};

}  // namespace attn::detail
