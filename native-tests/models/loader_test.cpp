#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>

#include "attn/io/safetensors.hpp"
#include "models/edit.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_loader_test {

using nlohmann::json;
using Names = std::vector<std::string>;
using Tensors = std::vector<FileTensor>;

Checkpoint stock(const std::string& name) { return read_checkpoint(testdata("models/" + name)); }
const Checkpoint& bert() {
  static const Checkpoint checkpoint = stock("tiny-bert");
  return checkpoint;
}

FileTensor zeros(const std::string& name, const std::string& dtype, const std::vector<std::int64_t>& shape, std::size_t size) {
  std::size_t bytes = size;
  for (const std::int64_t dim : shape) bytes *= static_cast<std::size_t>(dim);
  return {name, dtype, shape, std::vector<std::uint8_t>(bytes, 0)};
}

Error error_of(const Checkpoint& checkpoint) {
  try {
    load(checkpoint);
  } catch (const Error& error) {
    return error;
  }
  FAIL("the checkpoint was loaded");
  throw std::logic_error("not reached");
}

TEST_CASE("one MISMATCH error lists missing, unexpected and mis-shaped tensors", "[models]") {
  const Checkpoint wrong = with_tensors(bert(), [](Tensors& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name == "bert.encoder.layer.1.output.dense.bias" || t.name == "classifier.weight"; });
    FileTensor& words = named(tensors, "bert.embeddings.word_embeddings.weight");
    words.shape[0] -= 1;
    words.bytes.resize(words.bytes.size() - 32 * 4);
    tensors.push_back(zeros("bert.encoder.layer.2.output.dense.bias", "F32", {32}, 4));
    tensors.push_back(zeros("lora.a", "F16", {4}, 2));
  });
  const Error error = error_of(wrong);
  CHECK(error.code() == ErrorCode::mismatch);
  const auto list = [&](const char* name) { return std::get<Names>(error.detail().at(name)); };
  CHECK(list("missing") == Names{"bert.encoder.layer.1.output.dense.bias", "classifier.weight"});
  CHECK(list("unexpected") == Names{"bert.encoder.layer.2.output.dense.bias", "lora.a"});
  CHECK(list("mis_shaped") == Names{"bert.embeddings.word_embeddings.weight has shape (338,32), expected (339,32)"});
  const std::string message = error.what();
  CHECK(message.starts_with("model.safetensors: "));
  for (const char* name : {"bert.encoder.layer.1.output.dense.bias", "classifier.weight", "lora.a", "(338,32)"})
    CHECK(message.find(name) != std::string::npos);
}

TEST_CASE("weights that do not fit config.json are reported before memory is allocated", "[models]") {
  // A load that continued would wait for more bytes.
  const Checkpoint wrong = with_member(bert(), "hidden_size", 64);
  detail::ModelLoader loader(wrong.files());
  std::uint64_t size = 0;
  std::memcpy(&size, wrong.weights.data(), sizeof size);
  const std::span<const std::uint8_t> header = std::span(wrong.weights).first(8 + static_cast<std::size_t>(size));
  loader.write(header.first(header.size() - 1));
  check_error({ErrorCode::mismatch, "model.safetensors", "", {"(339,32), expected (339,64)"}}, [&] { loader.write(header.last(1)); });
}

TEST_CASE("a failed load stays failed, whatever is called", "[models]") {
  const Checkpoint wrong = with_member(bert(), "hidden_size", 64);
  const ExpectedError mismatch{ErrorCode::mismatch, "model.safetensors", "", {"(339,32), expected (339,64)"}};
  detail::ModelLoader loader(wrong.files());
  check_error(mismatch, [&] { loader.write(wrong.weights); });
  check_error(mismatch, [&] { loader.write(std::span(wrong.weights).first(1000)); });
  check_error(mismatch, [&] { loader.write({}); });
  check_error({ErrorCode::format, "safetensors", "the file", {"the file ends after"}}, [&] { loader.finish(); });

  const std::vector<std::uint8_t> nothing = write_tensors({});
  detail::ModelLoader empty(wrong.files());
  check_error({ErrorCode::mismatch, "model.safetensors", "", {"missing"}}, [&] { empty.write(nothing); });
  check_error({ErrorCode::mismatch, "model.safetensors", "", {"missing"}}, [&] { empty.finish(); });
}

TEST_CASE("a fused tensor with only two of its three parts is refused", "[models]") {
  const Checkpoint wrong = with_tensors(stock("tiny-modernbert"), [](Tensors& tensors) {
    FileTensor& fused = named(tensors, "model.layers.1.attn.Wqkv.weight");
    fused.shape[0] = 64;
    fused.bytes.resize(64 * 32 * 4);
  });
  const Error error = error_of(wrong);
  CHECK(error.code() == ErrorCode::mismatch);
  CHECK(std::get<Names>(error.detail().at("mis_shaped")) == Names{"model.layers.1.attn.Wqkv.weight has shape (64,32), expected (96,32)"});
}

TEST_CASE("tensors of other heads and integers are ignored", "[models]") {
  const std::pair<const char*, Names> families[] = {
      {"tiny-bert-cls", {"cls.predictions.bias", "pooler.dense.weight", "bert.pooler.dense.weight"}},
      {"tiny-distilbert", {"vocab_transform.weight", "vocab_layer_norm.bias", "vocab_projector.bias"}},
      {"tiny-roberta", {"lm_head.bias", "roberta.pooler.dense.bias"}},
      {"tiny-mpnet", {"lm_head.dense.weight", "mpnet.pooler.dense.bias"}},
      {"tiny-modernbert", {"decoder.bias"}},
  };
  for (const auto& [family, names] : families) {
    INFO(family);
    const Checkpoint checkpoint = stock(family);
    const Array expected = run(checkpoint);
    const Checkpoint more = with_tensors(checkpoint, [&, &ignored = names](Tensors& tensors) {
      for (const std::string& name : ignored) tensors.insert(tensors.begin() + 3, zeros(name, "F32", {3, 5}, 4));
      tensors.insert(tensors.begin() + 1, zeros("embeddings.position_ids", "I64", {1, 64}, 8));
      tensors.push_back(zeros("quantiles", "U8", {7}, 1));
    });
    CHECK_THAT(run(more), HasBitsOf(expected));
  }
}

TEST_CASE("tensors that the model does not use are skipped and listed in a note", "[models]") {
  CHECK(load(bert())->config().notes.empty());
  for (const json& architectures : {json{"BertModel"}, json()}) {
    const auto model = load(with_member(bert(), "architectures", architectures));
    CHECK(model->config().task == Task::embedding);
    CHECK(model->config().notes ==
          Names{"model.safetensors: 2 tensors are not used by the model that config.json describes: classifier.bias, classifier.weight"});
  }
  const auto many = load(with_tensors(bert(), [](Tensors& tensors) {
    for (int i = 0; i < 9; ++i) tensors.push_back(zeros("lora." + std::to_string(i), "F32", {4}, 4));
  }));
  REQUIRE(many->config().notes.size() == 1);
  CHECK(
      many->config().notes[0].ends_with("9 tensors are not used by the model that config.json describes: lora.0, lora.1, lora.2, lora.3, lora.4, "
                                        "lora.5, lora.6, lora.7, ..."));
}

TEST_CASE("the names may have the prefix of the base model or not", "[models]") {
  const std::pair<const char*, std::string> families[] = {{"tiny-bert", "bert."},
                                                          {"tiny-distilbert", "distilbert."},
                                                          {"tiny-roberta", "roberta."},
                                                          {"tiny-mpnet", "mpnet."},
                                                          {"tiny-modernbert", "model."}};
  for (const auto& [family, prefix] : families) {
    INFO(family);
    const Checkpoint checkpoint = stock(family);
    std::size_t renamed = 0;
    const Checkpoint bare = with_tensors(checkpoint, [&, &start = prefix](Tensors& tensors) {
      for (FileTensor& tensor : tensors)
        if (tensor.name.starts_with(start)) tensor.name = tensor.name.substr(start.size()), ++renamed;
    });
    CHECK(renamed > 20);
    CHECK_THAT(run(bare), HasBitsOf(run(checkpoint)));
    const Checkpoint half = with_tensors(checkpoint, [&, &start = prefix](Tensors& tensors) {
      const auto counts = [&](const FileTensor& t) { return t.name.starts_with(start) && t.name.find("pooler") == std::string::npos; };
      FileTensor& last = *std::find_if(tensors.rbegin(), tensors.rend(), counts);
      last.name = last.name.substr(start.size());
    });
    const Error error = error_of(half);
    CHECK(error.code() == ErrorCode::mismatch);
    const Names missing = std::get<Names>(error.detail().at("missing")), unexpected = std::get<Names>(error.detail().at("unexpected"));
    REQUIRE(missing.size() == 1);
    CHECK(missing == Names{prefix + unexpected.at(0)});
  }
}

TEST_CASE("norms may have the older names gamma and beta", "[models]") {
  const Checkpoint old = with_tensors(bert(), [](Tensors& tensors) {
    for (FileTensor& tensor : tensors) {
      const std::size_t at = tensor.name.find("LayerNorm.");
      if (at != std::string::npos) tensor.name = tensor.name.substr(0, at) + (tensor.name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
    }
  });
  CHECK(old.weights != bert().weights);
  CHECK_THAT(run(old), HasBitsOf(run(bert())));
  const Checkpoint both = with_tensors(bert(), [](Tensors& tensors) { tensors.push_back(zeros("bert.embeddings.LayerNorm.gamma", "F32", {32}, 4)); });
  CHECK(load(both)->config().notes.at(0).ends_with(": bert.embeddings.LayerNorm.gamma"));
}

/// Values exact in every float type; "mixed" alternates types.
Checkpoint in_type(const Checkpoint& checkpoint, const std::string& type) {
  return with_tensors(checkpoint, [&](Tensors& tensors) {
    std::size_t turn = 0;
    for (FileTensor& tensor : tensors) {
      constexpr const char* kTypes[] = {"F16", "F64", "F32", "BF16"};
      const std::string dtype = type == "mixed" ? kTypes[turn++ % 4] : type;
      const std::vector<float> values = tensor.values();
      std::vector<std::uint8_t> bytes;
      const auto put = [&](const auto& value) {
        const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
        bytes.insert(bytes.end(), from, from + sizeof value);
      };
      for (const float value : values) {
        // Seven significant bits in ±2, which F16 holds as normal numbers.
        int exponent = 0;
        const double part = std::frexp(static_cast<double>(value), &exponent);
        const double rounded = exponent < -12 ? 0.0 : std::ldexp(std::nearbyint(part * 128) / 128, exponent);
        const auto single = static_cast<float>(rounded);
        const auto bits = std::bit_cast<std::uint32_t>(single);
        if (dtype == "F64") put(rounded);
        if (dtype == "F32") put(single);
        if (dtype == "BF16") put(static_cast<std::uint16_t>(bits >> 16));
        if (dtype == "F16") {
          const std::uint32_t sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7fffffffU;
          put(static_cast<std::uint16_t>(magnitude == 0 ? sign : sign | ((magnitude >> 13) - (112U << 10))));
        }
      }
      tensor.dtype = dtype;
      tensor.bytes = std::move(bytes);
    }
  });
}

TEST_CASE("the same numbers as F16, BF16, F64 and F32 give the same bits", "[models]") {
  for (const char* family : {"tiny-bert", "tiny-mpnet", "tiny-modernbert"}) {
    const Checkpoint checkpoint = stock(family);
    const Array expected = run(in_type(checkpoint, "F32"));
    CHECK(expected.data != run(checkpoint).data);
    for (const char* type : {"F16", "BF16", "F64", "mixed"}) {
      INFO(family << ' ' << type);
      CHECK_THAT(run(in_type(checkpoint, type)), HasBitsOf(expected));
    }
  }
}

TEST_CASE("a file read in pieces of any size gives the same bits", "[models]") {
  for (const char* family : {"tiny-bert", "tiny-bert-cls", "tiny-modernbert", "tiny-bert-legacy"}) {
    const Checkpoint checkpoint = stock(family);
    const Array expected = run(checkpoint, checkpoint.weights.size());
    for (std::size_t piece = 1; piece <= 17; ++piece) {
      INFO(family << ", pieces of " << piece);
      CHECK_THAT(run(checkpoint, piece), HasBitsOf(expected));
    }
    for (const std::size_t piece : {999, 4096, 65'537}) {
      INFO(family << ", pieces of " << piece);
      CHECK_THAT(run(checkpoint, piece), HasBitsOf(expected));
    }
  }
  const Checkpoint mixed = in_type(bert(), "mixed");
  CHECK_THAT(run(mixed, 3), HasBitsOf(run(mixed, mixed.weights.size())));
}

Checkpoint smallest() {
  Checkpoint checkpoint = bert();
  checkpoint = with_config(checkpoint, [](json& config) {
    for (const char* name : {"num_hidden_layers", "num_attention_heads", "intermediate_size", "type_vocab_size", "vocab_size", "hidden_size"})
      config[name] = 1;
    config["max_position_embeddings"] = 2;
    config["architectures"] = {"BertModel"};
  });
  Tensors tensors;
  const std::string layer = "encoder.layer.0.";
  for (const std::string name : {"embeddings.word_embeddings", "embeddings.token_type_embeddings"})
    tensors.push_back(zeros(name + ".weight", "F32", {1, 1}, 4));
  tensors.push_back(zeros("embeddings.position_embeddings.weight", "F16", {2, 1}, 2));
  for (const std::string name :
       {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"})
    tensors.push_back(zeros(layer + name + ".weight", "F16", {1, 1}, 2)), tensors.push_back(zeros(layer + name + ".bias", "F64", {1}, 8));
  for (const std::string name : {"embeddings.LayerNorm", "encoder.layer.0.attention.output.LayerNorm", "encoder.layer.0.output.LayerNorm"})
    tensors.push_back(zeros(name + ".weight", "F16", {1}, 2)), tensors.push_back(zeros(name + ".bias", "BF16", {1}, 2));
  checkpoint.weights = write_tensors(tensors);
  return checkpoint;
}

TEST_CASE("a truncated file, or one with further bytes, is a FORMAT error", "[models]") {
  const Checkpoint whole = smallest();
  CHECK_NOTHROW(load(whole));
  const std::size_t size = whole.weights.size();
  std::uint64_t header = 0;
  std::memcpy(&header, whole.weights.data(), sizeof header);
  for (std::size_t cut = 0; cut < size; ++cut) {
    INFO(cut << " of " << size << " bytes");
    Checkpoint part = whole;
    part.weights.resize(cut);
    const char* words = cut < 8 ? "bytes, expected at least 8" : cut < 8 + header ? "the header is longer than the file" : "the file ends after";
    check_error({ErrorCode::format, "safetensors", "the file", {words}}, [&] { load(part); });
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, size, size + 1}) {
    INFO("pieces of " << piece);
    Checkpoint longer = whole;
    longer.weights.push_back(0);
    check_error({ErrorCode::format, "safetensors", "the file", {"goes on after its last tensor, which ends at byte " + std::to_string(size)}},
                [&] { load(longer, piece); });
  }
}

}  // namespace models_loader_test
}  // namespace attn::test
