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

/// Stores values as they arrive, so that model.safetensors is never in memory as a whole.
class ModelLoader {
 public:
  /// `quantized` makes linear layers and word embeddings int8 (true) or float32 (false); by default as in the file. Throws MEMORY if weights of the
  /// sizes in config.json would exceed the limit.
  explicit ModelLoader(const ModelFiles& files, std::optional<bool> quantized = std::nullopt);

  /// Pieces have any size. Before any tensor is allocated, throws one MISMATCH that lists all missing, unexpected and mis-shaped tensors; later calls
  /// throw it again. If only unexpected tensors are at fault and the file is not int8, they are skipped with a note.
  void write(std::span<const std::uint8_t> bytes);
  /// Throws FORMAT if bytes are missing, MISMATCH if a tied head has other numbers than the embeddings.
  std::unique_ptr<EncoderModel> finish();

  const ModelConfig& config() const { return model_->config(); }

 private:
  struct ExpectedTensor {
    std::string name;  ///< without the prefix until the header has been read
    StateTensor tensor = {};
    bool in_base = true;             ///< its name may have the prefix
    std::string legacy = {};         ///< alternative name
    std::vector<float> scales = {};  ///< for int8; finish() applies them
  };

  class TargetList;
  std::vector<ExpectedTensor> targets(const StateTensors& parameters) const;
  bool has_head() const;
  bool has_tensor(std::string_view name) const;
  const Family& named_family() const;
  void match(std::vector<ExpectedTensor> targets);
  void find_copy_of_words(const std::map<std::string_view, std::size_t>& by_name);
  void check_copy_of_words() const;
  void note_unused(const std::vector<std::string>& names);
  void prepare();
  /// For int8 also places the scales.
  void place(ExpectedTensor& target, std::size_t entry, const std::map<std::string_view, std::size_t>& by_name, Mismatch& mismatch);
  void set(const SafetensorsStream::Run& run);
  /// Calls set(row, values) with whole rows. `values` starts at the row-major index `first`, where the previous call ended; `begun` holds an
  /// incomplete row.
  template <class Number, class Set>
  static void by_row(std::size_t width, std::size_t first, std::span<const Number> values, std::vector<Number>& begun, Set set);
  static void add_scales(ExpectedTensor& target, std::size_t first, std::span<const float> scales);

  std::unique_ptr<EncoderModel> model_;
  StateTensors parameters_;
  SafetensorsStream stream_;
  struct Place {
    ExpectedTensor* target = nullptr;  ///< null: unused
    bool is_scale = false;
  };
  std::vector<Place> of_entry_;
  /// Entries of the word embeddings and of a head tied to them.
  struct WordsCopy {
    std::size_t words, head;
    std::array<std::uint64_t, 2> hashes = {};
    void add(const SafetensorsStream::Run& run);
  };
  std::optional<WordsCopy> words_copy_;
  std::vector<ExpectedTensor> targets_;
  std::vector<float> row_;  // incomplete row
  std::vector<std::int8_t> quantized_row_;
  bool is_asked_;  // whether `quantized` was given
  bool prepared_ = false;
};

}  // namespace attn::detail
