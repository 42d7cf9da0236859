#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attn/context.hpp"
#include "attn/models/text_model.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "digest/draw.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace models_int8_test {

namespace fs = std::filesystem;
using nlohmann::json;

json read_films() {
  std::ifstream file(testdata("sentiment/films.json"));
  return json::parse(file);
}

/// 3 to 256 tokens; every 20th text has one or two words, and every 20th joins twelve.
std::vector<std::string> digest_texts() {
  const json films = read_films();
  const auto text = [&](std::size_t i) { return films.at("texts").at(i).at("text").get<std::string>(); };
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::string all = text(i);
    if (i % 20 == 0) all = all.substr(0, all.find(' ', i % 40 == 0 ? 0 : all.find(' ') + 1));
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

using Attentions = std::vector<Tensor<4>>;

Attentions attentions_of(const TextModel& model, const std::string& text) {
  return *model.forward(model.tokenize({text}), {.output_attentions = true}).attentions;
}

struct Differences {
  double sum = 0, most = 0;
  std::size_t count = 0;

  void add(const Attentions& a, const Attentions& b) {
    for (std::size_t layer = 0; layer < a.size(); ++layer)
      for (std::size_t i = 0; i < a[layer].size(); ++i, ++count) {
        const double difference = std::abs(static_cast<double>(a[layer].flat(i)) - static_cast<double>(b[layer].flat(i)));
        sum += difference;
        most = std::max(most, difference);
      }
  }
  double mean() const { return sum / static_cast<double>(count); }
};

std::pair<double, double> cosines(const Tensor<2>& x, const Tensor<2>& y) {
  double sum = 0, least = 1;
  for (std::size_t i = 0; i < x.shape(0); ++i) {
    double product = 0, a = 0, b = 0;
    for (std::size_t e = 0; e < x.shape(1); ++e) {
      product += static_cast<double>(x(i, e)) * static_cast<double>(y(i, e));
      a += static_cast<double>(x(i, e)) * static_cast<double>(x(i, e));
      b += static_cast<double>(y(i, e)) * static_cast<double>(y(i, e));
    }
    const double cosine = product / std::sqrt(a * b);
    sum += cosine;
    least = std::min(least, cosine);
  }
  return {sum / static_cast<double>(x.shape(0)), least};
}

/// All texts would take minutes.
bool is_slow() {
#if defined(ATTN_EMULATED_PROCESSOR)
  return true;
#else
  return Context::arch() == "emulated";
#endif
}

/// Instruction sets differ only in kernels, so narrower ones compare only a part.
std::size_t compared_texts() { return is_slow() ? 30 : std::getenv("ATTN_MAX_ARCH") != nullptr ? 200 : 1000; }

TEST_CASE("all-MiniLM-L6-v2 in int8 gives the same vectors and attentions on every machine", "[models][int8][minilm]") {
  const fs::path folder = testdata("../models/all-MiniLM-L6-v2");
  if (!has_mini_lm(folder)) SKIP("models/all-MiniLM-L6-v2 is not there: tools/setup models fetches it");
  const TextModel model = TextModel::load(folder, {.weights = Weights::int8});
  std::vector<std::string> texts = digest_texts();
  texts.resize(compared_texts());
  const Tensor<2> embeddings = model.embed(texts);
  std::vector<std::string> lines = embedding_lines(embeddings), of_attentions;
  std::vector<Attentions> maps;
  for (std::size_t i = 0; i < (is_slow() ? 5U : 50U); ++i) {
    std::vector<digest::Values> all;
    for (const auto& each : maps.emplace_back(attentions_of(model, texts[i]))) all.push_back(digest::values_of(each));
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
  std::printf("all-MiniLM-L6-v2 in int8 on %s: %zu vectors and the attentions of %zu texts are those of every machine\n",
              std::string(Context::arch()).c_str(), lines.size(), of_attentions.size());

  const std::vector<std::string> compared = texts;
  texts.resize(is_slow() ? 8 : 64);
  const unsigned threads_before = num_threads();
  using Sizes = std::vector<std::int64_t>;
  for (const std::int64_t threads : is_slow() ? Sizes{2} : Sizes{1, 2, 3})
    for (const std::int64_t batch_size : is_slow() ? Sizes{7} : Sizes{1, 7, 32}) {
      INFO(threads << " threads, batches of " << batch_size);
      set_num_threads(static_cast<unsigned>(threads));
      check_lines(embedding_lines(model.embed(texts, {.batch_size = batch_size})), expected);
    }
  set_num_threads(threads_before);
  if (is_slow()) return;

  const TextModel exact = TextModel::load(folder);
  const auto [mean, least] = cosines(exact.embed(compared), embeddings);
  Differences differences;
  for (std::size_t i = 0; i < maps.size(); ++i) differences.add(maps[i], attentions_of(exact, texts[i]));
  std::printf(
      "all-MiniLM-L6-v2 in int8: cosine to float32 of %zu texts: mean %.5f, least %.5f; attentions of 50: mean |difference| %.1e, most %.2f\n",
      compared.size(), mean, least, differences.mean(), differences.most);
  CHECK(mean >= 0.997);
  CHECK(least >= 0.99);
  CHECK(differences.mean() <= 5e-4);
}

TEST_CASE("all-MiniLM-L6-v2 gives the same vectors in batches of 1 to 32 and from float16 files", "[models][int8][minilm]") {
  const fs::path folder = testdata("../models/all-MiniLM-L6-v2");
  if (is_slow() || !has_mini_lm(folder)) return;
  const TextModel model = TextModel::load(folder, {.weights = Weights::int8});
  std::vector<std::string> texts = digest_texts();
  texts.resize(33);
  const std::vector<std::string> expected = lines_of(testdata("models/all-MiniLM-L6-v2.int8.txt"));
  for (std::int64_t batch_size = 1; batch_size <= 32; ++batch_size) {
    INFO("batches of " << batch_size);
    check_lines(embedding_lines(model.embed(texts, {.batch_size = batch_size})), expected);
  }

  const fs::path written = fs::temp_directory_path() / "attn-int8-test-float16";
  const TextModel exact = TextModel::load(folder);
  exact.save_pretrained(written, {.weights = FileWeights::float16});
  const auto [mean, least] = cosines(exact.embed(texts), TextModel::load(written).embed(texts));
  fs::remove_all(written);
  std::printf("all-MiniLM-L6-v2 in float16 files: cosine to float32 of %zu texts: mean %.7f, least %.7f\n", texts.size(), mean, least);
  CHECK(least >= 0.99999);
}

TEST_CASE("the small sentiment model is as accurate in int8", "[models][int8][sentiment]") {
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
  CHECK(hash_of(all) == "c54dc7b1");
  const TextModel exact = TextModel::load(testdata("models/sentiment"));
  Differences differences;
  for (std::size_t i = 0; i < 200; ++i) differences.add(attentions_of(model, texts[i]), attentions_of(exact, texts[i]));
  std::printf("the sentiment model in int8: attentions of 200 films: mean |difference| %.1e, most %.4f\n", differences.mean(), differences.most);
  CHECK(differences.mean() <= 2e-4);
}

}  // namespace models_int8_test
}  // namespace attn::test
