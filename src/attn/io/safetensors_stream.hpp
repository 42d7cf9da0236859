#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/io/safetensors_header.hpp"

namespace attn::detail {

/// Reads pieces of any size: give() a piece, then call next() until it returns false.
class SafetensorsStream {
 public:
  /// The bytes must stay valid until next() returns false. Throws as parse_safetensors.
  void give(std::span<const std::uint8_t> bytes);

  bool has_header() const { return has_header_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// Row-major float32, or I8 unchanged. Other tensors have no runs.
  struct Run {
    std::size_t entry = 0;
    std::uint64_t first = 0;
    std::span<const float> values = {};
    std::span<const std::int8_t> bytes = {};
  };
  /// The spans are valid until the next call.
  bool next(Run& run);

  void finish() const;

 private:
  std::uint64_t size() const { return kSafetensorsPrefix + header_size_ + data_size_; }

  static constexpr std::size_t kRun = 4096;

  std::vector<std::uint8_t> header_;
  std::size_t header_size_ = 0;  // 0: unknown
  bool has_header_ = false;
  std::vector<SafetensorsEntry> entries_;
  std::uint64_t data_size_ = 0;

  std::span<const std::uint8_t> bytes_;
  std::uint64_t position_ = 0;  // in the data
  std::size_t entry_ = 0;       // contains position_
  std::uint8_t split_[8] = {};  // element split between two pieces
  std::size_t split_size_ = 0;
  std::vector<float> values_;
};

}  // namespace attn::detail
