#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::detail {

// What a tokenizer.json may ask for; more is UNSUPPORTED, by name. The package's tokenizer has the same (web/lib/src/tokenizer/limits.ts), and those
// of the parts that this one has not.
inline constexpr std::size_t kMaxAddedTokens = 1 << 18;
inline constexpr std::size_t kMaxToken = 1024;  // characters of a token, in the vocabulary, added, or to pad with
inline constexpr std::size_t kMaxAffix = 16;    // of the prefix of what continues a word
inline constexpr std::size_t kMaxSpecialTokens = 1024;
// Steps of looking for tokens, for each character of a text, and some more.
inline constexpr std::uint64_t kStepsPerCharacter = 256;
inline constexpr std::uint64_t kMoreSteps = 1 << 16;
// Bytes that the values of a JSON file may take, for each of its own, and some more; and names that it may have.
inline constexpr std::uint64_t kMemoryPerByte = 10;
inline constexpr std::uint64_t kMoreMemory = 1 << 20;
inline constexpr std::uint64_t kMaxNames = 1 << 21;

}  // namespace attn::detail
