#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn/io/gguf/header.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail::gguf {

/// How the rows of a tensor in the file become those of the Hugging Face checkpoint.
enum class Order : std::uint8_t {
  same,
  rotary,      ///< within each head, pairs of neighbouring rows become two halves
  by_parts,    ///< (3,heads,width) becomes (heads,3,width): queries, keys and values of each head
  transposed,  ///< (out,in) becomes (in,out), as in transformers' Conv1D
  less_one,    ///< the same order, and 1 is subtracted from each value
};

/// Tensor of the file under its name in the Hugging Face checkpoint.
struct NamedTensor {
  const Tensor* tensor;
  std::string name;
  Shape shape;  ///< in the checkpoint
  Order order = Order::same;
  std::uint64_t head_rows = 1;  ///< rows per head, for Order::rotary and Order::by_parts
};

/// The model of a GGUF file as a Hugging Face checkpoint.
struct Architecture {
  std::string config;  ///< config.json
  std::vector<NamedTensor> tensors;
};

/// Returns the tensor of the divisors of RoPE's frequencies (Llama 3.1 and later); null if the file has none. Throws
/// FORMAT if it is no short list of float32 numbers.
const Tensor* rope_divisors(const Header& header);

/// Translates metadata and tensor names of gpt2, llama, qwen2, qwen3, gemma2, gemma3 and gptneox. `divisors` are the values
/// of rope_divisors(). The header must outlive the result. Throws UNSUPPORTED for other architectures, RoPE scaling,
/// experts and unknown tensors; FORMAT if a value is missing.
Architecture read_architecture(const Header& header, std::span<const float> divisors);

}  // namespace attn::detail::gguf
