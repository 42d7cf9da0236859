#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/error.hpp"

// What the targets share. A target gets bytes that libFuzzer has thought of; a typed error is as good as a result, all else ends the program.
namespace attn::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Of one call. Below what libFuzzer lets the program have, so that an estimate that is too small is seen.
inline constexpr std::uint64_t kMemoryLimit = std::uint64_t{64} << 20;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s does not hold\n", what);
  std::abort();
}

/// Says what each error was: run.mjs asks for it to see that the seeds are not refused.
inline const bool kVerbose = std::getenv("ATTN_FUZZ_VERBOSE") != nullptr;

/// Calls `work`; whether it ended without an error of the library's. Anything else that it throws is a crash.
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

/// The parts of an input that zero bytes separate, `count` of them; the last one has what is left.
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

/// What each target defines.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
