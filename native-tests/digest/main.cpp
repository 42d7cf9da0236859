// attn_digest --arch: prints the kernels in use.
// attn_digest --training: 1, 2 and 3 threads agree; emulated kernels also with testdata/training_digest.txt.
// attn_digest [--float32 COUNT] [FILE [INT8_FILE]]: all bits agree on 1, 2 and 3 threads, in a foreign floating-point
// environment and for single rows of a batch. Writes a hash per line to FILE; with ATTN_MAX_ARCH=emulated those of
// WebAssembly's simd. COUNT limits the random float32 calls. int8 must agree with testdata/int8_digest.txt; INT8_FILE
// receives new hashes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "backward.hpp"
#include "fine_tuning.hpp"
#include "forwards.hpp"
#include "models.hpp"
#include "support/float_environment.hpp"
#include "support/testdata.hpp"
#include "training.hpp"

namespace {

using Lines = std::vector<std::string>;

bool same = true;

template <class Body>
void in_all_set_ups(Body body) {
  for (const unsigned threads : {1U, 2U, 3U, 1U}) {
    attn::set_num_threads(threads);
    body(std::to_string(threads) + " threads");
  }
  attn::set_num_threads(2);
  const attn::test::ForeignEnvironment environment;
  body("2 threads in a foreign floating-point environment");
  if (environment.is_in_force()) return;
  std::printf("the floating-point environment was not restored\n");
  same = false;
}

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

int check_training() {
  Lines first;
  in_all_set_ups([&](const std::string& set_up) {
    const digest::Training training = digest::train_classifier();
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(training.hash));
    std::printf("%s: %s, loss %.3f, at the end %.3f\n", set_up.c_str(), text, training.first_loss, training.last_loss);
    if (first.empty()) first = {text};
    compare({text}, first, "training", "in the first run with one thread");
    if (!(training.last_loss < 0.8 * training.first_loss)) same = false;
  });
  if (attn::Context::arch() == "emulated")
    compare(first, read(attn::test::testdata("training_digest.txt")), "training", "in testdata/training_digest.txt");
  return same ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace digest;
  if (count == 2 && std::string_view(arguments[1]) == "--arch") return std::puts(std::string(attn::Context::arch()).c_str()) < 0 ? 1 : 0;
  if (count == 2 && std::string_view(arguments[1]) == "--training") return check_training();
  std::uint32_t forwards = kForwards;
  if (count > 2 && std::string_view(arguments[1]) == "--float32") {
    forwards = static_cast<std::uint32_t>(std::atoi(arguments[2]));
    count -= 2;
    arguments += 2;
  }
  Lines first, first_int8;
  in_all_set_ups([&](const std::string& set_up) {
    Lines lines, int8;
    add_forwards(lines, "forward", forwards, 0x5eed0000U, draw_call);
    add_forwards(lines, "gradients", std::min(kBackwards, forwards / 8), 0x6ad00000U, draw_backward_call);
    add(lines, model_lines(attn::Weights::float32));
    add(lines, fine_tuning_lines());
    add_forwards(int8, "int8 forward", kQuantizedForwards, 0x17800000U, draw_quantized_call);
    add(int8, model_lines(attn::Weights::int8));
    if (first.empty()) first = lines, first_int8 = int8;
    const std::string with = "in the first run with one thread, now with " + set_up;
    compare(lines, first, "float32", with.c_str());
    compare(int8, first_int8, "int8", with.c_str());
  });
  if (count > 2 && !write(arguments[2], first_int8)) return 1;
  if (count < 3) compare(first_int8, read(attn::test::testdata("int8_digest.txt")), "int8", "in testdata/int8_digest.txt");
  if (!same) return 1;
  std::printf("On %s:\n", std::string(attn::Context::arch()).c_str());
  std::printf("%zu forwards, gradients and runs of fine-tuning: the same bits with 1, 2 and 3 threads, alone or inside a batch, and when repeated\n",
              first.size());
  std::printf("%zu forwards of what was quantized: the same bits as on every other machine, too\n", first_int8.size());
  return count > 1 && !write(arguments[1], first) ? 1 : 0;
}
