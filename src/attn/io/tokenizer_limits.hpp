#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::detail {

// Limits for tokenizer.json; exceeding one throws UNSUPPORTED. The npm package has the same
// (web/lib/src/tokenizer/limits.ts).

// Parts of one kind, including Sequences and their members.
inline constexpr std::size_t kMaxNormalizers = 64;
inline constexpr std::size_t kMaxPreTokenizers = 32;
inline constexpr std::size_t kMaxPostProcessors = 16;
inline constexpr std::size_t kMaxDecoders = 16;
inline constexpr std::size_t kMaxAddedTokens = 1 << 18;
inline constexpr std::size_t kMaxToken = 1024;  // characters of a token in the vocabulary, an added token or a padding token
inline constexpr std::size_t kMaxAffix = 16;    // characters of the prefix of continuing pieces and of the suffix at the end of words
// Characters of a search pattern, and of inserted text.
inline constexpr std::size_t kMaxPattern = 256;
inline constexpr std::size_t kMaxContent = 256;
inline constexpr std::size_t kMaxCharsmap = 1 << 22;    // bytes of a Precompiled map in base64
inline constexpr std::size_t kMaxCharacters = 1 << 24;  // characters of all tokens together
inline constexpr std::size_t kMaxSpecialTokens = 1024;  // special tokens in a template
// A text of n characters may grow to min(kGrowth · n + kMoreCharacters, kLongGrowth · n + kMoreGrowth) characters.
inline constexpr std::uint64_t kGrowth = 64;
inline constexpr std::uint64_t kMoreCharacters = 4096;
inline constexpr std::uint64_t kLongGrowth = 4;
inline constexpr std::uint64_t kMoreGrowth = 1 << 20;
// It may take kStepsPerCharacter · n + kMoreSteps steps, as counted by the stages.
inline constexpr std::uint64_t kStepsPerCharacter = 256;
inline constexpr std::uint64_t kMoreSteps = 1 << 16;
// The values of a JSON file of n bytes may take kMemoryPerByte · n + kMoreMemory bytes.
inline constexpr std::uint64_t kMemoryPerByte = 10;
inline constexpr std::uint64_t kMoreMemory = 1 << 20;
inline constexpr std::uint64_t kMaxNames = 1 << 21;

}  // namespace attn::detail
