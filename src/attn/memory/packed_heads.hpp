#pragma once

#include <cstddef>
#include <cstdint>

// Keys and values in the layout of the kernels, with room for more keys: `data` has size() floats per head.
namespace attn::detail {

/// W (room,width) of scores = q Wᵀ.
struct PackedKeys {
  float* data = nullptr;
  std::size_t room = 0, width = 0;  ///< keys that fit, and floats per key

  std::size_t size() const;
  std::size_t panel_size() const;  ///< from panel to panel, in floats
  float* at(std::size_t head, std::size_t key) const;
  /// Rows are row_stride apart. Keys after them become undefined.
  void set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const;
  /// To (heads,count,width).
  void unpack(std::size_t heads, std::size_t count, float* to) const;
};

/// W (width,room) of context = weights Wᵀ. Columns of the last panel without a value are 0.
struct PackedValues {
  float* data = nullptr;
  std::size_t room = 0, width = 0;

  std::size_t size() const;
  std::size_t panel_size() const;
  std::size_t panels() const;
  float* at(std::size_t head, std::size_t key, std::size_t panel = 0) const;
  void set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const;
  void unpack(std::size_t heads, std::size_t count, float* to) const;
  void scale(std::size_t head, std::size_t key, float alpha, float* to) const;
  /// Whether they are finite times alpha.
  bool all_finite(std::size_t head, std::size_t first, std::size_t count, float alpha) const;
};

/// Values that are finite times this factor have a finite sum.
inline constexpr float kSumFactor = 0x1p32F;

struct PackedHeads {
  PackedKeys keys;
  PackedValues values;
  std::int64_t* summable = nullptr;  ///< per head: this many first values are finite times kSumFactor
};

}  // namespace attn::detail
