#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn::detail {

/// What a text may cost: characters that it becomes at once, since a file's rules can double it again and again, and steps until it is tokens.
class Budget {
 public:
  /// For so many characters; `what` they are outlives it.
  explicit Budget(std::size_t length, std::string_view what = "the text");

  /// Before a text becomes so many characters. Throws UNSUPPORTED, of long texts MEMORY.
  void hold(std::size_t characters) {
    if (characters > granted_) grant(characters);
  }
  /// Before steps are taken, or behind the one token that they were for. Throws UNSUPPORTED.
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
