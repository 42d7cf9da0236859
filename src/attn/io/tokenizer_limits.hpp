#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::detail {

// What a tokenizer.json may ask for; more is UNSUPPORTED, by name. The package's tokenizer has the same (web/lib/src/tokenizer/limits.ts).
// Parts of a kind, all Sequences and what is in them.
inline constexpr std::size_t kMaxNormalizers = 64;
inline constexpr std::size_t kMaxPreTokenizers = 32;
inline constexpr std::size_t kMaxPostProcessors = 16;
inline constexpr std::size_t kMaxDecoders = 16;
inline constexpr std::size_t kMaxAddedTokens = 1 << 18;
inline constexpr std::size_t kMaxToken = 1024;  // characters of a token, in the vocabulary, added, or to pad with
inline constexpr std::size_t kMaxAffix = 16;    // of the prefix of what continues a word, and of the suffix of what ends it
// Characters to look for, to put in their place, and to put first.
inline constexpr std::size_t kMaxPattern = 256;
inline constexpr std::size_t kMaxContent = 256;
inline constexpr std::size_t kMaxCharsmap = 1 << 22;    // bytes of a Precompiled map in base64
inline constexpr std::size_t kMaxCharacters = 1 << 24;  // of all tokens together
inline constexpr std::size_t kMaxSpecialTokens = 1024;  // that a template puts around a text
// Characters that a text may become: so many for each of its own and a few more, of a long text so many for each and a million more.
inline constexpr std::uint64_t kGrowth = 64;
inline constexpr std::uint64_t kMoreCharacters = 4096;
inline constexpr std::uint64_t kLongGrowth = 4;
inline constexpr std::uint64_t kMoreGrowth = 1 << 20;
// Steps for each character of a text, by the stages' own count, and some more.
inline constexpr std::uint64_t kStepsPerCharacter = 256;
inline constexpr std::uint64_t kMoreSteps = 1 << 16;
// Bytes that the values of a JSON file may take, for each of its own, and some more; and names that it may have.
inline constexpr std::uint64_t kMemoryPerByte = 10;
inline constexpr std::uint64_t kMoreMemory = 1 << 20;
inline constexpr std::uint64_t kMaxNames = 1 << 21;

}  // namespace attn::detail
