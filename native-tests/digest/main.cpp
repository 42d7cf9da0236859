// attn_digest [--float32 COUNT] [FILE [INT8_FILE]]: runs all random forwards, and those of the checkpoints of testdata/models, with 1, 2 and 3
// threads and with 1 again, and one row of each random batch alone. Where a bit differs it says so and fails; else it writes the hashes to FILE,
// one a line. With ATTN_MAX_ARCH=emulated they are those of the simd WebAssembly: wasm-tests/suites/bits.ts makes the same calls. COUNT: only so
// many of the random ones of float32.
//
// Hashes of what was quantized are those of testdata/int8_digest.txt, on every machine; INT8_FILE gets them anew.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "forwards.hpp"
#include "models.hpp"
#include "support/testdata.hpp"

namespace {

using Lines = std::vector<std::string>;

bool same = true;

template <class Draw>
void add_forwards(Lines& lines, const char* what, std::uint32_t count, std::uint32_t seed, Draw draw) {
  for (std::uint32_t i = 0; i < count; ++i) {
    digest::Generator g(seed + i);
    digest::Hash hash;
    if (!record(g, hash, draw(g, i))) {
      std::printf("%s %u: a row alone differs from the same row inside its batch\n", what, i);
      same = false;
    }
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash.value()));
    lines.emplace_back(text);
  }
}

void add(Lines& lines, const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); }

void compare(const Lines& lines, const Lines& expected, const char* what, const char* with) {
  if (lines.size() != expected.size()) {
    std::printf("%s: %zu lines, %zu %s\n", what, lines.size(), expected.size(), with);
    same = false;
    return;
  }
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i] != expected[i]) {
      std::printf("%s, line %zu: %s instead of %s %s\n", what, i, lines[i].c_str(), expected[i].c_str(), with);
      same = false;
    }
}

Lines read(const std::filesystem::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool write(const char* path, const Lines& lines) {
  std::ofstream file(path);
  for (const std::string& line : lines) file << line << '\n';
  if (!file.flush()) std::printf("%s: could not be written\n", path);
  return static_cast<bool>(file);
}

}  // namespace

int main(int count, char** arguments) {
  using namespace digest;
  std::uint32_t forwards = kForwards;
  if (count > 2 && std::string_view(arguments[1]) == "--float32") {
    forwards = static_cast<std::uint32_t>(std::atoi(arguments[2]));
    count -= 2;
    arguments += 2;
  }
  Lines first, first_int8;
  for (const unsigned threads : {1U, 2U, 3U, 1U}) {
    attn::set_num_threads(threads);
    Lines lines, int8;
    add_forwards(lines, "forward", forwards, 0x5eed0000U, draw_call);
    add(lines, model_lines(attn::Weights::float32));
    add_forwards(int8, "int8 forward", kQuantizedForwards, 0x17800000U, draw_quantized_call);
    add(int8, model_lines(attn::Weights::int8));
    if (first.empty()) first = lines, first_int8 = int8;
    const std::string with = "in the first run with one thread, now " + std::to_string(threads);
    compare(lines, first, "float32", with.c_str());
    compare(int8, first_int8, "int8", with.c_str());
  }
  if (count > 2 && !write(arguments[2], first_int8)) return 1;
  if (count < 3) compare(first_int8, read(attn::test::testdata("int8_digest.txt")), "int8", "in testdata/int8_digest.txt");
  if (!same) return 1;
  std::printf("On %s:\n", std::string(attn::Context::arch()).c_str());
  std::printf("%zu forwards: the same bits with 1, 2 and 3 threads, alone or inside a batch, and when repeated\n", first.size());
  std::printf("%zu forwards of what was quantized: the same bits as on every other machine, too\n", first_int8.size());
  return count > 1 && !write(arguments[1], first) ? 1 : 0;
}
