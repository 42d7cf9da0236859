#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/error.hpp"

// Shared by all targets. For each input a target must return or throw a typed error; anything else is a crash.
namespace attn::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Limit of one call, below libFuzzer's limit, so that an estimate that is too small fails.
inline constexpr std::uint64_t kMemoryLimit = std::uint64_t{64} << 20;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s does not hold\n", what);
  std::abort();
}

/// Prints each error: run.mjs uses it to check that the seeds are accepted.
inline const bool kVerbose = std::getenv("ATTN_FUZZ_VERBOSE") != nullptr;

/// Calls `work` and returns whether it succeeded. Any exception except attn::Error is a crash.
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
