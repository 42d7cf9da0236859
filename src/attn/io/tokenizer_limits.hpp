#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::detail {

// Exceeding a limit throws UNSUPPORTED. web/lib/src/tokenizer/limits.ts has the same.

// Parts of one kind, including Sequences and their members.
inline constexpr std::size_t kMaxNormalizers = 64;
inline constexpr std::size_t kMaxPreTokenizers = 32;
inline constexpr std::size_t kMaxPostProcessors = 16;
inline constexpr std::size_t kMaxDecoders = 16;
inline constexpr std::size_t kMaxAddedTokens = 1 << 18;
inline constexpr std::size_t kMaxToken = 1024;  // characters of a vocabulary, added or padding token
inline constexpr std::size_t kMaxAffix = 16;    // continuing_subword_prefix, end_of_word_suffix
// Search pattern, inserted text.
inline constexpr std::size_t kMaxPattern = 256;
inline constexpr std::size_t kMaxContent = 256;
inline constexpr std::size_t kMaxCharsmap = 1 << 22;    // bytes in base64
inline constexpr std::size_t kMaxCharacters = 1 << 24;  // of all tokens together
inline constexpr std::size_t kMaxSpecialTokens = 1024;  // in a template
// n characters may grow to min(kGrowth · n + kMoreCharacters, kLongGrowth · n + kMoreGrowth).
inline constexpr std::uint64_t kGrowth = 64;
inline constexpr std::uint64_t kMoreCharacters = 4096;
inline constexpr std::uint64_t kLongGrowth = 4;
inline constexpr std::uint64_t kMoreGrowth = 1 << 20;
// Steps as the stages count them: kStepsPerCharacter · n + kMoreSteps.
inline constexpr std::uint64_t kStepsPerCharacter = 256;
inline constexpr std::uint64_t kMoreSteps = 1 << 16;
// A JSON file of n bytes may take kMemoryPerByte · n + kMoreMemory.
inline constexpr std::uint64_t kMemoryPerByte = 10;
inline constexpr std::uint64_t kMoreMemory = 1 << 20;
inline constexpr std::uint64_t kMaxNames = 1 << 21;

}  // namespace attn::detail
