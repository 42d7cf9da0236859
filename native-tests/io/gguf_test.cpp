#include "attn/io/gguf/reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "attn/io/safetensors.hpp"
#include "attn/models/text_model.hpp"
#include "models/goldens.hpp"
#include "support/float_environment.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace io_gguf_test {

namespace gguf = detail::gguf;
namespace fs = std::filesystem;
using nlohmann::json;

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

gguf::Header header_of(const std::string& bytes) {
  std::istringstream file(bytes);
  return gguf::read_header(file, bytes.size());
}

/// load() without the model.
std::string transcoded(const std::string& bytes) {
  std::istringstream file(bytes);
  gguf::Reader reader(file, bytes.size());
  std::string weights;
  reader.write_weights([&](std::span<const std::uint8_t> piece) { weights.append(piece.begin(), piece.end()); });
  return weights;
}

StateDict weights_of(const std::string& bytes) {
  const std::string file = transcoded(bytes);
  return parse_safetensors(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));
}

const std::vector<std::string> kTexts{"The cat sat on the mat.", "a", "Hello  world, it's 1234!", "naïve 日本 🙂\n"};

TEST_CASE("all block types of GGUF have the values of the gguf package bit for bit", "[io][gguf]") {
  const std::string bytes = read_bytes(testdata("gguf/types.gguf"));
  const gguf::Header header = header_of(bytes);
  const StateDict expected = read_safetensors(testdata("gguf/types.safetensors"));
  CHECK(header.tensors.size() == 8);
  for (const gguf::Tensor& tensor : header.tensors) {
    CAPTURE(tensor.name);
    CHECK(tensor.type->name == tensor.name);
    CHECK(tensor.rows() == 2);
    std::vector<float> values(1024);
    tensor.type->expand(reinterpret_cast<const std::uint8_t*>(bytes.data()) + tensor.first, tensor.bytes / tensor.type->bytes, values.data());
    CHECK_THAT(Array({2, 512}, values), HasBitsOf(floats_of(expected.at(tensor.name))));
  }
}

/// With the changes of testdata/gguf/configs.json, which GGUF cannot express.
class PlainFolder {
 public:
  explicit PlainFolder(const std::string& name) : path_(fs::temp_directory_path() / ("attn-gguf-" + std::to_string(std::random_device()()))) {
    fs::copy(testdata("models/" + name), path_, fs::copy_options::recursive);
    json config = json::parse(read_bytes(path_ / "config.json"));
    config.update(json::parse(read_bytes(testdata("gguf/configs.json"))).at(name));
    std::ofstream(path_ / "config.json") << config;
  }
  PlainFolder(const PlainFolder&) = delete;
  PlainFolder& operator=(const PlainFolder&) = delete;
  ~PlainFolder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST_CASE("a GGUF file gives the same tokens, logits and texts as its safetensors folder", "[io][gguf][models]") {
  const std::string name = GENERATE("tiny-gpt2", "tiny-llama", "tiny-llama-3", "tiny-llama-yarn", "tiny-qwen2", "tiny-qwen3", "tiny-gemma-2",
                                    "tiny-gemma-3", "tiny-neox", "tiny-neox-serial");
  CAPTURE(name);
  const PlainFolder folder(name);
  const TextModel expected = TextModel::load(folder.path()), model = TextModel::load(testdata("gguf/" + name + ".gguf"));
  CHECK(model.task() == Task::text_generation);
  CHECK(model.max_length() == expected.max_length());
  CHECK(model.parameter_shapes() == expected.parameter_shapes());
  const Encoding inputs = model.tokenize(kTexts), wanted = expected.tokenize(kTexts);
  CHECK(inputs.input_ids == wanted.input_ids);
  CHECK(inputs.tokens == wanted.tokens);
  CHECK(inputs.offsets == wanted.offsets);
  CHECK_THAT(floats_of(*model.forward(inputs).logits), HasBitsOf(floats_of(*expected.forward(wanted).logits)));
  CHECK(model.generate(kTexts[0], {.max_new_tokens = 12}).ids == expected.generate(kTexts[0], {.max_new_tokens = 12}).ids);
}

TEST_CASE("a model from a GGUF file is saved as a Hugging Face folder that gives the same logits", "[io][gguf][models]") {
  const PlainFolder folder("tiny-llama");
  const TextModel model = TextModel::load(testdata("gguf/mixed.gguf"));
  model.save_pretrained(folder.path());
  const TextModel again = TextModel::load(folder.path());
  const Encoding inputs = model.tokenize(kTexts);
  CHECK(again.tokenize(kTexts).input_ids == inputs.input_ids);
  CHECK_THAT(floats_of(*again.forward(inputs).logits), HasBitsOf(floats_of(*model.forward(inputs).logits)));
}

std::uint32_t crc32(const float* values, std::size_t count) {
  std::uint32_t sum = 0xffffffff;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values);
  for (std::size_t i = 0; i < count * sizeof(float); ++i) {
    sum ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (0xedb88320 & (0 - (sum & 1)));
  }
  return ~sum;
}

TEST_CASE("tensors of different block types in one GGUF file have the values of the gguf package", "[io][gguf]") {
  const json expected = json::parse(read_bytes(testdata("gguf/mixed.json")));
  const StateDict weights = weights_of(read_bytes(testdata("gguf/mixed.gguf")));
  CHECK(weights.size() == expected.size());
  for (const auto& [name, sum] : expected.items()) {
    CAPTURE(name);
    CHECK(crc32(weights.at(name).data(), weights.at(name).size()) == sum.get<std::uint32_t>());
  }
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string quoted(const std::string& text) { return raw<std::uint64_t>(text.size()) + text; }
std::string pair(const std::string& key, std::uint32_t type, const std::string& value) { return quoted(key) + raw(type) + value; }
std::string whole(const std::string& key, std::uint32_t value) { return pair(key, 4, raw(value)); }
std::string real(const std::string& key, float value) { return pair(key, 6, raw(value)); }
std::string string(const std::string& key, const std::string& value) { return pair(key, 8, quoted(value)); }
std::string strings(const std::string& key, const std::vector<std::string>& values) {
  std::string list = raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size());
  for (const std::string& value : values) list += quoted(value);
  return pair(key, 9, list);
}
std::string numbers(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string list = raw<std::uint32_t>(5) + raw<std::uint64_t>(values.size());
  for (const std::int32_t value : values) list += raw(value);
  return pair(key, 9, list);
}

struct RawTensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::uint32_t type = 0;  // F32
  std::uint64_t offset = 0;

  std::uint64_t bytes() const {
    std::uint64_t size = 4;
    for (const std::uint64_t dim : dims) size *= dim;
    return size;
  }
};

/// One layer of Llama: width 4, two heads, four tokens.
struct Small {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::optional<std::uint64_t> tensor_count, key_count;
  std::vector<std::pair<std::string, std::string>> keys;
  std::vector<RawTensor> tensors;

  Small() {
    const auto add = [&](const std::string& key, const std::string& bytes) { keys.emplace_back(key, bytes); };
    add("general.architecture", string("general.architecture", "llama"));
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::uint32_t>>{{"context_length", 8},
                                                                                        {"embedding_length", 4},
                                                                                        {"block_count", 1},
                                                                                        {"feed_forward_length", 2},
                                                                                        {"attention.head_count", 2},
                                                                                        {"attention.head_count_kv", 1},
                                                                                        {"rope.dimension_count", 2}})
      add("llama." + name, whole("llama." + name, value));
    add("llama.attention.layer_norm_rms_epsilon", real("llama.attention.layer_norm_rms_epsilon", 1e-5F));
    add("tokenizer.ggml.model", string("tokenizer.ggml.model", "gpt2"));
    add("tokenizer.ggml.pre", string("tokenizer.ggml.pre", "gpt-2"));
    add("tokenizer.ggml.tokens", strings("tokenizer.ggml.tokens", {"<e>", "a", "b", "ab"}));
    add("tokenizer.ggml.token_type", numbers("tokenizer.ggml.token_type", {3, 1, 1, 1}));
    add("tokenizer.ggml.merges", strings("tokenizer.ggml.merges", {"a b"}));
    add("tokenizer.ggml.eos_token_id", whole("tokenizer.ggml.eos_token_id", 0));
    tensors = {{"token_embd.weight", {4, 4}},        {"output_norm.weight", {4}},      {"blk.0.attn_norm.weight", {4}},
               {"blk.0.attn_q.weight", {4, 4}},      {"blk.0.attn_k.weight", {4, 2}},  {"blk.0.attn_v.weight", {4, 2}},
               {"blk.0.attn_output.weight", {4, 4}}, {"blk.0.ffn_norm.weight", {4}},   {"blk.0.ffn_gate.weight", {4, 2}},
               {"blk.0.ffn_up.weight", {4, 2}},      {"blk.0.ffn_down.weight", {2, 4}}};
    std::uint64_t offset = 0;
    for (RawTensor& tensor : tensors) {
      tensor.offset = offset;
      offset += (tensor.bytes() + 31) / 32 * 32;
    }
  }
  void set(const std::string& key, const std::string& bytes) {
    for (auto& each : keys)
      if (each.first == key) return void(each.second = bytes);
    keys.emplace_back(key, bytes);
  }
  void remove(const std::string& key) {
    std::erase_if(keys, [&](const auto& each) { return each.first == key; });
  }
  std::string header() const {
    std::string bytes = magic + raw(version) + raw(tensor_count.value_or(tensors.size())) + raw(key_count.value_or(keys.size()));
    for (const auto& each : keys) bytes += each.second;
    for (const RawTensor& tensor : tensors) {
      bytes += quoted(tensor.name) + raw(static_cast<std::uint32_t>(tensor.dims.size()));
      for (const std::uint64_t dim : tensor.dims) bytes += raw(dim);
      bytes += raw(tensor.type) + raw(tensor.offset);
    }
    return bytes;
  }
  std::string file() const {
    std::string bytes = header();
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    for (const RawTensor& tensor : Small().tensors) {
      for (std::uint64_t i = 0; i < tensor.bytes() / 4; ++i) bytes += raw(0.125F * static_cast<float>(i + 1));
      bytes.resize((bytes.size() + 31) / 32 * 32);
    }
    return bytes;
  }
};

using attn::test::refused;

void refused(ErrorCode code, const std::string& words, const std::function<void(Small&)>& change) {
  Small small;
  change(small);
  refused(code, words, [&] { transcoded(small.file()); });
}

bool accepted(const std::string& bytes) {
  try {
    transcoded(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_CASE("a GGUF file without damage is read", "[io][gguf]") {
  const StateDict weights = weights_of(Small().file());
  CHECK(weights.size() == 11);
  // Two rows of a head stay in place.
  CHECK(floats_of(weights.at("model.layers.0.self_attn.q_proj.weight")).data[5] == 0.75F);
  for (const std::uint64_t alignment : {8, 16, 64}) {
    Small other;
    other.alignment = alignment;
    other.set("general.alignment", whole("general.alignment", static_cast<std::uint32_t>(alignment)));
    std::uint64_t offset = 0;
    std::string data;
    for (RawTensor& tensor : other.tensors) {
      data.resize(offset = (data.size() + alignment - 1) / alignment * alignment);
      tensor.offset = offset;
      data.resize(offset + tensor.bytes());
    }
    std::string bytes = other.header();
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    CHECK(accepted(bytes + data));
  }
}

TEST_CASE("a GGUF file that is cut off at any byte is refused", "[io][gguf]") {
  const std::string bytes = Small().file();
  const gguf::Header header = header_of(bytes);
  const std::uint64_t end = header.tensors.back().first + header.tensors.back().bytes;
  for (std::uint64_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(accepted(bytes.substr(0, size)) == (size >= end));
  }
  refused(ErrorCode::format, "the file is", std::function<void()>([&] { transcoded(bytes + std::string(32, '\0')); }));
}

TEST_CASE("no changed byte in the header of a GGUF file does more than raise a typed error", "[io][gguf]") {
  const std::string bytes = Small().file();
  const std::size_t header = Small().header().size();
  std::size_t refusals = 0;
  for (std::size_t i = 0; i < header; ++i)
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      CAPTURE(i, change);
      refusals += accepted(damaged) ? 0 : 1;
    }
  CHECK(refusals > header);
}

TEST_CASE("a GGUF file has the same bits in the floating-point environment of another library", "[io][gguf]") {
  for (const char* const name : {"mixed", "tiny-gemma-2", "tiny-llama-3", "tiny-neox"}) {
    CAPTURE(name);
    const std::string bytes = read_bytes(testdata(std::string("gguf/") + name + ".gguf"));
    const std::string expected = transcoded(bytes);
    std::string found;
    {
      const ForeignEnvironment environment;
      found = transcoded(bytes);
      CHECK(ForeignEnvironment::is_in_force());
    }
    CHECK((found == expected));  // megabytes if printed
  }
}

TEST_CASE("damaged fields of a GGUF header are named", "[io][gguf]") {
  constexpr auto kFormat = ErrorCode::format, kUnsupported = ErrorCode::unsupported;
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  refused(kFormat, "the magic", [](Small& file) { file.magic = "GGML"; });
  refused(kUnsupported, "the version is 1, expected 2 or 3", [](Small& file) { file.version = 1; });
  refused(kUnsupported, "the version is 4", [](Small& file) { file.version = 4; });
  refused(kUnsupported, "big-endian", [](Small& file) { file.version = 3U << 24; });
  for (const std::uint64_t count : {std::uint64_t{1000}, std::uint64_t{1} << 33, kHuge, ~std::uint64_t{0}}) {
    refused(kFormat, "the number of tensors", [&](Small& file) { file.tensor_count = count; });
    refused(kFormat, "the number of metadata keys", [&](Small& file) { file.key_count = count; });
    refused(kFormat, "the length of a metadata key", [&](Small& file) { file.keys[0].second = raw(count * 4) + "x"; });
    refused(kFormat, "the length of tokenizer.ggml.tokens",
            [&](Small& file) { file.set("tokenizer.ggml.tokens", pair("tokenizer.ggml.tokens", 9, raw<std::uint32_t>(8) + raw(count))); });
    refused(kFormat, "the length of tokenizer.ggml.token_type",
            [&](Small& file) { file.set("tokenizer.ggml.token_type", pair("tokenizer.ggml.token_type", 9, raw<std::uint32_t>(5) + raw(count))); });
    refused(kFormat, "the length of general.name", [&](Small& file) { file.set("general.name", pair("general.name", 8, raw(count * 4))); });
  }
  refused(kFormat, "the type of general.name is 13", [](Small& file) { file.set("general.name", pair("general.name", 13, "")); });
  refused(kUnsupported, "an array of arrays", [](Small& file) { file.set("x", pair("x", 9, raw<std::uint32_t>(9) + raw<std::uint64_t>(0))); });
  refused(kFormat, "x is 2, expected 0 or 1", [](Small& file) { file.set("x", pair("x", 7, "\2")); });
  refused(kFormat, "below 2^63", [](Small& file) { file.set("x", pair("x", 10, raw(~std::uint64_t{0}))); });
  refused(kFormat, "general.architecture is given twice", [](Small& file) { file.keys.push_back(file.keys[0]); });
  for (const std::uint32_t alignment : {0U, 4U, 33U, 1U << 20})
    refused(kFormat, "general.alignment", [&](Small& file) { file.set("general.alignment", whole("general.alignment", alignment)); });
}

TEST_CASE("damaged tensor entries of a GGUF file are named", "[io][gguf]") {
  constexpr auto kFormat = ErrorCode::format, kUnsupported = ErrorCode::unsupported;
  refused(kFormat, "output_norm.weight is given twice", [](Small& file) { file.tensors[2].name = file.tensors[1].name; });
  refused(kFormat, "the rank of token_embd.weight is 0", [](Small& file) { file.tensors[0].dims = {}; });
  refused(kFormat, "the rank of token_embd.weight is 5", [](Small& file) { file.tensors[0].dims = {1, 1, 1, 1, 1}; });
  refused(kFormat, "the shape of token_embd.weight", [](Small& file) { file.tensors[0].dims = {4, 0}; });
  refused(kFormat, "the shape of token_embd.weight", [](Small& file) { file.tensors[0].dims = {0, 4}; });
  refused(kFormat, "at most 2^48", [](Small& file) { file.tensors[0].dims = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}; });
  refused(kFormat, "at most 2^48", [](Small& file) { file.tensors[0].dims = {~std::uint64_t{0}}; });
  refused(kFormat, "the file is", [](Small& file) { file.tensors.back().dims = {2, 1 << 20}; });
  for (const std::uint32_t type : {4U, 6U, 13U, 24U, 99U, ~0U})
    refused(kUnsupported, "expected one of F32, F16, BF16", [&](Small& file) { file.tensors[0].type = type; });
  refused(kFormat, "expected a multiple of 256, the block size of Q4_K", [](Small& file) { file.tensors[0].type = 12; });
  refused(kFormat, "the offset of output_norm.weight", [](Small& file) { file.tensors[1].offset += 4; });   // misaligned
  refused(kFormat, "the offset of output_norm.weight", [](Small& file) { file.tensors[1].offset -= 32; });  // overlaps
  refused(kFormat, "the offset of blk.0.attn_norm.weight is 96, expected 64", [](Small& file) { file.tensors[1].offset = ~std::uint64_t{0}; });
  refused(kFormat, "the offset of output_norm.weight is 64, expected 0", [](Small& file) { file.tensors[0].offset = 1 << 20; });
  refused(kUnsupported, "blk.0.attn_sinks.weight", [](Small& file) { file.tensors[2].name = "blk.0.attn_sinks.weight"; });
  const auto divisors = [](std::uint64_t count) {
    return [=](Small& file) { file.tensors[2] = {.name = "rope_freqs.weight", .dims = {count}, .offset = file.tensors[2].offset}; };
  };
  refused(kFormat, "the length of rope_freqs.weight is 4, expected 1", divisors(4));
  refused(kFormat, "rope_freqs.weight is another tensor", [](Small& file) { file.tensors[3].name = "rope_freqs.weight"; });
  refused(kUnsupported, "rope_freqs.weight is a list of other numbers, expected divisors by the formula of Llama 3.1", [&](Small& file) {
    divisors(4)(file);
    file.set("llama.attention.head_count", whole("llama.attention.head_count", 1));
    file.set("llama.attention.key_length", whole("llama.attention.key_length", 8));
    file.set("llama.rope.dimension_count", whole("llama.rope.dimension_count", 8));
  });
  refused(kUnsupported, "the type of blk.0.attn_q.bias is Q4_0", [](Small& file) { file.tensors[2] = {"blk.0.attn_q.bias", {32}, 2, 96}; });
  refused(kFormat, "token_embd.weight is missing", [](Small& file) { file.tensors[0].name = "other.weight"; });
}

TEST_CASE("settings of a GGUF model that attn does not have are refused", "[io][gguf]") {
  constexpr auto kFormat = ErrorCode::format, kUnsupported = ErrorCode::unsupported;
  const auto set = [](const std::string& key, const std::string& bytes) { return [=](Small& file) { file.set(key, bytes); }; };
  const auto set_whole = [&](const std::string& key, std::uint32_t value) { return set(key, whole(key, value)); };
  refused(kUnsupported, "expected one of gpt2, llama, qwen2, qwen3, gemma2, gemma3, gptneox",
          set("general.architecture", string("general.architecture", "mamba")));
  refused(kFormat, "general.architecture is missing", [](Small& file) { file.remove("general.architecture"); });
  refused(kFormat, "llama.block_count is missing", [](Small& file) { file.remove("llama.block_count"); });
  refused(kFormat, "llama.block_count is a string", set("llama.block_count", string("llama.block_count", "1")));
  refused(kFormat, "llama.attention.head_count", set_whole("llama.attention.head_count", 0));
  refused(kUnsupported, "llama.rope.dimension_count", set_whole("llama.rope.dimension_count", 1));
  refused(kUnsupported, "llama.attention.value_length", set_whole("llama.attention.value_length", 4));
  refused(kUnsupported, "split.count is 3, expected 1", set_whole("split.count", 3));
  refused(kUnsupported, "llama.expert_count", set_whole("llama.expert_count", 8));
  refused(kUnsupported, "llama.rope.scaling.type is longrope, expected linear, none or yarn",
          set("llama.rope.scaling.type", string("llama.rope.scaling.type", "longrope")));
  refused(kUnsupported, "llama.rope.scaling.attn_factor is 2", set("llama.rope.scaling.attn_factor", real("llama.rope.scaling.attn_factor", 2)));
  refused(kUnsupported, "blk.1.attn_q.weight is unknown, expected a tensor of llama",
          [](Small& file) { file.tensors[3].name = "blk.1.attn_q.weight"; });
  refused(kFormat, "finite", set("llama.rope.freq_base", real("llama.rope.freq_base", INFINITY)));
}

json config_of(const Small& small) {
  const std::string bytes = small.file();
  std::istringstream file(bytes);
  const auto config = gguf::Reader(file, bytes.size()).read("config.json");
  return json::parse(config->begin(), config->end());
}

TEST_CASE("linear RoPE scaling of a GGUF file becomes that of config.json", "[io][gguf]") {
  const json linear{{"rope_theta", 10000}, {"rope_type", "linear"}, {"factor", 2.5}};
  Small small;
  small.set("llama.rope.scaling.factor", real("llama.rope.scaling.factor", 2.5F));
  CHECK(config_of(small).at("rope_parameters") == linear);  // llama.cpp's default
  small.set("llama.rope.scaling.type", string("llama.rope.scaling.type", "linear"));
  const json config = config_of(small);
  CHECK(config.at("rope_parameters") == linear);
  small.remove("llama.rope.scaling.factor");
  small.set("llama.rope.scale_linear", real("llama.rope.scale_linear", 2.5F));  // in old files
  CHECK(config_of(small).at("rope_parameters") == linear);
  small.set("llama.rope.scaling.type", string("llama.rope.scaling.type", "none"));
  CHECK(config_of(small).at("rope_parameters").at("rope_type") == "default");
  CHECK(config.at("rms_norm_eps") == 1e-5);
  CHECK(config.at("tie_word_embeddings") == true);
}

TEST_CASE("a bias in any layer of a GGUF file of Llama sets the flag of config.json", "[io][gguf]") {
  Small small;
  CHECK(config_of(small).at("attention_bias") == false);
  CHECK(config_of(small).at("mlp_bias") == false);
  small.set("llama.block_count", whole("llama.block_count", 2));
  small.tensors[6].name = "blk.1.attn_output.bias";
  CHECK(config_of(small).at("attention_bias") == true);
  CHECK(config_of(small).at("mlp_bias") == false);
  small.tensors[10].name = "blk.1.ffn_down.bias";
  CHECK(config_of(small).at("mlp_bias") == true);
}

TEST_CASE("tokenizers of GGUF files that attn does not read leave the model usable by ids", "[io][gguf]") {
  const auto reason = [](const std::string& key, const std::string& bytes) {
    Small small;
    small.set(key, bytes);
    std::istringstream file(small.file());
    const gguf::Reader reader(file, small.file().size());
    CHECK(!reader.read("tokenizer.json"));
    REQUIRE(reader.no_tokenizer());
    return std::string(reader.no_tokenizer()->what());
  };
  CHECK(reason("tokenizer.ggml.model", string("tokenizer.ggml.model", "t5")) ==
        "gguf: tokenizer.ggml.model is t5, expected gpt2 (byte-level BPE) or llama (SentencePiece)");
  CHECK(reason("tokenizer.ggml.pre", string("tokenizer.ggml.pre", "tekken")) ==
        "gguf: tokenizer.ggml.pre is tekken, expected gpt-2, smollm, llama-bpe or qwen2");
  CHECK(reason("tokenizer.ggml.tokens", strings("tokenizer.ggml.tokens", {"<e>", "a", "b", std::string(5000, 'x')})) ==
        "gguf: tokenizer.ggml.tokens is 5000 bytes, expected tokens of at most 1024 characters");
  constexpr auto kFormat = ErrorCode::format;
  const auto set = [](const std::string& key, const std::string& bytes) { return [=](Small& file) { file.set(key, bytes); }; };
  refused(kFormat, "tokenizer.ggml.tokens is missing", [](Small& file) { file.remove("tokenizer.ggml.tokens"); });
  refused(kFormat, "tokenizer.ggml.merges is missing", [](Small& file) { file.remove("tokenizer.ggml.merges"); });
  refused(kFormat, "one for each token", set("tokenizer.ggml.token_type", numbers("tokenizer.ggml.token_type", {3, 1})));
  refused(kFormat, "\"a\" twice", set("tokenizer.ggml.tokens", strings("tokenizer.ggml.tokens", {"a", "a", "b", "c"})));
  refused(kFormat, "expected valid UTF-8", set("tokenizer.ggml.tokens", strings("tokenizer.ggml.tokens", {"\xff", "a", "b", "c"})));
  refused(kFormat, "expected an id below 4", set("tokenizer.ggml.eos_token_id", whole("tokenizer.ggml.eos_token_id", 4)));
  refused(kFormat, "add_bos_token is true, expected false. The file has no id for this token.",
          set("tokenizer.ggml.add_bos_token", pair("tokenizer.ggml.add_bos_token", 7, "\1")));
}

TEST_CASE("loading a GGUF file that is damaged or missing names the file or the field", "[io][gguf][models]") {
  const fs::path path = fs::temp_directory_path() / ("attn-" + std::to_string(std::random_device()()) + ".gguf");
  refused(ErrorCode::format, path.string() + " is missing", std::function<void()>([&] { TextModel::load(path); }));
  const auto load = [&](const std::function<void(Small&)>& change) {
    Small small;
    change(small);
    std::ofstream(path, std::ios::binary) << small.file();
    return TextModel::load(path);
  };
  CHECK(load([](Small&) {}).tokenize({"ab"}).input_ids(0, 0) == 3);
  const auto fails = [&](ErrorCode code, const std::string& words, const std::function<void(Small&)>& change) {
    refused(code, words, std::function<void()>([&] { load(change); }));
  };
  fails(ErrorCode::mismatch, "layers.1.", [](Small& file) { file.set("llama.block_count", whole("llama.block_count", 2)); });
  fails(ErrorCode::mismatch, "gate_proj", [](Small& file) { file.set("llama.feed_forward_length", whole("llama.feed_forward_length", 3)); });
  fails(ErrorCode::config, "num_key_value_heads",
        [](Small& file) { file.set("llama.attention.head_count_kv", whole("llama.attention.head_count_kv", 7)); });
  fs::remove(path);
}

}  // namespace io_gguf_test
}  // namespace attn::test
