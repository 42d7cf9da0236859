#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "attn/io/safetensors.hpp"
#include "attn/models/text_model.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_folders_test {

using nlohmann::json;
namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("attn-folders-" + std::to_string(std::random_device()()))) { fs::create_directories(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void copy(const std::string& checkpoint, const std::string& to = "") const {
    fs::copy(testdata("models/" + checkpoint), path_ / to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  fs::path path_;
};

void change(const Folder& folder, const json& files) {
  for (const auto& [name, patch] : files.items()) {
    const fs::path path = folder.path() / name;
    if (patch.is_null()) {
      fs::remove(path);
      continue;
    }
    json value;
    if (fs::exists(path)) value = json::parse(std::ifstream(path));
    value.merge_patch(patch);
    folder.write(name, value.dump());
  }
}

TEST_CASE("the small files of a folder have the meaning that they have in sentence-transformers and transformers", "[models]") {
  const GoldenFile file = read_golden(testdata("models/folders.safetensors"));
  int seen = 0;
  for (const json& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    INFO(golden.name());
    const Folder folder;
    folder.copy(entry.at("checkpoint"), entry.value("base", ""));
    change(folder, entry.at("files"));
    for (const char* const dense : {"2_Dense", "3_Dense"}) {
      StateDict state;
      for (const char* name : {"linear.weight", "linear.bias"})
        if (const std::string key = std::string(dense) + "/" + name; file.tensors.contains(golden.name() + "/" + key)) {
          const Array array = golden.tensor(key);
          AnyTensor tensor = detail::empty_any(Shape(array.dims));
          std::copy(array.data.begin(), array.data.end(), tensor.begin());
          state.emplace(name, std::move(tensor));
        }
      if (state.empty()) continue;
      const std::vector<std::uint8_t> bytes = write_safetensors(state);
      folder.write(std::string(dense) + "/model.safetensors", std::string(bytes.begin(), bytes.end()));
    }
    const TextModel model = TextModel::load(folder.path());
    const json &texts = entry.at("texts"), &given = entry.at("options");
    const bool pairs = texts.at(0).is_array();
    for (const auto& [what, error] : entry.at("expected").items()) {
      Array got;
      if (what == "embedding") {
        EmbedOptions options;
        if (given.contains("prompt")) options.prompt = given.at("prompt");
        if (given.contains("promptName")) options.prompt_name = given.at("promptName");
        if (given.contains("normalize")) options.normalize = given.at("normalize");
        for (const std::int64_t size : {1, 32}) {
          options.batch_size = size;
          got = floats_of(model.embed(texts, options));
          CHECK(difference(golden, what, got) == "");
        }
      } else if (what == "logits") {
        got = floats_of(*model.forward(pairs ? model.tokenize_pairs(texts) : model.tokenize(texts)).logits);
        CHECK(difference(golden, what, got) == "");
      } else {
        got.dims = golden.tensor("expected." + what).dims;
        for (const auto& of_text : model.classify_pairs(texts))
          for (const std::string& label : model.labels())
            for (const LabelScore& each : of_text)
              if (each.label == label) got.data.push_back(each.score);
        CHECK(difference(golden, what, got) == "");
      }
    }
    ++seen;
  }
  CHECK(seen == 50);
}

TEST_CASE("any empty file is a FORMAT error", "[models]") {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json", "modules.json", "1_Pooling/config.json",
                           "sentence_bert_config.json", "config_sentence_transformers.json"}) {
    INFO(name);
    const Folder folder;
    folder.copy("tiny-bert-cls");
    folder.write(name, "");
    try {
      TextModel::load(folder.path());
      FAIL_CHECK("it was loaded");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::format);
    }
  }
  check_error({ErrorCode::format, "tokenizer_config.json", "", {}},
              [] { Tokenizer::parse(bytes_of(testdata("models/tiny-bert/tokenizer.json")), std::span<const std::uint8_t>()); });
}

TEST_CASE("paths of modules may begin with ./ and end with a slash", "[models]") {
  const std::vector<std::string> texts{"A happy person smiles."};
  const Folder folder;
  folder.copy("tiny-bert-cls");
  const Array expected = floats_of(TextModel::load(folder.path()).embed(texts));
  const json modules = json::parse(std::ifstream(folder.path() / "modules.json"));
  for (const char* const pooling : {"1_Pooling/", "./1_Pooling", "./1_Pooling/"})
    for (const char* const own : {"", ".", "./"}) {
      INFO(own << ", " << pooling);
      json changed = modules;
      changed[0]["path"] = own;
      changed[1]["path"] = pooling;
      folder.write("modules.json", changed.dump());
      CHECK_THAT(floats_of(TextModel::load(folder.path()).embed(texts)), HasBitsOf(expected));
    }
  for (const char* const path : {"/", "//", "./../1_Pooling", "1_Pooling//", "././1_Pooling"}) {
    json changed = modules;
    changed[1]["path"] = path;
    folder.write("modules.json", changed.dump());
    check_error({ErrorCode::unsupported, "modules.json", "the path of Pooling", {"the name of a folder"}}, [&] { TextModel::load(folder.path()); });
  }
}

TEST_CASE("rank prepends the default prompt to the query", "[models]") {
  const Folder folder;
  TextModel model = TextModel::load(testdata("models/tiny-bert-cls"));
  model.fine_tune({{.text = "It was good", .label = 1.0}, {.text = "It was bad", .label = 0.0}}, {.epochs = 1, .labels = {"relevant"}, .seed = 5});
  model.save_pretrained(folder.path());
  const std::vector<std::string> documents{"It was bad.", "The film was good!"};
  const auto scores = [&](const std::string& query) {
    std::vector<float> all;
    for (const RankedDocument& each : TextModel::load(folder.path()).rank(query, documents)) all.push_back(each.score);
    return all;
  };
  folder.write("config_sentence_transformers.json", "{}");
  const std::vector<float> expected = scores("the film was good"), other = scores("was good");
  folder.write("config_sentence_transformers.json", R"({"default_prompt_name":"search","prompts":{"search":"the film "}})");
  CHECK(scores("was good") == expected);
  CHECK(expected != other);
}

TEST_CASE("tokens of files other than tokenizer.json are loaded, and save_pretrained writes those files", "[models]") {
  const Folder folder, other;
  folder.copy("tiny-bert");
  folder.write("special_tokens_map.json", R"({"ent_token":"[YY]"})");
  folder.write("added_tokens.json", R"({"good":289,"bad bad":500})");
  const auto tokens = [](const TextModel& model) { return model.tokenize({"bad bad[YY]"}).tokens.at(0); };
  const std::vector<std::string> expected{"[CLS]", "bad bad", "[YY]", "[SEP]"};
  const TextModel model = TextModel::load(folder.path());
  CHECK(tokens(model) == expected);
  model.save_pretrained(other.path());
  CHECK(tokens(TextModel::load(other.path())) == expected);
  change(folder, {{"tokenizer_config.json", {{"added_tokens_decoder", json::object()}}}});
  CHECK(tokens(TextModel::load(folder.path())) != expected);
}

TEST_CASE("a sentence_bert_config.json that contains null is ignored, as in sentence-transformers", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  folder.write("sentence_bert_config.json", "null");
  CHECK(TextModel::load(folder.path()).max_length() == 64);
  folder.write("sentence_bert_config.json", "[]");
  check_error({ErrorCode::format, "sentence_bert_config.json", "the file", {"an object", "an array"}}, [&] { TextModel::load(folder.path()); });
}

TEST_CASE("sentence_bert_config.json: another output is refused, and tokenizer arguments cause a note", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  for (const char* const output : {"token_embeddings", "scores"}) {
    folder.write("sentence_bert_config.json", json{{"module_output_name", output}, {"processing_kwargs", json::object()}}.dump());
    CHECK(TextModel::load(folder.path()).notes().empty());
  }
  folder.write("sentence_bert_config.json", R"({"module_output_name":"sentence_embedding"})");
  check_error({ErrorCode::unsupported, "sentence_bert_config.json", "module_output_name", {"token_embeddings or scores", "sentence_embedding"}},
              [&] { TextModel::load(folder.path()); });
  folder.write("sentence_bert_config.json", R"({"processing_kwargs":{"text":{"truncation":false}}})");
  CHECK(TextModel::load(folder.path()).notes() == std::vector<std::string>{"sentence_bert_config.json: processing_kwargs is not used"});
}

TEST_CASE("tokenizer_config.json: max_len applies if there is no model_max_length", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert");
  change(folder, {{"tokenizer_config.json", {{"model_max_length", nullptr}, {"max_len", 20}}}});
  CHECK(TextModel::load(folder.path()).max_length() == 20);
  change(folder, {{"tokenizer_config.json", {{"model_max_length", 30}}}});
  CHECK(TextModel::load(folder.path()).max_length() == 30);
}

TEST_CASE("layers, heads and prompts are those that the files specify", "[models]") {
  const TextModel plain = TextModel::load(testdata("models/tiny-bert"));
  CHECK(plain.num_layers() == std::ssize(*plain.forward(plain.tokenize({"a"}), {.output_attentions = true}).attentions));
  CHECK(plain.num_heads() == 4);
  CHECK(plain.prompts() == std::map<std::string, std::string>{{"document", ""}, {"query", ""}});
  const Folder folder;
  folder.copy("tiny-albert-mlm");
  CHECK(TextModel::load(folder.path()).num_layers() == 8);  // groups of two layers, four passes
  folder.write("modules.json", R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"}])");
  folder.write("config_sentence_transformers.json", R"({"prompts":{"query":"find: ","passage":"text: "}})");
  const std::map<std::string, std::string> expected{{"document", ""}, {"passage", "text: "}, {"query", "find: "}};
  CHECK(TextModel::load(folder.path()).prompts() == expected);
}

TEST_CASE("a small file is found by its path and relative to config.json", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert", "0_Transformer");
  folder.write("modules.json", R"([{"idx":0,"name":"0","path":"0_Transformer","type":"sentence_transformers.models.Transformer"}])");
  const TextModel model = TextModel::load(folder.path());
  const auto* const config = detail::find_small_file(model, "config.json");
  REQUIRE(config != nullptr);
  CHECK(config == detail::find_small_file(model, "0_Transformer/config.json"));
  CHECK(json::parse(*config) == json::parse(std::ifstream(folder.path() / "0_Transformer/config.json")));
  CHECK(detail::find_small_file(model, "modules.json") != nullptr);
  CHECK(detail::find_small_file(model, "model.safetensors") == nullptr);
}

TEST_CASE("errors of files have the number of the system", "[models][errors]") {
  const auto number = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      const auto found = error.detail().find("errno");
      return found == error.detail().end() ? 0 : static_cast<int>(std::get<double>(found->second));
    }
    return -1;
  };
  const Folder folder;
  CHECK(number([&] { TextModel::load(folder.path()); }) == ENOENT);
  CHECK(number([&] { read_safetensors(folder.path() / "none"); }) == ENOENT);
  CHECK(number([&] { read_safetensors(folder.path()); }) == EISDIR);
  CHECK(number([&] { read_safetensors("/dev/null"); }) == EINVAL);
  folder.copy("tiny-bert");
  CHECK(number([&] { TextModel::load(folder.path()).save_pretrained(folder.path() / "config.json" / "below"); }) == ENOTDIR);
  folder.write("config.json", "{");
  CHECK(number([&] { TextModel::load(folder.path()); }) == 0);
}

TEST_CASE("an invalid truncate_dim is a FORMAT error, and one above the width keeps everything", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  for (const char* wrong : {"0", "-3", "1.5", "\"8\""}) {
    INFO(wrong);
    folder.write("config_sentence_transformers.json", std::string("{\"truncate_dim\":") + wrong + "}");
    CHECK_THROWS_AS(TextModel::load(folder.path()), Error);
  }
  folder.write("config_sentence_transformers.json", "{\"truncate_dim\":99}");
  CHECK(TextModel::load(folder.path()).check_embed(1, {})[1] == 32);
}

TEST_CASE("a tokenizer that pads on the left is refused when a text is tokenized", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert");
  folder.write("tokenizer_config.json", "{\"padding_side\":\"left\"}");
  const TextModel model = TextModel::load(folder.path());
  check_error({ErrorCode::unsupported, "tokenizer_config.json", "padding_side", {"right", "left"}}, [&] { model.tokenize({"a"}); });
}

TEST_CASE("a pooling in the call overrides the one in the checkpoint", "[models]") {
  const std::vector<std::string> texts{"A happy person smiles.", "", "Was it bad?"};
  for (const auto& [mode, pooling] : {std::pair{"lasttoken", Pooling::lasttoken},
                                      {"weightedmean_tokens", Pooling::weightedmean},
                                      {"mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
                                      {"max_tokens", Pooling::max}}) {
    INFO(mode);
    const Folder folder;
    folder.copy("tiny-bert-cls");
    const Array got = floats_of(TextModel::load(folder.path()).embed(texts, {.pooling = pooling}));
    change(folder, {{"1_Pooling/config.json", {{"pooling_mode_cls_token", false}, {std::string("pooling_mode_") + mode, true}}}});
    CHECK_THAT(got, HasBitsOf(floats_of(TextModel::load(folder.path()).embed(texts))));
  }
}

TEST_CASE("unknown prompts are refused with the list of known ones", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  const auto config = [&](const json& value) { folder.write("config_sentence_transformers.json", value.dump()); };
  config({{"prompts", {{"topic", "on "}}}});
  const TextModel model = TextModel::load(folder.path());
  check_error({ErrorCode::config, "embed", "prompt_name", {"query, document, topic", "topics"}},
              [&] { model.embed({"a"}, {.prompt_name = "topics"}); });
  const std::string file = "config_sentence_transformers.json";
  config({{"prompts", json::object()}, {"default_prompt_name", "topic"}});
  check_error({ErrorCode::config, file, "default_prompt_name", {"topic"}}, [&] { TextModel::load(folder.path()); });
  config({{"prompts", {{"topic", 5}}}});
  check_error({ErrorCode::config, file, "prompts.topic", {"a string"}}, [&] { TextModel::load(folder.path()); });
  config({{"prompts", "topic"}});
  check_error({ErrorCode::config, file, "prompts", {"an object"}}, [&] { TextModel::load(folder.path()); });
}

void without_special_tokens(const Folder& folder) { change(folder, {{"tokenizer.json", {{"post_processor", nullptr}}}}); }

TEST_CASE("a prompt without tokens does not change the pooling", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  without_special_tokens(folder);
  const std::vector<std::string> texts{"A happy person smiles.", "", "Was it bad?"};
  const Array expected = floats_of(TextModel::load(folder.path()).embed(texts));
  change(folder, {{"1_Pooling/config.json", {{"include_prompt", false}}},
                  {"config_sentence_transformers.json", {{"prompts", {{"q", " "}}}, {"default_prompt_name", "q"}}}});
  CHECK_THAT(floats_of(TextModel::load(folder.path()).embed(texts)), HasBitsOf(expected));
}

TEST_CASE("without special tokens the pooling leaves out the prompt's tokens only", "[models]") {
  const Folder folder;
  folder.copy("tiny-bert-cls");
  change(folder, {{"1_Pooling/config.json", {{"include_prompt", false}}}});
  const std::vector<std::string> texts{"good film", "bad"};
  const Array got = floats_of(TextModel::load(folder.path()).embed(texts, {.prompt = "the ", .add_special_tokens = false}));
  without_special_tokens(folder);
  CHECK_THAT(got, HasBitsOf(floats_of(TextModel::load(folder.path()).embed(texts, {.prompt = "the "}))));
}

TEST_CASE("every task accepts a text without tokens", "[models]") {
  const std::pair<const char*, std::function<void(const TextModel&, const std::string&)>> tasks[] = {
      {"tiny-bert-cls", [](const TextModel& model, const std::string& text) { CHECK(model.embed({text, "a b"}).shape(1) == 32); }},
      {"tiny-bert-cls",
       [](const TextModel& model, const std::string& text) {
         check_error({ErrorCode::argument, "attribute", "text", {"more tokens"}},
                     [&] { model.attribute(text, {.method = AttributionMethod::attention_rollout}); });
       }},
      {"tiny-bert", [](const TextModel& model, const std::string& text) { CHECK(model.classify({text})[0].size() == 3); }},
      {"tiny-bert",
       [](const TextModel& model, const std::string& text) {
         check_error({ErrorCode::argument, "attribute", "text", {"more tokens"}}, [&] { model.attribute(text); });
       }},
      {"tiny-bert-ner", [](const TextModel& model, const std::string& text) { CHECK(model.classify_tokens({text})[0].empty()); }},
      {"tiny-bert-mlm",
       [](const TextModel& model, const std::string& text) {
         check_error({ErrorCode::argument, "fill_mask", "text", {"Insert [MASK]"}}, [&] { model.fill_mask(text); });
         check_error({ErrorCode::argument, "fill_mask", "targets[0]", {"a token"}}, [&] { model.fill_mask("[MASK]", {.targets = {text}}); });
       }},
      {"tiny-bert-qa",
       [](const TextModel& model, const std::string& text) {
         CHECK(model.answer("who", " ").empty());
         CHECK_NOTHROW(model.answer(" ", text + " "));
         CHECK(model.answer(" ", " ", {.allow_empty = true}).size() == 1);
       }},
  };
  for (const auto& [name, task] : tasks) {
    INFO(name);
    const Folder folder;
    folder.copy(name);
    without_special_tokens(folder);
    const TextModel model = TextModel::load(folder.path());
    for (const char* text : {"", " ", "\t"}) task(model, text);
  }
}

}  // namespace models_folders_test
}  // namespace attn::test
