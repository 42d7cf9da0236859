#include "attn/io/tokenizer/budget.hpp"

#include <algorithm>

#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {
namespace {
constexpr const char* kOp = "tokenize";
}

Budget::Budget(std::size_t length, std::string_view what)
    : what_(what),
      length_(length),
      granted_(length),
      most_characters_(std::min(kGrowth * length + kMoreCharacters, kLongGrowth * length + kMoreGrowth)),
      most_steps_(kStepsPerCharacter * length + kMoreSteps) {}

void Budget::grant(std::size_t characters) {
  if (characters > most_characters_)
    fail(most_characters_ > kMoreGrowth ? ErrorCode::memory : ErrorCode::unsupported, kOp, what_, {"at most ", most_characters_, " characters"},
         {"too long after normalization"});
  granted_ = std::min<std::uint64_t>(2 * characters, most_characters_);
  MemoryEstimate memory(kOp);
  memory.add("the characters of a text", {static_cast<std::int64_t>(granted_), 12});  // up to four lists of 12 bytes
  memory.check("the characters of a text");
}

void Budget::refuse() const {
  fail(ErrorCode::unsupported, kOp, what_, {"at most ", kStepsPerCharacter, " per character"},
       {"needs more than ", most_steps_, " steps for ", length_, " characters"});
}

}  // namespace attn::detail
