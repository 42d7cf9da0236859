#pragma once

#include <cstdint>

namespace attn {

/// Tokens whose logits a forward returns, if there is a head: true for all, false for none, or the last token of each sequence.
/// @code
/// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
/// auto output = model.forward(model.tokenize({"The old man"}), {.output_logits = attn::OutputLogits::last});
/// std::cout << output.logits->shape(1);  // 1
/// @endcode
class OutputLogits {
 public:
  enum Rows : std::uint8_t { none, all, last };

  /// Selects all tokens (true), none (false), or the rows.
  constexpr OutputLogits(bool any) : rows_(any ? all : none) {}
  constexpr OutputLogits(Rows rows) : rows_(rows) {}
  constexpr bool operator==(const OutputLogits&) const = default;

 private:
  Rows rows_;
};

}  // namespace attn
