#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "attn/io/gguf/architecture.hpp"
#include "attn/io/gguf/tokenizer_files.hpp"

namespace attn::detail::gguf {

class Reader {
 public:
  /// Reads everything but the weights. `file` must outlive the reader. An unsupported tokenizer is no error: the model
  /// has none.
  Reader(std::istream& file, std::uint64_t size);
  Reader(const Reader&) = delete;  // architecture_ refers to header_
  Reader& operator=(const Reader&) = delete;

  /// config.json, generation_config.json, tokenizer.json or tokenizer_config.json.
  std::optional<std::vector<std::uint8_t>> read(std::string_view name) const;
  const std::optional<Error>& no_tokenizer() const { return no_tokenizer_; }

  using Write = std::function<void(std::span<const std::uint8_t>)>;
  /// Passes model.safetensors in float32. Pieces are at most a megabyte or a head, but a tensor with Order::transposed
  /// or by_parts is one piece.
  void write_weights(const Write& write);

 private:
  void write_tensor(const NamedTensor& named, const Write& write);

  std::istream& file_;
  Header header_;
  Architecture architecture_;
  std::optional<TokenizerFiles> tokenizer_;
  std::optional<Error> no_tokenizer_;
};

}  // namespace attn::detail::gguf
