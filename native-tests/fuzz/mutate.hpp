#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Random bytes are rarely JSON, so most mutations change values.
namespace attn::fuzz {

using Random = std::minstd_rand;

std::string mutate_json(const std::string& text, Random& random);

/// `parts` are separated by zero bytes, of which the first `json_parts` are JSON.
std::size_t mutate_parts(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, std::size_t parts, std::size_t json_parts);

}  // namespace attn::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
