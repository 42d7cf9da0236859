#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Bytes that libFuzzer changes at random are seldom JSON any more, and what comes after the parser is seldom seen. Most changes are to
// values instead.
namespace attn::fuzz {

using Random = std::minstd_rand;

/// The text with one value, name or element changed; as it is where it is no JSON.
std::string mutate_json(const std::string& text, Random& random);

/// For LLVMFuzzerCustomMutator: changes bytes, or a value in one of the first `json_parts` of the `parts` that zero bytes separate.
/// Returns the new size.
std::size_t mutate_parts(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, std::size_t parts, std::size_t json_parts);

}  // namespace attn::fuzz

/// libFuzzer's own.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
/// What a target may define.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
