#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Random changes of bytes rarely produce JSON, and the code behind the parser would hardly run. Therefore most
// mutations change values.
namespace attn::fuzz {

using Random = std::minstd_rand;

/// Changes one value, name or element; returns the text unchanged if it is not JSON.
std::string mutate_json(const std::string& text, Random& random);

/// For LLVMFuzzerCustomMutator: changes bytes, or a value in one of the first `json_parts` of the `parts`, which zero
/// bytes separate. Returns the new size.
std::size_t mutate_parts(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, std::size_t parts, std::size_t json_parts);

}  // namespace attn::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
