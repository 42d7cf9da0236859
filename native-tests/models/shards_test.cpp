#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "attn/context.hpp"
#include "attn/models/text_model.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_shards_test {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kOp = "TextModel::load";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard_name(std::size_t i) { return "model-0000" + std::to_string(i + 1) + "-of-00003.safetensors"; }

class Sharded {
 public:
  explicit Sharded(const std::string& name) : path_(fs::temp_directory_path() / ("attn-shards-" + std::to_string(std::random_device()()))) {
    fs::copy(testdata("models/" + name), path_, fs::copy_options::recursive);
    std::size_t i = 0;
    for (FileTensor& tensor : read_tensors(bytes_of(path_ / "model.safetensors"))) {
      index["weight_map"][tensor.name] = shard_name(i % 3);
      shards[i++ % 3].push_back(std::move(tensor));
    }
    fs::remove(path_ / "model.safetensors");
    for (i = 0; i < 3; ++i) write(i);
    write_index(index.dump());
  }
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;
  ~Sharded() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void write_index(const std::string& text) const { std::ofstream(path_ / kIndex, std::ios::binary) << text; }
  void write(std::size_t i) const {
    const std::vector<std::uint8_t> bytes = write_tensors(shards[i]);
    std::ofstream(path_ / shard_name(i), std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  void refuses(ErrorCode code, const std::string& op, const std::vector<std::string>& words) const {
    check_error({code, op, "", words}, [&] { TextModel::load(path_); });
  }

  json index = {{"metadata", {{"total_size", 1}}}};
  std::array<std::vector<FileTensor>, 3> shards;

 private:
  fs::path path_;
};

Array logits_of(const TextModel& model) { return floats_of(*model.forward(model.tokenize({"The old man", "and"})).logits); }

TEST_CASE("a checkpoint in several files gives the bits of the same checkpoint in one file", "[models]") {
  for (const std::string name : {"tiny-gpt2", "tiny-llama-3"}) {
    CAPTURE(name);
    const TextModel model = TextModel::load(Sharded(name).path());
    CHECK_THAT(logits_of(model), HasBitsOf(logits_of(TextModel::load(testdata("models/" + name)))));
    CHECK(model.notes().empty());
  }
  const Sharded sharded("tiny-llama");
  CHECK(TextModel::load(sharded.path(), {.weights = Weights::int8}).weights() == Weights::int8);
  fs::copy(testdata("models/tiny-llama/model.safetensors"), sharded.path() / "model.safetensors");
  sharded.write_index("not read if there is one file");
  CHECK_NOTHROW(TextModel::load(sharded.path()));
}

TEST_CASE("a checkpoint in several files needs no more memory than in one file", "[models]") {
  const Sharded sharded("tiny-llama");
  const auto loads = [](const fs::path& path, std::uint64_t limit) {
    const Context context({.memory_limit = limit});
    const Context::Scope scope(context);
    try {
      TextModel::load(path, {.weights = Weights::int8});
      return true;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::memory);
      return false;
    }
  };
  std::size_t loaded = 0;
  for (std::uint64_t limit = 1000; limit < 1'000'000; limit += limit / 4) {
    const bool expected = loads(testdata("models/tiny-llama"), limit);
    CHECK(loads(sharded.path(), limit) == expected);
    loaded += expected ? 1 : 0;
  }
  CHECK(loaded > 0);
}

TEST_CASE("an index that is no index is refused", "[models]") {
  const Sharded sharded("tiny-llama");
  for (const std::string text : {"", "{", "[1]\x01"}) {
    sharded.write_index(text);
    sharded.refuses(ErrorCode::format, kIndex, {});
  }
  for (const std::string text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
    sharded.write_index(text);
    sharded.refuses(ErrorCode::format, kOp, {kIndex, "weight_map"});
  }
  for (const std::string name : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".hidden", "", "a\\b", "C:x"}) {
    json index = sharded.index;
    index["weight_map"]["lm_head.weight"] = name;
    sharded.write_index(index.dump());
    sharded.refuses(ErrorCode::format, kOp, {kIndex, "lm_head.weight", "same folder"});
  }
  json index = sharded.index;
  index["weight_map"]["lm_head.weight"] = 3;
  sharded.write_index(index.dump());
  sharded.refuses(ErrorCode::format, kOp, {kIndex, "lm_head.weight", "number"});
  fs::resize_file(sharded.path() / kIndex, (16 << 20) + 1);
  sharded.refuses(ErrorCode::format, kOp, {kIndex, "at most"});
  fs::remove(sharded.path() / kIndex);
  sharded.refuses(ErrorCode::format, kOp, {"model.safetensors"});
}

TEST_CASE("a missing or damaged file of several, and tensors in the wrong file, are named", "[models]") {
  Sharded sharded("tiny-llama");
  const std::string moved = sharded.shards[0][0].name;
  sharded.shards[1].push_back(sharded.shards[0][0]);
  sharded.write(1);
  sharded.refuses(ErrorCode::format, kOp, {shard_name(1), moved, shard_name(0), "one file"});
  sharded.shards[0].erase(sharded.shards[0].begin());
  sharded.write(0);
  sharded.refuses(ErrorCode::format, kOp, {shard_name(0), moved, "has no"});
  sharded.index["weight_map"][moved] = shard_name(1);
  sharded.write_index(sharded.index.dump());
  CHECK_NOTHROW(TextModel::load(sharded.path()));
  sharded.shards[1].pop_back();
  sharded.write(1);
  sharded.index["weight_map"].erase(moved);
  sharded.write_index(sharded.index.dump());
  sharded.refuses(ErrorCode::mismatch, "model.safetensors", {moved});
  fs::resize_file(sharded.path() / shard_name(2), 100);
  sharded.refuses(ErrorCode::format, "safetensors", {});
  fs::resize_file(sharded.path() / shard_name(2), 3);
  sharded.refuses(ErrorCode::format, "safetensors", {});
  fs::remove(sharded.path() / shard_name(2));
  sharded.refuses(ErrorCode::format, kOp, {shard_name(2), "is missing"});
}

}  // namespace models_shards_test
}  // namespace attn::test
