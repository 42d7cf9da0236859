// attn_digest [FILE]: runs all random forwards, and those of the checkpoints of testdata/models, with 1, 2 and 3 threads and with 1 again, and one
// row of each random batch alone. Where a bit differs it says so and fails; else it writes the hashes to FILE, one a line. With
// ATTN_MAX_ARCH=emulated they are those of the simd WebAssembly: wasm-tests/suites/bits.ts makes the same calls.
#include <cstdio>
#include <string>
#include <vector>

#include "forwards.hpp"
#include "models.hpp"

int main(int count, char** arguments) {
  using namespace digest;
  std::vector<std::uint32_t> first;
  std::vector<std::string> first_models;
  bool same = true;
  for (const unsigned threads : {1U, 2U, 3U, 1U}) {
    attn::set_num_threads(threads);
    std::vector<std::uint32_t> hashes;
    for (std::uint32_t i = 0; i < kForwards; ++i) {
      Generator g(0x5eed0000U + i);
      Hash hash;
      if (!record(g, hash, draw_call(g, i))) {
        std::printf("forward %u, %u threads: a row alone differs from the same row inside its batch\n", i, threads);
        same = false;
      }
      hashes.push_back(hash.value());
    }
    const std::vector<std::string> models = model_lines();
    if (first.empty()) first = hashes, first_models = models;
    for (std::size_t i = 0; i < models.size(); ++i)
      if (models[i] != first_models[i]) {
        std::printf("%s: other bits with %u threads than in the first run with one\n", models[i].c_str(), threads);
        same = false;
      }
    for (std::uint32_t i = 0; i < kForwards; ++i)
      if (hashes[i] != first[i]) {
        std::printf("forward %u: other bits with %u threads than in the first run with one\n", i, threads);
        same = false;
      }
  }
  if (!same) return 1;
  std::printf("%u random forwards: the same bits with 1, 2 and 3 threads, alone or inside a batch, and when repeated\n", kForwards);
  std::printf("%zu forwards of checkpoints: the same bits with 1, 2 and 3 threads, and when repeated\n", first_models.size());
  if (count < 2) return 0;
  std::FILE* file = std::fopen(arguments[1], "w");
  if (file == nullptr) {
    std::perror(arguments[1]);
    return 1;
  }
  for (const std::uint32_t hash : first) std::fprintf(file, "%08x\n", hash);
  for (const std::string& line : first_models) std::fprintf(file, "%s\n", line.c_str());
  return std::fclose(file) == 0 ? 0 : 1;
}
