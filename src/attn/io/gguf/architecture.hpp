#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/io/gguf/header.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail::gguf {

/// How the rows of a tensor in the file become those of the Hugging Face checkpoint.
enum class Order : std::uint8_t {
  same,
  rotary,      ///< within each head, pairs of neighbouring rows become two halves
  transposed,  ///< (out,in) becomes (in,out), as in transformers' Conv1D
};

/// Tensor of the file under its name in the Hugging Face checkpoint.
struct NamedTensor {
  const Tensor* tensor;
  std::string name;
  Shape shape;  ///< in the checkpoint
  Order order = Order::same;
  std::uint64_t head_rows = 1;  ///< rows per head, for Order::rotary
};

/// The model of a GGUF file as a Hugging Face checkpoint.
struct Architecture {
  std::string config;  ///< config.json
  std::vector<NamedTensor> tensors;
};

/// Translates metadata and tensor names of gpt2, llama and qwen2. The header must outlive the result. Throws UNSUPPORTED
/// for other architectures, RoPE scaling other than linear, experts and unknown tensors; FORMAT if a value is missing.
Architecture read_architecture(const Header& header);

}  // namespace attn::detail::gguf
