#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "attn/tensor/aligned.hpp"

namespace attn {

class EncoderModel;

/// Keys and values of the tokens that a decoder has seen, so that a forward of further tokens computes only those. Made by
/// TextModel::create_cache().
class KeyValueCache {
 public:
  std::int64_t length() const { return length_; }          ///< number of tokens per sequence
  std::int64_t max_length() const { return max_length_; }  ///< room for tokens
  std::int64_t batch_size() const { return batch_; }       ///< number of sequences
  /// Discards all tokens after the first `length`.
  ///
  /// @throws OUT_OF_RANGE if the cache has fewer tokens
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
  /// Keys (B,Hkv,max_length,D) and values of a layer.
  struct Layer {
    float *keys, *values;
  };
  Layer layer(std::size_t index);
  void advance(std::int64_t tokens) { length_ += tokens; }

  std::shared_ptr<const void> model_;  // identifies the weights that the keys come from
  std::size_t size_;                   // of the keys of a layer
  std::int64_t batch_, max_length_, length_ = 0;
  AlignedFloats numbers_;  // (layers,2,B,Hkv,max_length,D)
};

}  // namespace attn
