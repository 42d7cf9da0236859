#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Random bytes are rarely JSON, so most mutations change values.
namespace attn::fuzz {

using Random = std::minstd_rand;

/// Changes one value, name or element; text that is not JSON stays.
std::string mutate_json(const std::string& text, Random& random);

/// Changes bytes, or a value in one of the first `json_parts` of `parts` separated by zero bytes. Returns the new size.
std::size_t mutate_parts(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, std::size_t parts, std::size_t json_parts);

}  // namespace attn::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
