#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/io/safetensors_header.hpp"

namespace attn::detail {

/// A safetensors file that comes in pieces of any size, so that it is never there as a whole.
///
///   stream.give(piece);
///   if (stream.has_header()) ... stream.entries() ...
///   for (SafetensorsStream::Run run; stream.next(run);) ... run.values ...
class SafetensorsStream {
 public:
  /// The next bytes of the file; they must stay until next() has no more.
  /// Throws FORMAT and UNSUPPORTED as parse_safetensors, and FORMAT for bytes after the last tensor.
  void give(std::span<const std::uint8_t> bytes);

  /// Whether the header is complete.
  bool has_header() const { return has_header_; }
  /// In the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// Values of a tensor that follow each other, in row-major order: of a float one as float32, of I8 as they are. Other tensors have none.
  struct Run {
    std::size_t entry = 0;    ///< its index
    std::uint64_t first = 0;  ///< index of the first value
    std::span<const float> values = {};
    std::span<const std::int8_t> bytes = {};
  };
  /// The next run of the bytes given; false where they are used up. What it spans is valid until the next call.
  bool next(Run& run);

  /// Throws FORMAT where bytes are missing.
  void finish() const;

 private:
  std::uint64_t size() const { return kSafetensorsPrefix + header_size_ + data_size_; }

  static constexpr std::size_t kRun = 4096;

  std::vector<std::uint8_t> header_;  // prefix and header, until they are complete
  std::size_t header_size_ = 0;       // 0: not known yet
  bool has_header_ = false;
  std::vector<SafetensorsEntry> entries_;
  std::uint64_t data_size_ = 0;

  std::span<const std::uint8_t> bytes_;  // given, not used yet
  std::uint64_t position_ = 0;           // in the data
  std::size_t entry_ = 0;                // that position_ is in
  std::uint8_t split_[8] = {};           // an element whose bytes came in two pieces
  std::size_t split_size_ = 0;
  std::vector<float> values_;
};

}  // namespace attn::detail
