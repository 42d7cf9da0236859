#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "attn/memory/packed_heads.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn {

class EncoderModel;

/// Keys and values of the tokens that a decoder has seen, so that a forward of further tokens computes only those. Made by
/// TextModel::create_cache().
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
/// attn::KeyValueCache cache = model.create_cache({.max_length = 16});
/// model.forward(model.tokenize({"The old man"}), {.cache = &cache});
/// std::cout << cache.length() << ' ' << cache.max_length() << ' ' << cache.batch_size();  // 6 16 1
/// @endcode
class KeyValueCache {
 public:
  /// Returns the number of tokens per sequence. KeyValueCache has an example of this and the next two functions.
  std::int64_t length() const { return length_; }
  /// Returns how many tokens per sequence the cache has room for.
  std::int64_t max_length() const { return max_length_; }
  /// Returns the number of sequences.
  std::int64_t batch_size() const { return batch_; }
  /// Discards all tokens after the first `length`.
  ///
  /// @throws OUT_OF_RANGE if the cache has fewer tokens
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
  /// attn::KeyValueCache cache = model.create_cache();
  /// model.forward(model.tokenize({"The old man"}), {.cache = &cache});
  /// cache.truncate(1);
  /// std::cout << cache.length();  // 1
  /// @endcode
  void truncate(std::int64_t length);

 private:
  friend class EncoderModel;
  friend class MultiHeadAttention;
  friend class TransformerEncoderLayer;

  struct Sizes {
    std::int64_t layers, heads, width;
  };
  /// Throws CONFIG for sizes below 1, MEMORY.
  KeyValueCache(std::shared_ptr<const void> model, const Sizes& sizes, std::int64_t batch, std::int64_t max_length);
  /// Writes keys and values (B,tokens,Hkv·D) of a layer after those of the first length() tokens, in place of any that are there. Returns all of
  /// the layer's, head h of sequence b at b · Hkv + h.
  detail::PackedHeads append(std::size_t layer, std::int64_t tokens, const float* keys, const float* values);
  /// Counts tokens that were appended in every layer.
  void advance(std::int64_t tokens) { length_ += tokens; }

  std::shared_ptr<const void> model_;  // identifies the weights that the keys come from
  std::int64_t batch_, max_length_, length_ = 0;
  std::uint64_t word_changes_ = 0;      // of the model's word embeddings, which can also be changed on their own
  std::size_t heads_;                   // B·Hkv
  detail::PackedHeads first_;           // of the first layer, in numbers_ and summable_
  AlignedFloats numbers_;               // per layer: all keys, all values
  std::vector<std::int64_t> summable_;  // (layers,heads), PackedHeads::summable
};

}  // namespace attn
