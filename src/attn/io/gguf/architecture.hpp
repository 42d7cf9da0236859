#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn/io/gguf/header.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail::gguf {

/// Change of the rows from the file to the checkpoint.
enum class Order : std::uint8_t {
  same,
  rotary,      ///< within each head, interleaved pairs of rows become two halves
  by_parts,    ///< (3,heads,width) becomes (heads,3,width)
  transposed,  ///< (out,in) becomes (in,out), as in Conv1D
  less_one,    ///< subtracts 1 from each value
};

struct NamedTensor {
  const Tensor* tensor;
  std::string name;
  Shape shape;
  Order order = Order::same;
  std::uint64_t head_rows = 1;  ///< for Order::rotary and Order::by_parts
};

struct Architecture {
  std::string config;  ///< config.json
  std::vector<NamedTensor> tensors;
};

/// Divisors of RoPE frequencies (Llama 3.1 and later), or null. Throws FORMAT unless a short float32 list.
const Tensor* rope_divisors(const Header& header);

/// The header must outlive the result. Throws UNSUPPORTED for other architectures, unknown RoPE scaling and tensors;
/// FORMAT if a value is missing.
Architecture read_architecture(const Header& header, std::span<const float> divisors);

}  // namespace attn::detail::gguf
