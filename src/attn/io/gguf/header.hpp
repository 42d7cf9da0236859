#pragma once

#include <cstdint>
#include <initializer_list>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attn/io/gguf/block_types.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail::gguf {

/// Whole numbers are std::int64_t, real numbers double.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

class Metadata {
 public:
  /// Return none without such a key; throw FORMAT for another type.
  std::optional<bool> flag(const std::string& key) const;
  std::optional<std::int64_t> whole(const std::string& key) const;
  /// Also accepts whole numbers.
  std::optional<double> number(const std::string& key) const;
  const std::string* string(const std::string& key) const;
  const std::vector<std::string>* strings(const std::string& key) const;
  const std::vector<double>* numbers(const std::string& key) const;

  const Value* find(const std::string& key) const;
  /// Throws FORMAT for a repeated key.
  void add(std::string key, Value value);

 private:
  template <class T>
  const T* get(const std::string& key, std::string_view expected) const;

  std::map<std::string, Value> values_;
};

struct Tensor {
  std::string name;
  const BlockType* type = nullptr;
  std::vector<std::uint64_t> dims = {};  ///< 1 to 4, each at least 1; first the row length
  std::uint64_t first = 0;               ///< position in the file
  std::uint64_t bytes = 0;

  std::uint64_t row_bytes() const { return dims[0] / type->values * type->bytes; }
  std::uint64_t rows() const { return bytes / row_bytes(); }
};

struct Header {
  Metadata metadata;
  std::vector<Tensor> tensors;

  const Tensor* find(std::string_view name) const;
};

/// Reads GGUF version 2 or 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Checks every count, length
/// and offset before allocating. Throws FORMAT if the file is invalid or truncated; UNSUPPORTED for other versions,
/// block types and nested arrays.
Header read_header(std::istream& file, std::uint64_t size);

[[noreturn]] void refuse(std::string_view argument, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got,
                         ErrorCode code = ErrorCode::format, std::string_view help = {});

}  // namespace attn::detail::gguf
