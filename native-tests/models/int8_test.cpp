// int8 models: texts that are the same vectors on every machine, and how far they are from float32's.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/context.hpp"
#include "attn/models/text_model.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "digest/draw.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_films() {
  std::ifstream file(testdata("sentiment/films.json"));
  return json::parse(file);
}

/// 1000 texts of 3 to 256 tokens: those of the films; every 20th only its first two words, every 20th twelve in one.
std::vector<std::string> digest_texts() {
  const json films = read_films();
  const auto text = [&](std::size_t i) { return films.at("texts").at(i).at("text").get<std::string>(); };
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::string all = text(i);
    if (i % 20 == 0) all = all.substr(0, all.find(' ', all.find(' ') + 1));
    for (std::size_t more = 1; i % 20 == 19 && more < 12; ++more) all += ' ' + text(i + more);
    texts.push_back(std::move(all));
  }
  return texts;
}

std::string hash_of(const std::vector<digest::Values>& all) {
  digest::Hash hash;
  for (const digest::Values& each : all) hash.add(each);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash.value()));
  return text;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// One line for each row.
std::vector<std::string> embedding_lines(const Tensor<2>& embeddings) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < embeddings.shape(0); ++i) {
    const float* const row = embeddings.data() + i * embeddings.shape(1);
    lines.push_back(hash_of({{{embeddings.shape(1)}, std::vector<float>(row, row + embeddings.shape(1))}}));
  }
  return lines;
}

bool has_mini_lm(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors")) return true;
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true") FAIL("models/all-MiniLM-L6-v2 is not there: tools/setup goldens");
  return false;
}

void check_lines(const std::vector<std::string>& got, const std::vector<std::string>& expected, std::size_t from = 0) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += from + i >= expected.size() || got[i] != expected[from + i];
  CHECK(wrong == 0);
}

TEST_CASE("all-MiniLM-L6-v2 in int8 gives the vectors and attentions of every machine", "[models][int8][minilm]") {
  const fs::path folder = testdata("../models/all-MiniLM-L6-v2");
  if (!has_mini_lm(folder)) SKIP("models/all-MiniLM-L6-v2 is not there: tools/goldens/make.sh fetches it");
  const TextModel model = TextModel::load(folder, {.weights = Weights::int8});
  std::vector<std::string> texts = digest_texts();
  // Four lanes that are emulated take minutes for all of them.
  const bool is_slow = Context::arch() == "emulated";
  if (is_slow) texts.resize(30);
  const Tensor<2> embeddings = model.embed(texts);
  std::vector<std::string> lines = embedding_lines(embeddings), of_attentions;
  for (std::size_t i = 0; i < (is_slow ? 5U : 50U); ++i) {
    const TextModelOutput output = model.forward(model.tokenize({texts[i]}), {.output_attentions = true});
    std::vector<digest::Values> all;
    for (const auto& each : *output.attentions) all.push_back(digest::values_of(each));
    of_attentions.push_back(hash_of(all));
  }
  if (const char* path = std::getenv("ATTN_WRITE_INT8_DIGEST"); path != nullptr) {
    std::ofstream file(path);
    for (const auto& line : lines) file << line << '\n';
    for (const auto& line : of_attentions) file << line << '\n';
    return;
  }
  const std::vector<std::string> expected = lines_of(testdata("models/all-MiniLM-L6-v2.int8.txt"));
  REQUIRE(expected.size() == 1050);
  check_lines(lines, expected);
  check_lines(of_attentions, expected, 1000);

  texts.resize(is_slow ? 8 : 64);
  const unsigned threads_before = num_threads();
  for (const unsigned threads : {1U, 2U, 3U})
    for (const std::int64_t batch_size : {1, 7, 32}) {
      INFO(threads << " threads, batches of " << batch_size);
      set_num_threads(threads);
      check_lines(embedding_lines(model.embed(texts, {.batch_size = batch_size})), expected);
    }
  set_num_threads(threads_before);
  if (is_slow) return;

  // How far from float32's.
  const Tensor<2> exact = TextModel::load(folder).embed(digest_texts());
  double sum = 0, least = 1;
  for (std::size_t i = 0; i < 1000; ++i) {
    double product = 0, a = 0, b = 0;
    for (std::size_t e = 0; e < 384; ++e) {
      product += static_cast<double>(exact(i, e)) * static_cast<double>(embeddings(i, e));
      a += static_cast<double>(exact(i, e)) * static_cast<double>(exact(i, e));
      b += static_cast<double>(embeddings(i, e)) * static_cast<double>(embeddings(i, e));
    }
    const double cosine = product / std::sqrt(a * b);
    sum += cosine;
    least = std::min(least, cosine);
  }
  std::printf("all-MiniLM-L6-v2 in int8: cosine to float32 of 1000 texts: mean %.5f, least %.5f\n", sum / 1000, least);
  CHECK(sum / 1000 >= 0.997);
  CHECK(least >= 0.99);
}

TEST_CASE("the small sentiment model is as good in int8", "[models][int8][sentiment]") {
  const TextModel model = TextModel::load(testdata("models/sentiment"), {.weights = Weights::int8});
  const json films = read_films();
  std::vector<std::string> texts;
  for (const json& film : films.at("texts")) texts.push_back(film.at("text"));
  std::size_t right = 0;
  const auto scores = model.classify(texts);
  std::vector<digest::Values> all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool positive = scores[i][0].label == model.labels().at(1);
    right += positive == (films.at("texts").at(i).at("label") == 1);
    all.push_back({{2}, {scores[i][0].score, scores[i][1].score}});
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(texts.size());
  std::printf("the sentiment model in int8: accuracy %.4f, in float32 %.4f\n", accuracy, films.at("accuracy").get<double>());
  CHECK(std::abs(accuracy - films.at("accuracy").get<double>()) <= 0.003);
  CHECK(hash_of(all) == "e2629c3b");
}

}  // namespace
}  // namespace attn::test
