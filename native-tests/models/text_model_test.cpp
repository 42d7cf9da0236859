#include "attn/models/text_model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <sys/resource.h>
#include <sys/stat.h>

#include "attn/parallel/thread_pool.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_text_model_test {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kCheckpoints[] = {"tiny-bert",       "tiny-bert-cls",    "tiny-bert-legacy",    "tiny-bert-multilabel",
                                        "tiny-distilbert", "tiny-mpnet",       "tiny-mpnet-mean",     "tiny-roberta",
                                        "tiny-modernbert", "tiny-xlm-roberta", "tiny-modernbert-2024"};

const std::vector<std::string> kTexts{"A happy person smiles.",     "",   "Was it bad?", "The film was not bad, it was good!", "the",
                                      "It was a good day. Was it?", "a b"};

TextModel stock(const std::string& name) { return TextModel::load(testdata("models/" + name)); }

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("attn-text-model-" + std::to_string(std::random_device()()))) { fs::create_directories(path_); }
  explicit Folder(const std::string& name) : Folder() {
    fs::copy(testdata("models/" + name), path_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void write(const char* name, const std::string& text) const { std::ofstream(path_ / name, std::ios::binary) << text; }
  void remove(const char* name) const { fs::remove(path_ / name); }

 private:
  fs::path path_;
};

class LimitedFiles {
 public:
  explicit LimitedFiles(std::uintmax_t size) : size_(size), handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{static_cast<rlim_t>(size), before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LimitedFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LimitedFiles(const LimitedFiles&) = delete;
  LimitedFiles& operator=(const LimitedFiles&) = delete;

  std::uintmax_t size() const { return size_; }

 private:
  std::uintmax_t size_;
  void (*handler_)(int);
  rlimit before_{};
};

Encoding tokenized(const TextModel& model, const json& entry) {
  TokenizeOptions options;
  if (entry.at("options").contains("maxLength")) options.max_length = entry.at("options").at("maxLength").get<std::int64_t>();
  const json& texts = entry.at("texts");
  return texts.at(0).is_array() ? model.tokenize_pairs(texts, options) : model.tokenize(texts, options);
}

double cosine(const float* a, const float* b, std::size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

void check_against_goldens(const TextModel& model, const GoldenFile& file) {
  CHECK(model.max_length() == std::stoll(file.metadata.at("max_length").get<std::string>()));
  std::size_t count = 0;
  for (const json& entry : cases_of(file)) {
    if (entry.at("op") != "text_model") continue;
    const GoldenCase golden(file, entry);
    CAPTURE(golden.name());
    const Encoding encoding = tokenized(model, entry);
    CHECK(encoding.tokens == entry.at("tokens").get<std::vector<std::vector<std::string>>>());
    CHECK_THAT(floats_of(encoding.input_ids), HasBitsOf(golden.tensor("input_ids")));
    CHECK_THAT(floats_of(encoding.attention_mask), HasBitsOf(golden.tensor("attention_mask")));
    if (golden.lists("inputs", "token_type_ids")) CHECK_THAT(floats_of(encoding.token_type_ids), HasBitsOf(golden.tensor("token_type_ids")));

    TextForwardOptions everything = forward_options(entry);
    everything.output_attentions = everything.output_hidden_states = true;
    const TextModelOutput output = model.forward(encoding, everything);
    CHECK(output.logits.has_value() == (model.task() != Task::embedding));
    CHECK_THAT(floats_of(output.hidden_states->back()), HasBitsOf(floats_of(output.last_hidden_state)));
    for (const auto& [what, error] : entry.at("expected").items()) {
      CAPTURE(what);
      const std::size_t dot = what.find('.');
      const std::string start = what.substr(0, dot), rest = dot == std::string::npos ? "" : what.substr(dot + 1);
      Array got;
      if (what == "lastHiddenState") got = floats_of(output.last_hidden_state);
      if (what == "logits") got = floats_of(*output.logits);
      if (start == "hiddenStates") got = floats_of(output.hidden_states->at(std::stoul(rest)));
      if (start == "attentions") got = floats_of(output.attentions->at(std::stoul(rest)));
      if (what == "probabilities") {
        const Array expected = golden.tensor("expected.probabilities");
        const json& texts = entry.at("texts");
        const ClassifyOptions options{.max_length = static_cast<std::int64_t>(encoding.input_ids.shape(1))};
        const auto scores = texts.at(0).is_array() ? model.classify_pairs(texts, options) : model.classify(texts, options);
        got.dims = expected.dims;
        for (const auto& of_text : scores) {
          CHECK(std::is_sorted(of_text.begin(), of_text.end(), [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; }));
          for (const std::string& label : model.labels())
            for (const LabelScore& each : of_text)
              if (each.label == label) got.data.push_back(each.score);
        }
        CHECK_THAT(got, is_within(2e-5, expected));
      }
      // embed takes only single texts; pairs have one row.
      if ((start == "pooled" || what == "embedding") && !entry.at("texts").at(0).is_array()) {
        EmbedOptions options{.max_length = static_cast<std::int64_t>(encoding.input_ids.shape(1))};
        if (start == "pooled") {
          options.normalize = false;
          options.pooling = static_cast<Pooling>(std::find(kPoolingNames.begin(), kPoolingNames.end(), rest) - kPoolingNames.begin());
        }
        got = floats_of(model.embed(entry.at("texts"), options));
      }
      if (got.data.empty()) continue;
      ++count;
      CHECK(difference(golden, what, got) == "");
      if (what == "embedding") {
        const Array expected = golden.tensor("expected.embedding");
        const auto width = static_cast<std::size_t>(expected.dims[1]);
        for (std::size_t i = 0; i < expected.data.size(); i += width) CHECK(cosine(got.data.data() + i, expected.data.data() + i, width) >= 0.99999);
      }
    }
  }
  CHECK(count >= 8);
}

TEST_CASE("texts give the numbers of transformers", "[models]") {
  for (const char* name : kCheckpoints) {
    CAPTURE(name);
    check_against_goldens(stock(name), read_golden(testdata(std::string("models/") + name + ".safetensors")));
  }
}

TEST_CASE("a trace of a layer has the attentions and hidden states of the forward", "[models]") {
  for (const char* name : {"tiny-bert", "tiny-mpnet"}) {
    CAPTURE(name);
    const TextModel model = stock(name);
    const Encoding encoding = model.tokenize(kTexts);
    const TextModelOutput output = model.forward(encoding, {.output_attentions = true, .output_hidden_states = true});
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const AttentionTrace trace = model.trace_layer(encoding, layer);
      CHECK(trace.size() == kLayerTraceCount - 1);
      const auto at = static_cast<std::size_t>(layer);
      CHECK_THAT(floats_of(trace.at(TraceName::weights)), HasBitsOf(floats_of(output.attentions->at(at))));
      CHECK_THAT(floats_of(trace.at(TraceName::norm2)), HasBitsOf(floats_of(output.hidden_states->at(at + 1))));
    }
    CHECK(model.trace_layer(encoding, 1, Trace{TraceName::scores}).size() == 1);
    for (const std::int64_t layer : {-1, 2})
      check_error({ErrorCode::out_of_range, "trace_layer", "layer", {"from 0 to 1"}}, [&] { model.trace_layer(encoding, layer); });
  }
}

TEST_CASE("each of many texts has its own result, and errors name the right text", "[models][large]") {
  const TextModel model = stock("tiny-bert");
  const Array few = floats_of(model.embed(kTexts));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 8192 + 40; ++i) texts.push_back(kTexts[i % kTexts.size()]);
  const Array many = floats_of(model.embed(texts));
  const std::size_t width = many.data.size() / texts.size();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const float* const row = many.data.data() + i * width;
    if (!std::equal(row, row + width, few.data.data() + i % kTexts.size() * width)) ++wrong;
  }
  CHECK(wrong == 0);
  texts[8200] = "\xff";
  check_error({ErrorCode::argument, "tokenize", "text 8200", {"UTF-8"}}, [&] { model.embed(texts); });
  texts[8200] = texts[0];
  for (int i = 0; i < 100; ++i) texts[8201] += " film";
  check_error({ErrorCode::out_of_range, "tokenize", "text 8201", {}}, [&] { model.classify(texts, {.truncation = false}); });
}

TEST_CASE("embeddings and classifications have the same bits in batches of any size and with any number of threads", "[models][threads]") {
  const TextModel model = stock("tiny-bert"), other = stock("tiny-mpnet-mean");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 40; ++i) texts.push_back(kTexts[i % kTexts.size()] + (i % 3 == 0 ? " the film" : ""));
  const Array embedded = floats_of(model.embed(texts)), pooled = floats_of(other.embed(texts));
  const auto scores_of = [&](std::int64_t batch_size) {
    Array scores({static_cast<std::int64_t>(texts.size()), 3});
    scores.data.clear();
    for (const auto& of_text : model.classify(texts, {.batch_size = batch_size}))
      for (const LabelScore& each : of_text) scores.data.push_back(each.score);
    return scores;
  };
  const Array scores = scores_of(32);
  for (const unsigned threads : {1U, 2U, 3U}) {
    set_num_threads(threads);
    for (const std::int64_t size : {1, 2, 3, 7, 100}) {
      CAPTURE(threads, size);
      CHECK_THAT(floats_of(model.embed(texts, {.batch_size = size})), HasBitsOf(embedded));
      CHECK_THAT(floats_of(other.embed(texts, {.batch_size = size})), HasBitsOf(pooled));
      CHECK_THAT(scores_of(size), HasBitsOf(scores));
    }
  }
  set_num_threads(1);
  for (const std::int64_t size : {0, -1}) {
    check_error({ErrorCode::config, "embed", "batch_size", {"at least 1"}}, [&] { model.embed(texts, {.batch_size = size}); });
    check_error({ErrorCode::config, "classify", "batch_size", {"at least 1"}}, [&] { model.classify(texts, {.batch_size = size}); });
  }
}

TEST_CASE("the scores of a regression are its logits", "[models]") {
  const Folder folder("tiny-bert");
  const std::vector<std::uint8_t> bytes = bytes_of(folder.path() / "config.json");
  json config = json::parse(bytes.begin(), bytes.end());
  config["problem_type"] = "regression";
  folder.write("config.json", config.dump());
  const TextModel model = TextModel::load(folder.path());
  const Array logits = floats_of(*model.forward(model.tokenize(kTexts)).logits);
  const auto scores = model.classify(kTexts);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    CHECK(std::is_sorted(scores[i].begin(), scores[i].end(), [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; }));
    REQUIRE(scores[i].size() == 3);
    for (const LabelScore& each : scores[i]) {
      const auto label = static_cast<std::size_t>(std::find(model.labels().begin(), model.labels().end(), each.label) - model.labels().begin());
      CHECK(each.score == logits.data.at(3 * i + label));
    }
  }
}

TEST_CASE("a text is truncated to the checkpoint's length unless the call specifies another one", "[models]") {
  const TextModel model = stock("tiny-bert-cls");
  const std::string text = "the film was good and the film was bad and the film was good and the film was bad";
  const Encoding encoding = model.tokenize({text, "a"});
  CHECK(encoding.input_ids.shape(1) == 16);
  CHECK(encoding.truncated == std::vector<bool>{true, false});
  CHECK(model.tokenize({text}, {.max_length = 64}).input_ids.shape(1) > 16);
  check_error({ErrorCode::out_of_range, "tokenize", "max_length", {"at most 64"}}, [&] { model.tokenize({text}, {.max_length = 65}); });
  check_error({ErrorCode::out_of_range, "tokenize", "", {"16"}}, [&] { model.tokenize({"a", text}, {.truncation = false}); });
  check_error({ErrorCode::out_of_range, "tokenize", "", {"16"}}, [&] { model.embed({text}, {.truncation = false}); });
  CHECK(floats_of(model.embed({text}, {.max_length = 8})).data != floats_of(model.embed({text})).data);
  check_error({ErrorCode::config, "embed", "pooling", {"mean, cls, max"}}, [&] { model.embed({"a"}, {.pooling = Pooling::none}); });
  check_error({ErrorCode::unsupported, "classify", "the checkpoint", {"one without a head"}}, [&] { model.classify({"a"}); });
  CHECK(model.embed({}).shape(0) == 0);
  const Array unit = floats_of(model.embed({"a film"})), raw = floats_of(model.embed({"a film"}, {.normalize = false}));
  double length = 0;
  for (const float x : unit.data) length += static_cast<double>(x) * static_cast<double>(x);
  CHECK(std::abs(length - 1) < 1e-6);
  CHECK(cosine(unit.data.data(), raw.data.data(), unit.data.size()) > 0.999999);
  CHECK(unit.data != raw.data);
}

std::string with_another_pre_tokenizer(const std::string& name) {
  const std::vector<std::uint8_t> bytes = bytes_of(testdata("models/" + name) / "tokenizer.json");
  json file = json::parse(bytes.begin(), bytes.end());
  file.at("pre_tokenizer").at("type") = "Other";
  return file.dump();
}

TEST_CASE("an unsupported tokenizer is an UNSUPPORTED error only if texts are tokenized", "[models]") {
  for (const char* name : {"tiny-roberta", "tiny-modernbert"}) {
    CAPTURE(name);
    const Folder other(name);
    other.write("tokenizer.json", with_another_pre_tokenizer(name));
    TextModel model = TextModel::load(other.path());
    check_error({ErrorCode::unsupported, "tokenizer.json", "pre_tokenizer.type", {"Other"}}, [&] { model.tokenize({"a"}); });
    check_error({ErrorCode::unsupported, "tokenizer.json", "pre_tokenizer.type", {}},
                [&] { model.fine_tune({{"a", "bad"}, {"b", "good"}}, {.labels = {"bad", "good"}}); });
    check_error({ErrorCode::unsupported, "tokenizer.json", "", {}}, [&] { model.embed({"a"}); });
    check_error({ErrorCode::unsupported, "tokenizer.json", "", {}}, [&] { model.token_to_id("a"); });
    const GoldenFile file = read_golden(testdata(std::string("models/") + name + ".safetensors"));
    const json entry = cases_of(file).at(0);
    const GoldenCase golden(file, entry);
    Encoding encoding;
    encoding.input_ids = xt::cast<std::int32_t>(
        xt::adapt(golden.tensor("input_ids").data, std::vector<std::size_t>{static_cast<std::size_t>(golden.tensor("input_ids").dims[0]),
                                                                            static_cast<std::size_t>(golden.tensor("input_ids").dims[1])}));
    const Array mask = golden.tensor("attention_mask");
    encoding.attention_mask = xt::xtensor<std::uint8_t, 2>(encoding.input_ids.shape());
    std::transform(mask.data.begin(), mask.data.end(), encoding.attention_mask.begin(), [](float flag) { return static_cast<std::uint8_t>(flag); });
    CHECK(difference(golden, "lastHiddenState", floats_of(model.forward(encoding).last_hidden_state)) == "");
  }
  const Folder folder("tiny-bert");
  folder.remove("tokenizer.json");
  check_error({ErrorCode::unsupported, "tokenize", "the checkpoint", {"tokenizer.json"}}, [&] { TextModel::load(folder.path()).tokenize({"a"}); });
  folder.write("tokenizer.json", "{\"model\":");
  check_error({ErrorCode::format, "tokenizer.json", "the file", {}}, [&] { TextModel::load(folder.path()); });
}

TEST_CASE("a forward needs only token ids, and all of its inputs are checked", "[models]") {
  const TextModel model = stock("tiny-bert");
  const Encoding encoding = model.tokenize({"the film was good"});
  Encoding bare;
  bare.input_ids = encoding.input_ids;
  const Array expected = floats_of(model.forward(encoding).last_hidden_state);
  CHECK_THAT(floats_of(model.forward(bare).last_hidden_state), HasBitsOf(expected));
  const auto with_ids = [](const std::array<std::size_t, 2>& shape, std::int32_t id) {
    Encoding some;
    some.input_ids = xt::xtensor<std::int32_t, 2>(shape, id);
    return some;
  };
  CHECK_NOTHROW(model.forward(with_ids({1, 64}, 338)));
  check_error({ErrorCode::out_of_range, "forward", "the length of input_ids", {"64", "65"}}, [&] { model.forward(with_ids({1, 65}, 1)); });
  for (const std::int32_t id : {-1, 339}) {
    Encoding wrong = with_ids({2, 3}, 5);
    wrong.input_ids(1, 1) = id;
    check_error({ErrorCode::out_of_range, "forward", "input_ids[4]", {"from 0 to 338", std::to_string(id)}}, [&] { model.forward(wrong); });
  }
  Encoding wrong = with_ids({2, 3}, 5);
  wrong.token_type_ids = xt::xtensor<std::int32_t, 2>({2, 3}, 2);
  check_error({ErrorCode::out_of_range, "forward", "token_type_ids[0]", {"from 0 to 1"}}, [&] { model.forward(wrong); });
  wrong.token_type_ids = xt::xtensor<std::int32_t, 2>({3, 2}, 0);
  check_error({ErrorCode::shape, "forward", "token_type_ids", {"(3,2)", "(2,3)"}}, [&] { model.forward(wrong); });
  wrong = with_ids({2, 3}, 5);
  wrong.attention_mask = xt::xtensor<std::uint8_t, 2>({2, 2}, 1);
  check_error({ErrorCode::shape, "forward", "attention_mask", {"(2,2)", "(2,3)"}}, [&] { model.forward(wrong); });
  CHECK(model.forward(with_ids({0, 3}, 0)).last_hidden_state.shape(0) == 0);
  CHECK_THAT(floats_of(model.forward(encoding).last_hidden_state), HasBitsOf(expected));
}

TEST_CASE("the embedding matrix is that of the checkpoint", "[models]") {
  const TextModel model = stock("tiny-bert");
  std::vector<FileTensor> tensors = read_tensors(read_checkpoint(testdata("models/tiny-bert")).weights);
  const std::vector<float> table = named(tensors, "bert.embeddings.word_embeddings.weight").values();
  const std::int64_t id = model.token_to_id("film").value();
  CHECK(model.id_to_token(id) == "film");
  CHECK_FALSE(model.token_to_id("no such token").has_value());
  CHECK_FALSE(model.id_to_token(339).has_value());
  CHECK(model.word_embeddings().row(id) == std::vector<float>(table.begin() + id * 32, table.begin() + (id + 1) * 32));
  TextModel moved = stock("tiny-bert-cls");
  moved = stock("tiny-bert");
  CHECK_THAT(floats_of(moved.embed({"a"})), HasBitsOf(floats_of(model.embed({"a"}))));
}

TEST_CASE("a folder that is not a checkpoint is refused with the reason", "[models]") {
  const std::string op = "TextModel::load";
  check_error({ErrorCode::format, op, "", {"config.json", "is missing"}}, [] { TextModel::load(testdata("no such folder")); });
  check_error({ErrorCode::format, op, "", {"is a file", "expected a folder"}}, [] { TextModel::load(testdata("words.json")); });
  const Folder empty;
  check_error({ErrorCode::format, op, "", {"config.json", "is missing"}}, [&] { TextModel::load(empty.path()); });

  const Folder folder("tiny-bert");
  folder.remove("model.safetensors");
  check_error({ErrorCode::format, op, "", {"model.safetensors"}}, [&] { TextModel::load(folder.path()); });
  folder.write("model.onnx", "a graph");
  check_error({ErrorCode::unsupported, op, "", {"model.onnx", "exported"}}, [&] { TextModel::load(folder.path()); });
  folder.write("pytorch_model.bin", "weights");
  check_error({ErrorCode::unsupported, op, "", {"pytorch_model.bin", "save_pretrained"}}, [&] { TextModel::load(folder.path()); });
  fs::copy(testdata("models/tiny-bert/model.safetensors"), folder.path() / "model.safetensors");
  CHECK(TextModel::load(folder.path()).labels().size() == 3);
  fs::resize_file(folder.path() / "model.safetensors", 1000);
  check_error({ErrorCode::format, "safetensors", "", {"longer than the file"}}, [&] { TextModel::load(folder.path()); });
  folder.remove("config.json");
  fs::create_directory(folder.path() / "config.json");
  check_error({ErrorCode::format, op, "", {"config.json"}}, [&] { TextModel::load(folder.path()); });
}

TEST_CASE("lowercasing by sentence-transformers is accepted if the tokenizer also does it", "[models]") {
  const Folder folder("tiny-distilbert");
  folder.write("modules.json", "[{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"}]");
  folder.write("sentence_bert_config.json", "{\"max_seq_length\":16,\"do_lower_case\":true}");
  const TextModel model = TextModel::load(folder.path());
  check_error({ErrorCode::unsupported, "sentence_bert_config.json", "do_lower_case", {"keeps capitals"}}, [&] { model.tokenize({"a"}); });
  folder.write("sentence_bert_config.json", "{\"max_seq_length\":16,\"do_lower_case\":false}");
  CHECK(TextModel::load(folder.path()).tokenize({"a"}).input_ids.shape(1) == 3);
}

std::int64_t utf16_units(const std::string& text, std::int64_t bytes) {
  std::int64_t units = 0;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    if ((byte & 0xC0U) != 0x80U) units += byte >= 0xF0 ? 2 : 1;
  }
  return units;
}

TEST_CASE("all-MiniLM-L6-v2 gives the embeddings of sentence-transformers and the intermediates of transformers", "[models][minilm]") {
  const fs::path folder = testdata("../models/all-MiniLM-L6-v2");
  if (!fs::exists(folder / "model.safetensors")) {
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL("models/all-MiniLM-L6-v2 is not there: tools/setup goldens");
    SKIP("models/all-MiniLM-L6-v2 is not there: tools/setup models fetches it");
  }
  const TextModel model = TextModel::load(folder);
  const GoldenFile file = read_golden(testdata("models/all-MiniLM-L6-v2.safetensors"));
  check_against_goldens(model, file);
  const json entry = cases_of(file).at(0);
  REQUIRE(entry.at("op") == "embed");
  const GoldenCase golden(file, entry);
  const Array expected = golden.tensor("expected.embedding");
  const std::vector<std::string> texts = entry.at("texts");
  REQUIRE(texts.size() == 31);
  const Array got = floats_of(model.embed(texts));
  REQUIRE(got.dims == expected.dims);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    const Encoding encoding = model.tokenize({texts[i]});
    const std::vector<std::int32_t> ids(encoding.input_ids.begin(), encoding.input_ids.end());
    CHECK(ids == entry.at("ids").at(i).get<std::vector<std::int32_t>>());
    CHECK(encoding.truncated.at(0) == entry.at("truncated").at(i).get<bool>());
    json offsets = json::array();
    for (const auto& each : encoding.offsets.at(0))
      offsets.push_back(each ? json::array({utf16_units(texts[i], each->first), utf16_units(texts[i], each->second)}) : json(nullptr));
    CHECK(offsets == entry.at("offsets").at(i));
    CHECK(cosine(got.data.data() + 384 * i, expected.data.data() + 384 * i, 384) >= 0.99999);
    const double allowed = 4 * entry.at("errors").at(i).get<double>() + 2e-6;
    double most = 0;
    for (std::size_t k = 384 * i; k < 384 * (i + 1); ++k)
      most = std::max(most, std::abs(static_cast<double>(got.data[k]) - static_cast<double>(expected.data[k])));
    CHECK(most <= allowed);
  }
}

TEST_CASE("the small sentiment model is as accurate as its files claim", "[models][sentiment]") {
  const TextModel model = stock("sentiment");
  for (const auto& [name, count] : {std::pair{"films", 2118U}, {"negations", 200U}}) {
    CAPTURE(name);
    const std::vector<std::uint8_t> bytes = bytes_of(testdata("sentiment/" + std::string(name) + ".json"));
    const json judged = json::parse(bytes.begin(), bytes.end());
    std::vector<std::string> texts;
    for (const json& each : judged.at("texts")) texts.push_back(each.at("text"));
    REQUIRE(texts.size() == count);
    std::size_t right = 0, close = 0;
    const auto scores = model.classify(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const json& each = judged.at("texts").at(i);
      const std::string& positive = model.labels().at(1);
      const double score = static_cast<double>(scores[i][0].label == positive ? scores[i][0].score : scores[i][1].score);
      right += (score > 0.5) == (each.at("label") == 1);
      close += std::abs(score - each.at("positive").get<double>()) <= 2e-5;
    }
    CHECK(close == texts.size());
    CHECK(std::abs(static_cast<double>(right) / static_cast<double>(texts.size()) - judged.at("accuracy").get<double>()) < 1e-9);
  }
}

TEST_CASE("a model is saved with its edits, and loaded with the same weights", "[models][int8]") {
  const Folder out;
  const std::string name = "classifier.bias";
  for (const Weights weights : {Weights::float32, Weights::int8}) {
    TextModel model = TextModel::load(testdata("models/tiny-bert"), {.weights = weights});
    CHECK(model.weights() == weights);
    AnyTensor bias = model.get_parameter(name);
    bias(1) = 7;
    model.load_state_dict({{name, bias}}, false);
    model.save_pretrained(out.path() / "new" / "folder");
    const TextModel again = TextModel::load(out.path() / "new" / "folder");
    CHECK(again.weights() == weights);
    CHECK(again.get_parameter(name)(1) == 7);
    CHECK_THAT(floats_of(again.embed(kTexts)), HasBitsOf(floats_of(model.embed(kTexts))));
    again.save_pretrained(out.path() / "new" / "folder", {.weights = FileWeights::float32});
    CHECK(TextModel::load(out.path() / "new" / "folder").weights() == Weights::float32);
  }
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    CHECK(fs::exists(out.path() / "new" / "folder" / file));
}

TEST_CASE("a model that cannot be saved in a format leaves no files behind", "[models][int8]") {
  const Folder out;
  TextModel model = stock("tiny-bert");
  AnyTensor bias = model.get_parameter("classifier.bias");
  bias(0) = 1e6F;
  model.load_state_dict({{"classifier.bias", bias}}, false);
  check_error({ErrorCode::out_of_range, "save_pretrained", "classifier.bias", {"65504"}},
              [&] { model.save_pretrained(out.path() / "halves", {.weights = FileWeights::float16}); });
  CHECK_FALSE(fs::exists(out.path() / "halves"));
  out.write("file", "no folder");
  check_error({ErrorCode::argument, "save_pretrained", "", {"config.json", "can be written"}}, [&] { model.save_pretrained(out.path() / "file"); });
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().lexically_relative(folder).string()] = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
  return files;
}

TEST_CASE("a full disk leaves the checkpoint in the target folder unchanged", "[models]") {
  const Folder folder("tiny-bert"), empty;
  const TextModel model = TextModel::load(folder.path());
  const auto before = contents(folder.path());
  {
    const LimitedFiles limited(fs::file_size(folder.path() / "model.safetensors") / 2);
    REQUIRE(fs::file_size(folder.path() / "tokenizer.json") < limited.size());
    const ExpectedError full{ErrorCode::argument, "save_pretrained", "path", {"model.safetensors", "File too large"}};
    check_error(full, [&] { model.save_pretrained(folder.path(), {.weights = FileWeights::float32}); });
    check_error(full, [&] { model.save_pretrained(empty.path() / "new" / "folder", {.weights = FileWeights::float32}); });
  }
  CHECK(contents(folder.path()) == before);
  CHECK(fs::is_empty(empty.path()));
  model.save_pretrained(folder.path(), {.weights = FileWeights::float32});
  CHECK(contents(folder.path()).size() == before.size());
}

TEST_CASE("a model is not saved through links, and not at all if one of its files cannot be written", "[models]") {
  const Folder folder("tiny-bert"), blobs;
  fs::rename(folder.path() / "config.json", blobs.path() / "blob");
  fs::create_symlink(blobs.path() / "blob", folder.path() / "config.json");
  const TextModel model = TextModel::load(folder.path());
  const auto before = contents(blobs.path());
  model.save_pretrained(folder.path(), {.weights = FileWeights::float16});
  CHECK(contents(blobs.path()) == before);
  CHECK(TextModel::load(folder.path()).embed(kTexts).shape(1) == 32);

  const auto saved = contents(folder.path());
  folder.remove("tokenizer.json");
  fs::create_directory(folder.path() / "tokenizer.json");
  check_error({ErrorCode::argument, "save_pretrained", "path", {"tokenizer.json", "directory"}},
              [&] { model.save_pretrained(folder.path(), {.weights = FileWeights::float32}); });
  auto left = saved;
  left.erase("tokenizer.json");
  CHECK(contents(folder.path()) == left);
}

TEST_CASE("a path that is not a regular file is refused without being opened", "[models]") {
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}) {
    INFO(name);
    const Folder folder("tiny-bert");
    folder.remove(name);
    REQUIRE(mkfifo((folder.path() / name).c_str(), 0600) == 0);
    check_error({ErrorCode::format, "TextModel::load", "", {name, "a regular file"}}, [&] { TextModel::load(folder.path()); });
    folder.remove(name);
    fs::create_symlink("/dev/zero", folder.path() / name);
    check_error({ErrorCode::format, "TextModel::load", "", {name, "a regular file"}}, [&] { TextModel::load(folder.path()); });
  }
  // The system ends a path at a zero byte.
  const std::string path = testdata("models/tiny-bert").string();
  check_error({ErrorCode::format, "TextModel::load", "", {"config.json"}}, [&] { TextModel::load(path + std::string("/config.json\0x", 14)); });
}

TEST_CASE("progress over many texts is reported, and the caller can stop it", "[models]") {
  const TextModel model = stock("tiny-bert");
  std::vector<std::pair<std::int64_t, std::int64_t>> heard;
  const auto hear = [&](std::int64_t done, std::int64_t total) { heard.emplace_back(done, total); };
  model.embed(kTexts, {.batch_size = 3, .on_progress = hear});
  model.classify({"a", "b"}, {.batch_size = 1, .on_progress = hear});
  CHECK(heard == std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 7}, {6, 7}, {7, 7}, {1, 2}, {2, 2}});
  heard.clear();
  const auto end = [&](std::int64_t done, std::int64_t) {
    heard.emplace_back(done, 0);
    throw std::domain_error("enough");
  };
  CHECK_THROWS_AS(model.embed(kTexts, {.batch_size = 3, .on_progress = end}), std::domain_error);
  CHECK(heard.size() == 1);
}

class Letters final : public TextTokenizer {
 public:
  explicit Letters(bool miscounts) : miscounts_(miscounts) {}
  EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const override {
    EncodedTexts encoding{.shape = {std::ssize(texts), *options.max_length},
                          .input_ids = {},
                          .token_type_ids = {},
                          .attention_mask = {},
                          .truncated = std::vector<bool>(texts.size(), false),
                          .tokens = {},
                          .offsets = {},
                          .sequence_ids = {}};
    const auto L = static_cast<std::size_t>(*options.max_length);
    for (const std::string& text : texts) {
      std::vector<std::string> tokens{"[CLS]"};
      TokenOffsets offsets(1);
      TokenSequences sequences(1);
      std::vector<std::int32_t> ids{0};
      for (std::size_t i = 0; i < text.size(); ++i) {
        tokens.emplace_back(1, text[i]);
        offsets.emplace_back(std::pair(i, i + 1));
        sequences.emplace_back(0);
        ids.push_back(text[i] - 'a' + 1);
      }
      std::vector<std::uint8_t> mask(ids.size(), 1);
      ids.resize(L - (miscounts_ ? 1 : 0));
      mask.resize(L);
      tokens.resize(L, "[PAD]");
      offsets.resize(L);
      sequences.resize(L);
      encoding.input_ids.insert(encoding.input_ids.end(), ids.begin(), ids.end());
      encoding.token_type_ids.resize(encoding.token_type_ids.size() + L);
      encoding.attention_mask.insert(encoding.attention_mask.end(), mask.begin(), mask.end());
      encoding.tokens.push_back(tokens);
      encoding.offsets.push_back(offsets);
      encoding.sequence_ids.push_back(sequences);
    }
    return encoding;
  }
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>&, const TokenizeOptions&) const override {
    throw std::domain_error("no pairs");
  }
  std::optional<std::int64_t> token_to_id(const std::string& token) const override { return token[0] - 'a' + 1; }
  std::optional<std::string> id_to_token(std::int64_t) const override { return std::nullopt; }
  std::int64_t pad_id() const override { return 7; }

 private:
  bool miscounts_;
};

TEST_CASE("the caller's tokenizer is used if the model's own one is unsupported", "[models]") {
  std::vector<std::string> classes;
  bool miscounts = false;
  const TextModelOptions options{
      .tokenizer = [&](std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> config, std::string_view of_class) {
        CHECK(json::parse(tokenizer_json).at("model").at("type") == "BPE");
        CHECK(config.has_value());
        classes.emplace_back(of_class);
        return std::make_shared<const Letters>(miscounts);
      }};
  const Folder folder("tiny-roberta");
  folder.write("tokenizer.json", with_another_pre_tokenizer("tiny-roberta"));
  const TextModel model = TextModel::load(folder.path(), options);
  CHECK(classes == std::vector<std::string>{""});
  for (const char* own : {"tiny-bert", "tiny-roberta"}) CHECK(TextModel::load(testdata("models") / own, options).tokenize({"a"}).tokens[0][1] == "a");
  CHECK(classes.size() == 1);

  const Encoding encoding = model.tokenize({"ab"}, {.max_length = 5});
  CHECK(encoding.tokens[0] == std::vector<std::string>{"[CLS]", "a", "b", "[PAD]", "[PAD]"});
  CHECK(model.token_to_id("c") == 3);
  Encoding ids;
  ids.input_ids = xt::xtensor<std::int32_t, 2>{{0, 1, 2, 0, 0}};
  ids.attention_mask = xt::xtensor<std::uint8_t, 2>{{1, 1, 1, 0, 0}};
  CHECK_THAT(floats_of(model.forward(encoding).last_hidden_state), HasBitsOf(floats_of(model.forward(ids).last_hidden_state)));
  CHECK(model.embed({"ab", "c"}, {.max_length = 5}).shape(0) == 2);
  CHECK(model.attribute("ab", {.method = AttributionMethod::leave_one_out, .target = 0}).scores.size() ==
        static_cast<std::size_t>(model.max_length()));
  CHECK_THROWS_AS(model.tokenize_pairs({{"a", "b"}}), std::domain_error);
  miscounts = true;
  const TextModel wrong = TextModel::load(folder.path(), options);
  check_error({ErrorCode::argument, "tokenize", "the result of your tokenizer", {"(1,L)"}}, [&] { wrong.embed({"ab"}); });
}

TEST_CASE("each token of a pair reports its text", "[models]") {
  const Encoding encoding = stock("tiny-bert").tokenize_pairs({{"a film", "b"}, {"", "a b"}});
  const TokenSequences::value_type none;
  CHECK(encoding.sequence_ids == std::vector<TokenSequences>{{none, 0, 0, none, 1, none}, {none, none, 1, 1, none, none}});
}

TEST_CASE("a patch may be a view of memory with gaps between rows", "[models]") {
  const TextModel model = stock("tiny-bert");
  const Encoding encoding = model.tokenize({"a film"});
  const auto merged = model.trace_layer(encoding, 1, {TraceName::merged}).at(TraceName::merged);
  const Array packed = floats_of(merged);
  const std::int64_t L = packed.dims[1], E = packed.dims[2];
  std::vector<float> apart(static_cast<std::size_t>(L * (E + 3)), 9);
  for (std::int64_t i = 0; i < L; ++i) std::copy_n(packed.data.data() + i * E, E, apart.data() + i * (E + 3));
  const TensorCopy copy(TensorView(apart.data(), {1, L, E}, {L * (E + 3), E + 3, 1}));
  apart.assign(apart.size(), 0);
  const auto plain = model.forward(encoding), patched = model.forward(encoding, {.patches = {LayerPatch{.layer = 1, .merged = copy}}});
  CHECK_THAT(floats_of(*patched.logits), HasBitsOf(floats_of(*plain.logits)));
}

}  // namespace models_text_model_test
}  // namespace attn::test
