#pragma once

#include <optional>
#include <sstream>
#include <string>

#include "attn/ops/attention.hpp"
#include "support/array.hpp"
#include "support/random.hpp"

namespace attn::test {

struct MaskInput {
  MaskKind kind = MaskKind::attend;
  Array data;
};

struct AttentionCase {
  std::uint64_t seed = 0;
  Array query, key, value;
  std::optional<MaskInput> mask, key_padding_mask;
  bool is_causal = false;
  std::optional<float> scale;
  bool enable_gqa = false;
  FullyMasked fully_masked = FullyMasked::zero;
  float softcap = 0;
  Window window = {};
  std::int64_t query_offset = 0;
};

inline std::string to_string(MaskKind kind) {
  constexpr const char* kNames[] = {"attend", "block", "additive"};
  return kNames[static_cast<std::size_t>(kind)];
}

inline std::string to_string(FullyMasked policy) {
  constexpr const char* kNames[] = {"zero", "nan", "uniform"};
  return kNames[static_cast<std::size_t>(policy)];
}

inline std::string describe(const std::optional<MaskInput>& mask) { return mask ? to_string(mask->kind) + ' ' + to_string(mask->data.dims) : "none"; }

inline std::string describe(const AttentionCase& c) {
  std::ostringstream text;
  text << "seed " << c.seed << ", query " << to_string(c.query.dims) << ", key " << to_string(c.key.dims) << ", value " << to_string(c.value.dims)
       << ", mask " << describe(c.mask) << ", key padding mask " << describe(c.key_padding_mask) << ", causal " << c.is_causal << ", scale ";
  if (c.scale)
    text << *c.scale;
  else
    text << "default";
  text << ", gqa " << c.enable_gqa << ", fully masked: " << to_string(c.fully_masked) << ", softcap " << c.softcap << ", window " << c.window.left
       << ' ' << c.window.right << ", query offset " << c.query_offset;
  return text.str();
}

inline MaskInput paint(Generator& random, MaskKind kind, const Array& allowed) {
  MaskInput mask{kind, allowed};
  for (float& value : mask.data.data) {
    const bool keep = value != 0;
    if (kind == MaskKind::additive)
      value = keep ? random.normal() : -kInfinity;
    else
      value = keep == (kind == MaskKind::attend) ? 1.0F : 0.0F;
  }
  return mask;
}

inline MaskInput random_mask(Generator& random, MaskKind kind, const Shape& dims) {
  Array allowed(dims);
  const auto width = static_cast<std::size_t>(dims.back(0));
  for (std::size_t row = 0; row * width < allowed.data.size(); ++row) {
    const bool none = random.coin(0.15);
    for (std::size_t j = 0; j < width; ++j) allowed.data[row * width + j] = !none && random.coin(0.6) ? 1.0F : 0.0F;
  }
  return paint(random, kind, allowed);
}

/// (B,S): padding from some length on.
inline MaskInput random_padding(Generator& random, MaskKind kind, std::int64_t B, std::int64_t S) {
  Array allowed({B, S});
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t length = random.below(S + 1);
    for (std::int64_t j = 0; j < length; ++j) allowed.data[static_cast<std::size_t>(b * S + j)] = 1;
  }
  return paint(random, kind, allowed);
}

}  // namespace attn::test
