#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/error.hpp"

// A target returns or throws a typed error for every input; anything else is a crash.
namespace attn::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Below libFuzzer's limit, so that a low estimate fails.
inline constexpr std::uint64_t kMemoryLimit = std::uint64_t{64} << 20;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s does not hold\n", what);
  std::abort();
}

inline const bool kVerbose = std::getenv("ATTN_FUZZ_VERBOSE") != nullptr;

template <class Work>
bool succeeds(const Work& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    require(std::string_view(error.what()).size() > 2, "an error says something");
    if (kVerbose) std::fprintf(stderr, "refused: %s\n", error.what());
    return false;
  }
}

inline std::vector<Bytes> split(Bytes input, std::size_t count) {
  std::vector<Bytes> parts;
  while (parts.size() + 1 < count) {
    std::size_t size = 0;
    while (size < input.size() && input[size] != 0) ++size;
    parts.push_back(input.first(size));
    input = input.subspan(size < input.size() ? size + 1 : size);
  }
  parts.push_back(input);
  return parts;
}

inline std::string text_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace attn::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
