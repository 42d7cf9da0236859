#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/io/safetensors_header.hpp"

namespace attn::detail {

/// Reads a safetensors file in pieces of any size, so that memory never contains the whole file.
///
///   stream.give(piece);
///   if (stream.has_header()) ... stream.entries() ...
///   for (SafetensorsStream::Run run; stream.next(run);) ... run.values ...
class SafetensorsStream {
 public:
  /// Takes the next bytes of the file. They must stay valid until next() returns false. Throws FORMAT and UNSUPPORTED
  /// as parse_safetensors, and FORMAT for bytes after the last tensor.
  void give(std::span<const std::uint8_t> bytes);

  bool has_header() const { return has_header_; }
  /// Returns the entries in the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// Consecutive values of a tensor in row-major order: of float types as float32, of I8 unchanged. Other tensors have
  /// no runs.
  struct Run {
    std::size_t entry = 0;    ///< index in entries()
    std::uint64_t first = 0;  ///< index of the first value
    std::span<const float> values = {};
    std::span<const std::int8_t> bytes = {};
  };
  /// Returns the next run of the given bytes; false if they are used up. Its spans are valid until the next call.
  bool next(Run& run);

  /// Throws FORMAT if bytes are missing.
  void finish() const;

 private:
  std::uint64_t size() const { return kSafetensorsPrefix + header_size_ + data_size_; }

  static constexpr std::size_t kRun = 4096;

  std::vector<std::uint8_t> header_;  // prefix and header until both are complete
  std::size_t header_size_ = 0;       // 0: not known yet
  bool has_header_ = false;
  std::vector<SafetensorsEntry> entries_;
  std::uint64_t data_size_ = 0;

  std::span<const std::uint8_t> bytes_;  // given, not yet used
  std::uint64_t position_ = 0;           // within the data
  std::size_t entry_ = 0;                // entry that contains position_
  std::uint8_t split_[8] = {};           // an element that is split between two pieces
  std::size_t split_size_ = 0;
  std::vector<float> values_;
};

}  // namespace attn::detail
