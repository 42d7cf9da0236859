#pragma once

#include <cstddef>
#include <cstdint>

// Keys and values of attention heads in the layout that the kernels read, with room for more keys. The structs refer to memory of size() floats
// per head.
namespace attn::detail {

/// Keys of each head as W (room,width) of scores = q Wᵀ.
struct PackedKeys {
  float* data = nullptr;
  std::size_t room = 0, width = 0;  ///< number of keys that fit, and of floats per key

  std::size_t size() const;
  std::size_t panel_size() const;  ///< floats from panel to panel
  /// Returns the panel that contains a key.
  float* at(std::size_t head, std::size_t key) const;
  /// Sets keys [first, first + count) of a head to rows that are row_stride apart. Keys after them become undefined.
  void set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const;
  /// Copies the first `count` keys of each head to (heads,count,width).
  void unpack(std::size_t heads, std::size_t count, float* to) const;
};

/// Values of each head as W (width,room) of context = weights Wᵀ. Columns of the last panel that have no value are 0.
struct PackedValues {
  float* data = nullptr;
  std::size_t room = 0, width = 0;

  std::size_t size() const;
  std::size_t panel_size() const;
  std::size_t panels() const;
  /// Returns the part of a key's value that is in a panel.
  float* at(std::size_t head, std::size_t key, std::size_t panel = 0) const;
  void set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const;
  void unpack(std::size_t heads, std::size_t count, float* to) const;
  /// Writes alpha · the value of a key.
  void scale(std::size_t head, std::size_t key, float alpha, float* to) const;
  /// Checks that alpha · the values of keys [first, first + count) are neither NaN nor infinite.
  bool all_finite(std::size_t head, std::size_t first, std::size_t count, float alpha) const;
};

/// Values that are finite after multiplication by this factor can be summed without overflow.
inline constexpr float kSumFactor = 0x1p32F;

/// Keys and values of the heads of a layer.
struct PackedHeads {
  PackedKeys keys;
  PackedValues values;
  std::int64_t* summable = nullptr;  ///< per head: the values of this number of keys, from the first on, are finite when multiplied by kSumFactor
};

}  // namespace attn::detail
