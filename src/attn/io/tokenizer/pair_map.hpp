#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace attn::detail {

/// Open addressing. Numbers are above 0; at most `pairs` pairs.
class PairMap {
 public:
  explicit PairMap(std::size_t pairs = 0) : slots_(pairs + pairs / 2 + 1) {}

  /// 0 if missing.
  std::uint32_t get(std::uint32_t a, std::uint32_t b) const { return slots_[slot(a, b)].value; }
  void set(std::uint32_t a, std::uint32_t b, std::uint32_t value) { slots_[slot(a, b)] = {a, b, value}; }

 private:
  struct Slot {
    std::uint32_t a = 0, b = 0, value = 0;
  };
  /// Random, so that no file can contain colliding pairs.
  struct Factors {
    std::uint32_t a = std::random_device()() | 1, b = std::random_device()() | 1;
  };
  static const Factors& factors() {
    static const Factors drawn;
    return drawn;
  }

  std::size_t slot(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t hash = a * factors().a + b * factors().b;
    std::size_t at = static_cast<std::size_t>(std::uint64_t{hash} * slots_.size() >> 32);
    while (slots_[at].value != 0 && (slots_[at].a != a || slots_[at].b != b)) at = at + 1 < slots_.size() ? at + 1 : 0;
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace attn::detail
