// Sentence embeddings in a pipe: reads lines of text, writes a JSON vector per line.
// embed models/all-MiniLM-L6-v2 < sentences.txt > vectors.jsonl
#include <attn/attn.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr const char* kHelp =
    "usage: embed FOLDER < lines > vectors\n"
    "\n"
    "Reads lines of UTF-8 and writes for each the vector that the model in FOLDER gives it, as a JSON array on a line of its own.\n"
    "FOLDER has a checkpoint's files as its authors publish them: config.json, tokenizer.json, model.safetensors and, where the model has\n"
    "them, those of sentence-transformers. Texts longer than the model takes are cut. A line that is not UTF-8 ends it with exit code 1.\n";

constexpr std::size_t kLines = 256;  // embedded together, so that lines of similar length share a batch

void print(const xt::xtensor<float, 2>& vectors) {
  for (std::size_t i = 0; i < vectors.shape()[0]; ++i) {
    for (std::size_t k = 0; k < vectors.shape()[1]; ++k) {
      std::printf(k == 0 ? "[" : ",");
      std::printf(std::isfinite(vectors(i, k)) ? "%.9g" : "null", static_cast<double>(vectors(i, k)));
    }
    std::printf("]\n");
  }
  std::fflush(stdout);
}

/// Returns the index of the text that caused the error.
std::optional<std::size_t> index_in(const attn::Error& error) {
  const auto found = error.detail().find("index");
  if (error.code() != attn::ErrorCode::argument || found == error.detail().end()) return std::nullopt;
  return static_cast<std::size_t>(std::get<double>(found->second));
}

/// Returns false if a line is not valid text; `first` is the number of the first line.
bool embed(const attn::TextModel& model, std::vector<std::string> lines, std::size_t first) {
  try {
    print(model.embed(lines));
    return true;
  } catch (const attn::Error& error) {
    const std::optional<std::size_t> bad = index_in(error);
    if (!bad) throw;
    lines.resize(*bad);
    if (!lines.empty()) print(model.embed(lines));
    std::fprintf(stderr, "embed: line %zu is not UTF-8\n", first + *bad);
    return false;
  }
}

int run(const std::string& folder) {
  const attn::TextModel model = attn::TextModel::load(folder);
  std::vector<std::string> lines;
  std::size_t first = 1;
  for (bool more = true; more;) {
    std::string line;
    more = static_cast<bool>(std::getline(std::cin, line));
    if (more) {
      if (line.ends_with('\r')) line.pop_back();
      lines.push_back(std::move(line));
    }
    if (lines.size() < kLines && more) continue;
    const std::size_t count = lines.size();
    if (count > 0 && !embed(model, std::move(lines), first)) return 1;
    lines.clear();
    first += count;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string word = count == 2 ? words[1] : "";
  if (word == "--help" || word == "-h") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (word.empty() || word.starts_with('-')) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  try {
    return run(word);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
