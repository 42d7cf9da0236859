#include "attn/io/safetensors_stream.hpp"

#include <algorithm>
#include <cstring>

namespace attn::detail {

void SafetensorsStream::give(std::span<const std::uint8_t> bytes) {
  bytes_ = bytes;
  while (!has_header_ && !bytes_.empty()) {
    const std::size_t want = kSafetensorsPrefix + header_size_ - header_.size(), count = std::min(want, bytes_.size());
    header_.insert(header_.end(), bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count));
    bytes_ = bytes_.subspan(count);
    if (count < want) return;
    if (header_size_ == 0) {
      header_size_ = safetensors_header_size(header_.data(), std::nullopt);
      continue;
    }
    entries_ = parse_safetensors_header(std::span(header_).subspan(kSafetensorsPrefix), std::nullopt);
    data_size_ = entries_.empty() ? 0 : entries_.back().last;
    header_ = {};
    values_.resize(kRun);
    has_header_ = true;
  }
  if (has_header_ && bytes_.size() > data_size_ - position_)
    refuse_safetensors({"the file goes on after its last tensor, which ends at byte ", size()});
}

bool SafetensorsStream::next(Run& run) {
  while (!bytes_.empty()) {
    while (entries_[entry_].last == position_) ++entry_;  // also skips empty tensors
    const SafetensorsEntry& entry = entries_[entry_];
    const auto take = [&](std::uint64_t count) {
      const auto taken = bytes_.first(static_cast<std::size_t>(count));
      bytes_ = bytes_.subspan(taken.size());
      position_ += count;
      return taken;
    };
    const std::uint64_t left = std::min<std::uint64_t>(entry.last - position_, bytes_.size());
    if (!entry.type->is_float) {
      const auto bytes = take(left);
      if (!entry.type->is_int8()) continue;
      run = {entry_, position_ - entry.first - left, {}, {reinterpret_cast<const std::int8_t*>(bytes.data()), bytes.size()}};
      return true;
    }
    const auto size = static_cast<std::size_t>(entry.type->size);
    std::size_t count = 1;
    const std::uint8_t* from = split_;
    if (split_size_ > 0 || left < size) {
      const auto part = take(std::min<std::uint64_t>(size - split_size_, left));
      std::memcpy(split_ + split_size_, part.data(), part.size());
      split_size_ += part.size();
      if (split_size_ < size) continue;
      split_size_ = 0;
    } else {
      count = std::min<std::size_t>(static_cast<std::size_t>(left) / size, kRun);
      from = take(count * size).data();
    }
    convert_floats(*entry.type, from, values_.data(), count);
    run = {entry_, (position_ - entry.first) / size - count, {values_.data(), count}, {}};
    return true;
  }
  return false;
}

void SafetensorsStream::finish() const {
  if (!has_header_ && header_.size() < kSafetensorsPrefix) refuse_safetensors({"the file has ", header_.size(), " bytes, expected at least 8"});
  if (!has_header_) refuse_safetensors({"the header is longer than the file (", header_size_, " of ", header_.size(), " bytes)"});
  if (position_ < data_size_) refuse_safetensors({"the file ends after ", kSafetensorsPrefix + header_size_ + position_, " of ", size(), " bytes"});
}

}  // namespace attn::detail
