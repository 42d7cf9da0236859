#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn::detail {

/// Limits steps and length of a text: the rules of a file can double it again and again.
class Budget {
 public:
  /// `what` must outlive the budget.
  explicit Budget(std::size_t length, std::string_view what = "the text");

  /// Call before growing. Throws UNSUPPORTED, MEMORY.
  void hold(std::size_t characters) {
    if (characters > granted_) grant(characters);
  }
  /// Call before the steps, or right after those of a single token.
  void spend(std::uint64_t steps) {
    if ((steps_ += steps) > most_steps_) refuse();
  }

  std::uint64_t steps() const { return steps_; }

 private:
  void grant(std::size_t characters);
  [[noreturn]] void refuse() const;

  std::string_view what_;
  std::uint64_t length_, granted_, most_characters_, most_steps_, steps_ = 0;
};

}  // namespace attn::detail
