#pragma once

#include <array>
#include <cstddef>
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

/// Builds a model from model.safetensors, which is passed in pieces. Values are stored in the model as they arrive, so that the file is never in
/// memory as a whole.
class ModelLoader {
 public:
  /// `quantized` makes the weights of linear layers and the word embeddings int8 (true) or float32 (false); by default they remain as in the file.
  /// Throws FORMAT, CONFIG, UNSUPPORTED, and MEMORY if weights of the sizes in config.json would exceed the memory limit.
  explicit ModelLoader(const ModelFiles& files, std::optional<bool> quantized = std::nullopt);

  /// Takes the next piece of the file, of any size. Throws FORMAT and UNSUPPORTED as parse_safetensors, and FORMAT for NaN or infinity in weights
  /// that become int8 and for invalid scales. Once the header is complete and before any tensor is allocated, throws one MISMATCH that lists all
  /// missing, unexpected and mis-shaped tensors; later calls throw it again. If the only fault is unexpected tensors and the file is not int8, they
  /// are skipped, with a note in the configuration.
  void write(std::span<const std::uint8_t> bytes);
  /// Returns the model. Throws FORMAT if bytes are missing, and MISMATCH if the file has a tied head with other numbers than the embeddings.
  std::unique_ptr<EncoderModel> finish();

  const ModelConfig& config() const { return model_->config(); }

 private:
  struct ExpectedTensor {
    std::string name;  ///< without the prefix until the header has been read
    StateTensor tensor = {};
    bool in_base = true;             ///< belongs to the base model, so its name may have the prefix
    std::string legacy = {};         ///< alternative name, as in old checkpoints
    std::vector<float> scales = {};  ///< for int8; finish() applies them
  };

  class TargetList;
  std::vector<ExpectedTensor> targets(const StateTensors& parameters) const;
  bool has_head() const;
  const Family& named_family() const;
  void match(std::vector<ExpectedTensor> targets);
  void find_copy_of_words(const std::map<std::string_view, std::size_t>& by_name);
  void check_copy_of_words() const;
  void note_unused(const std::vector<std::string>& names);
  /// Matches tensors of the file to parameters, and allocates the model.
  void prepare();
  /// Assigns entry `entry` of the file to the target, and if it is int8 also the entry of its scales.
  void place(ExpectedTensor& target, std::size_t entry, const std::map<std::string_view, std::size_t>& by_name, Mismatch& mismatch);
  void set(const SafetensorsStream::Run& run);
  /// Calls set(row, values) with whole rows of consecutive values, the first of which has the row-major index `first` and follows the last value of
  /// the previous call. `begun` holds an incomplete row between calls.
  template <class Number, class Set>
  static void by_row(std::size_t width, std::size_t first, std::span<const Number> values, std::vector<Number>& begun, Set set);
  static void add_scales(ExpectedTensor& target, std::size_t first, std::span<const float> scales);

  std::unique_ptr<EncoderModel> model_;
  StateTensors parameters_;
  SafetensorsStream stream_;
  /// Use of an entry of the file.
  struct Place {
    ExpectedTensor* target = nullptr;  ///< null if the model does not use the entry
    bool is_scale = false;
  };
  std::vector<Place> of_entry_;
  /// Entries of the word embeddings and of a head that is tied to them, and hashes of their values.
  struct WordsCopy {
    std::size_t words, head;
    std::array<std::uint64_t, 2> hashes = {};
    void add(const SafetensorsStream::Run& run);
  };
  std::optional<WordsCopy> words_copy_;
  std::vector<ExpectedTensor> targets_;
  std::vector<float> row_;                  // incomplete row
  std::vector<std::int8_t> quantized_row_;  // the same for int8
  bool is_asked_;                           // whether `quantized` was given
  bool prepared_ = false;
};

}  // namespace attn::detail
