#include "attn/io/gguf/block_types.hpp"

#include <bit>
#include <cstring>

#include "attn/io/float_formats.hpp"

// The order of operations is that of ggml's dequantize_row functions, so that values are bit-identical.
namespace attn::detail::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

using Bytes = const std::uint8_t*;

std::uint16_t word(Bytes bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
float half(Bytes bytes) { return float_from_half(word(bytes)); }
float low(std::uint8_t byte) { return static_cast<float>(byte & 15); }
float high(std::uint8_t byte) { return static_cast<float>(byte >> 4); }

void expand_f32(Bytes block, std::size_t count, float* y) {
  if (count > 0) std::memcpy(y, block, count * sizeof(float));
}
void expand_f16(Bytes block, std::size_t count, float* y) {
  for (std::size_t i = 0; i < count; ++i) y[i] = half(block + 2 * i);
}
void expand_bf16(Bytes block, std::size_t count, float* y) {
  for (std::size_t i = 0; i < count; ++i) y[i] = float_from_bfloat16(word(block + 2 * i));
}

/// y = d (q - 8)
void expand_q4_0(Bytes block, std::size_t count, float* y) {
  for (; count > 0; --count, block += 18, y += 32) {
    const float d = half(block);
    for (std::size_t i = 0; i < 16; ++i) {
      y[i] = d * (low(block[2 + i]) - 8);
      y[i + 16] = d * (high(block[2 + i]) - 8);
    }
  }
}

/// y = d q + m
void expand_q4_1(Bytes block, std::size_t count, float* y) {
  for (; count > 0; --count, block += 20, y += 32) {
    const float d = half(block), m = half(block + 2);
    for (std::size_t i = 0; i < 16; ++i) {
      y[i] = d * low(block[4 + i]) + m;
      y[i + 16] = d * high(block[4 + i]) + m;
    }
  }
}

/// y = d q
void expand_q8_0(Bytes block, std::size_t count, float* y) {
  for (; count > 0; --count, block += 34, y += 32) {
    const float d = half(block);
    for (std::size_t i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
}

struct ScaleAndMin {
  float scale, min;
};

/// 6-bit scale and minimum of part j (of 8) in 12 bytes.
ScaleAndMin scale_and_min(Bytes packed, std::size_t j) {
  const auto number = [](int value) { return static_cast<float>(value); };
  if (j < 4) return {number(packed[j] & 63), number(packed[j + 4] & 63)};
  return {number((packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4)), number((packed[j + 4] >> 4) | (packed[j] >> 6 << 4))};
}

/// y = (d scale) q - (dmin min), with a scale and a minimum per 32 values
void expand_q4_k(Bytes block, std::size_t count, float* y) {
  for (; count > 0; --count, block += 144) {
    const float d = half(block), dmin = half(block + 2);
    const Bytes q = block + 16;
    for (std::size_t j = 0; j < 8; ++j, y += 32) {
      const ScaleAndMin part = scale_and_min(block + 4, j);
      const float scale = d * part.scale, min = dmin * part.min;
      for (std::size_t i = 0; i < 32; ++i) {
        const std::uint8_t pair = q[j / 2 * 32 + i];
        y[i] = scale * (j % 2 == 0 ? low(pair) : high(pair)) - min;
      }
    }
  }
}

/// y = (d scale) (q - 32), with a scale per 16 values; q has 4 bits in the first 128 bytes and 2 in the next 64
void expand_q6_k(Bytes block, std::size_t count, float* y) {
  for (; count > 0; --count, block += 210) {
    const float d = half(block + 208);
    for (std::size_t i = 0; i < 256; ++i, ++y) {
      const std::size_t part = i / 128, quarter = i % 128 / 32, at = i % 32;
      const std::uint8_t lower = block[64 * part + 32 * (quarter % 2) + at], upper = block[128 + 32 * part + at];
      const int q = (quarter < 2 ? lower & 15 : lower >> 4) | (upper >> (2 * quarter) & 3) << 4;
      const auto scale = static_cast<std::int8_t>(block[192 + i / 16]);
      *y = d * static_cast<float>(scale) * static_cast<float>(q - 32);
    }
  }
}

constexpr BlockType kTypes[] = {{"F32", 0, 1, 4, expand_f32},        {"F16", 1, 1, 2, expand_f16},     {"Q4_0", 2, 32, 18, expand_q4_0},
                                {"Q4_1", 3, 32, 20, expand_q4_1},    {"Q8_0", 8, 32, 34, expand_q8_0}, {"Q4_K", 12, 256, 144, expand_q4_k},
                                {"Q6_K", 14, 256, 210, expand_q6_k}, {"BF16", 30, 1, 2, expand_bf16}};

}  // namespace

const BlockType* block_type(std::uint32_t id) {
  for (const BlockType& type : kTypes)
    if (type.id == id) return &type;
  return nullptr;
}

}  // namespace attn::detail::gguf
