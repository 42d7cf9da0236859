#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <limits>
#include <sstream>

#include "attn/io/float_formats.hpp"
#include "attn/models/model_writer.hpp"
#include "attn/tensor/view.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_int8_files_test {

using nlohmann::json;
using Tensors = std::vector<FileTensor>;
using Names = std::vector<std::string>;

Checkpoint stock(const std::string& name) { return read_checkpoint(testdata("models/" + name)); }

std::unique_ptr<EncoderModel> loaded(const Checkpoint& checkpoint, std::optional<bool> quantized = std::nullopt, std::size_t piece = 1 << 20) {
  detail::ModelLoader loader(checkpoint.files(), quantized);
  const std::span<const std::uint8_t> bytes = checkpoint.weights;
  for (std::size_t i = 0; i < bytes.size(); i += piece) loader.write(bytes.subspan(i, std::min(piece, bytes.size() - i)));
  return loader.finish();
}

std::vector<std::uint8_t> weights_of(const EncoderModel& model, FileWeights weights) {
  std::ostringstream file;
  detail::write_weights(model, weights, file);
  const std::string text = file.str();
  return {text.begin(), text.end()};
}

Checkpoint written(Checkpoint checkpoint, FileWeights weights, std::optional<bool> quantized = std::nullopt) {
  const auto model = loaded(checkpoint, quantized);
  const std::string config = detail::config_as(checkpoint.config, *model, weights);
  checkpoint.config.assign(config.begin(), config.end());
  checkpoint.weights = weights_of(*model, weights);
  return checkpoint;
}

Checkpoint int8(const std::string& name) { return written(stock(name), FileWeights::int8, true); }
const Checkpoint& bert() {
  static const Checkpoint checkpoint = int8("tiny-bert");
  return checkpoint;
}

Array numbers(const EncoderModel& model, const detail::ModelForwardOptions& options = {}) {
  const ModelOutput output = forward(model, some_ids(2, 9, model.config().vocab_size), false, options);
  Array all({static_cast<std::int64_t>(output.last_hidden_state.data.size() + output.logits.data.size())}, output.last_hidden_state.data);
  all.data.insert(all.data.end(), output.logits.data.begin(), output.logits.data.end());
  return all;
}

std::map<std::string, Array> state_of(const EncoderModel& model) {
  std::map<std::string, Array> state;
  StateTarget target;
  for (const auto& [name, shape] : model.parameter_shapes()) target.emplace(name, state.emplace(name, Array(shape)).first->second.data.data());
  model.save_state(target);
  return state;
}

void check_same(const EncoderModel& got, const EncoderModel& expected) {
  const auto state = state_of(got);
  for (const auto& [name, values] : state_of(expected)) {
    CAPTURE(name);
    CHECK_THAT(state.at(name), HasBitsOf(values));
  }
}

template <class T>
std::vector<std::uint8_t> raw(const std::vector<T>& values) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return {bytes, bytes + values.size() * sizeof(T)};
}

const std::string kQuery = "bert.encoder.layer.0.attention.self.query.weight";

TEST_CASE("a decoder that shares the embedding matrix also stores its scales under its own name, where transformers looks for them",
          "[models][int8]") {
  for (const auto& [name, decoder, words] :
       {std::array<std::string, 3>{"tiny-bert-mlm", "cls.predictions.decoder", "bert.embeddings.word_embeddings"},
        {"tiny-distilbert-mlm", "vocab_projector", "distilbert.embeddings.word_embeddings"},
        {"tiny-roberta-mlm", "lm_head.decoder", "roberta.embeddings.word_embeddings"},
        {"tiny-electra-mlm", "generator_lm_head", "electra.embeddings.word_embeddings"},
        {"tiny-qwen2", "lm_head", "model.embed_tokens"},
        {"tiny-gpt2", "lm_head", "transformer.wte"},
        {"tiny-neox-serial", "embed_out", "gpt_neox.embed_in"},
        {"tiny-modernbert-mlm", "decoder", "model.embeddings.tok_embeddings"}}) {
    CAPTURE(name);
    Tensors tensors = read_tensors(int8(name).weights);
    const FileTensor& of_words = named(tensors, words + ".weight_scale");
    CHECK(named(tensors, decoder + ".weight_scale").bytes == of_words.bytes);
    CHECK(std::none_of(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) { return tensor.name == decoder + ".weight"; }));
  }
}

TEST_CASE("int8 files give the bits of weights that are quantized while loading", "[models][int8]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const Checkpoint stored = int8(name);
  const auto quantized = loaded(stock(name), true), model = loaded(stored);
  CHECK(model->is_quantized());
  check_same(*model, *quantized);
  CHECK_THAT(numbers(*model), HasBitsOf(numbers(*quantized)));
  CHECK(weights_of(*model, FileWeights::int8) == stored.weights);
  CHECK(weights_of(*loaded(stock(name), false), FileWeights::int8) == stored.weights);
  std::size_t bytes = 0;
  for (const FileTensor& tensor : read_tensors(stored.weights)) {
    if (tensor.dtype == "I8") bytes += tensor.bytes.size();
    if (tensor.dtype == "F32") CHECK(bytes == 0);  // largest types first: safetensors in Python requires alignment
  }
  CHECK(bytes > 0);
}

TEST_CASE("int8 files can be loaded as float32: scale of the row times int8 value", "[models][int8]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const Checkpoint stored = int8(name);
  const auto model = loaded(stored, false), quantized = loaded(stored);
  CHECK_FALSE(model->is_quantized());
  check_same(*model, *quantized);
  const Checkpoint floats = written(stored, FileWeights::float32);
  CHECK_FALSE(json::parse(floats.config).contains("quantization_config"));
  const auto again = loaded(floats);
  CHECK_FALSE(again->is_quantized());
  check_same(*again, *quantized);
}

TEST_CASE("int8 files are read in any order and in pieces of any size", "[models][int8]") {
  const std::string name = GENERATE("tiny-bert", "tiny-modernbert", "tiny-gpt2");
  const Checkpoint stored = int8(name);
  const Array expected = numbers(*loaded(stored));
  for (const std::size_t piece : {1, 7, 4099}) {
    CHECK_THAT(numbers(*loaded(stored, std::nullopt, piece)), HasBitsOf(expected));
    CHECK_THAT(numbers(*loaded(stored, false, piece)), HasBitsOf(numbers(*loaded(stored, false))));
  }
  const Checkpoint reversed = with_tensors(stored, [](Tensors& tensors) { std::reverse(tensors.begin(), tensors.end()); });
  const Checkpoint sorted = with_tensors(stored, [](Tensors& tensors) {  // weights before scales, scales at odd offsets
    std::sort(tensors.begin(), tensors.end(), [](const FileTensor& a, const FileTensor& b) { return a.name < b.name; });
    tensors.insert(tensors.begin(), {"quantiles", "U8", {1}, {0}});
  });
  for (const Checkpoint& other : {reversed, sorted}) {
    CHECK_THAT(numbers(*loaded(other, std::nullopt, 1001)), HasBitsOf(expected));
    CHECK_THAT(numbers(*loaded(other, false, 1001)), HasBitsOf(numbers(*loaded(stored, false))));
  }
}

TEST_CASE("scales may be half floats or one-dimensional, and weights may be -128", "[models][int8]") {
  const Checkpoint flat = with_tensors(bert(), [](Tensors& tensors) { named(tensors, kQuery + "_scale").shape = {32}; });
  CHECK_THAT(numbers(*loaded(flat)), HasBitsOf(numbers(*loaded(bert()))));

  const bool bfloat = GENERATE(false, true);
  const Checkpoint halves = with_tensors(bert(), [&](Tensors& tensors) {
    FileTensor& scale = named(tensors, kQuery + "_scale");
    std::vector<std::uint16_t> short_;
    for (const float value : scale.values())
      short_.push_back(bfloat ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16) : half_from_float(value));
    scale = {scale.name, bfloat ? "BF16" : "F16", scale.shape, raw(short_)};
    named(tensors, kQuery).bytes[5] = 0x80;
  });
  const FileTensor q = [&] {
    Tensors tensors = read_tensors(halves.weights);
    return named(tensors, kQuery);
  }();
  Tensors tensors = read_tensors(halves.weights);
  const FileTensor& scale = named(tensors, kQuery + "_scale");
  const auto model = loaded(halves);
  const Array weight = state_of(*model).at(kQuery);
  for (std::size_t i = 0; i < weight.data.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, scale.bytes.data() + i / 32 * 2, 2);
    const float s = bfloat ? float_from_bfloat16(bits) : float_from_half(bits);
    REQUIRE(weight.data[i] == s * static_cast<float>(static_cast<std::int8_t>(q.bytes[i])));
  }
  CHECK(weight.data[5] == -128 * (weight.data[4] / static_cast<float>(static_cast<std::int8_t>(q.bytes[4]))));
  CHECK(weights_of(*model, FileWeights::int8) == weights_of(*loaded(written(halves, FileWeights::int8)), FileWeights::int8));
}

TEST_CASE("float16 files have the nearest numbers", "[models][int8]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const Checkpoint halves = written(stock(name), FileWeights::float16);
  const auto expected = state_of(*loaded(stock(name)));
  for (const auto& [tensor, values] : state_of(*loaded(halves))) {
    CAPTURE(tensor);
    for (std::size_t i = 0; i < values.data.size(); ++i) {
      const float value = expected.at(tensor).data[i], got = values.data[i];
      // Half the spacing of the binade, at least 2⁻²⁴.
      const float step = std::ldexp(1.0F, std::max(std::ilogb(value == 0 ? 1.0F : value), -14) - 10);
      REQUIRE(std::abs(got - value) <= step / 2);
    }
  }
  for (const FileTensor& tensor : read_tensors(halves.weights)) CHECK(tensor.dtype == "F16");
}

TEST_CASE("half_from_float is the inverse of float_from_half and rounds ties to even", "[models][int8]") {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = float_from_half(static_cast<std::uint16_t>(half));
    if (std::isnan(value)) {
      REQUIRE(std::isnan(float_from_half(half_from_float(value))));
      continue;
    }
    REQUIRE(half_from_float(value) == half);
    if ((half & 0x7fff) >= 0x7c00) continue;
    const bool last = (half & 0x7fff) == 0x7bff;
    const float next = last ? std::copysign(65536.0F, value) : float_from_half(static_cast<std::uint16_t>(half + 1));
    const float middle = (value + next) / 2;
    REQUIRE(half_from_float(middle) == (half % 2 == 0 ? half : half + 1));
    REQUIRE(half_from_float(std::nextafter(middle, value)) == half);
    REQUIRE(half_from_float(std::nextafter(middle, next)) == half + 1);
  }
  CHECK(half_from_float(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(half_from_float(-std::numeric_limits<float>::max()) == 0xfc00);
}

TEST_CASE("numbers that a file cannot represent are refused with the name of the tensor", "[models][int8]") {
  const float number = GENERATE(std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity());
  const std::size_t at = GENERATE(0, 1023);
  const Checkpoint bad =
      with_tensors(stock("tiny-bert"), [&](Tensors& tensors) { std::memcpy(named(tensors, kQuery).bytes.data() + 4 * at, &number, 4); });
  const ExpectedError nan{ErrorCode::format, "model.safetensors", kQuery, {"NaN or infinity"}};
  check_error(nan, [&] { loaded(bad, true); });
  check_error(nan, [&] { loaded(bad, true, 5); });
  const auto model = loaded(bad);
  check_error({ErrorCode::format, "save_pretrained", kQuery, {"NaN or infinity"}}, [&] { detail::check_weights_as(*model, FileWeights::int8); });
  CHECK_NOTHROW(detail::check_weights_as(*model, FileWeights::float16));

  Checkpoint large = stock("tiny-bert");
  const float big = 65520;
  large = with_tensors(large, [&](Tensors& tensors) { std::memcpy(named(tensors, "classifier.bias").bytes.data(), &big, 4); });
  check_error({ErrorCode::out_of_range, "save_pretrained", "classifier.bias", {"65520", "65504"}},
              [&] { detail::check_weights_as(*loaded(large), FileWeights::float16); });
  CHECK_NOTHROW(detail::check_weights_as(*loaded(large), FileWeights::int8));
}

TEST_CASE("scales must be finite and at least 0", "[models][int8]") {
  const float scale = GENERATE(-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  const Checkpoint bad = with_tensors(bert(), [&](Tensors& tensors) { std::memcpy(named(tensors, kQuery + "_scale").bytes.data() + 12, &scale, 4); });
  const ExpectedError expected{ErrorCode::format, "model.safetensors", kQuery + "_scale[3]", {"at least 0"}};
  check_error(expected, [&] { loaded(bad); });
  check_error(expected, [&] { loaded(bad, false, 3); });
}

TEST_CASE("one MISMATCH error lists missing, unexpected and mis-shaped scales, and unexpected int8 tensors", "[models][int8]") {
  const std::string norm = "bert.embeddings.LayerNorm.weight", key = "bert.encoder.layer.0.attention.self.key.weight";
  const Checkpoint wrong = with_tensors(bert(), [&](Tensors& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) { return tensor.name == kQuery + "_scale"; });
    FileTensor& scale = named(tensors, key + "_scale");
    scale.shape = {1, 32};
    FileTensor& weight = named(tensors, norm);
    weight = {norm, "I8", {32}, std::vector<std::uint8_t>(32)};
    tensors.push_back({norm + "_scale", "F32", {32, 1}, std::vector<std::uint8_t>(128)});
    tensors.push_back({"classifier.bias_scale", "F32", {1}, std::vector<std::uint8_t>(4)});
    tensors.push_back({key.substr(0, key.size()) + "_zero_point", "I8", {32, 1}, std::vector<std::uint8_t>(32)});
  });
  try {
    loaded(wrong);
    FAIL("it was loaded");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::mismatch);
    const auto list = [&](const char* name) { return std::get<Names>(error.detail().at(name)); };
    CHECK(list("missing") == Names{kQuery + "_scale"});
    CHECK(list("unexpected") == Names{key + "_zero_point", "classifier.bias_scale"});
    CHECK(list("mis_shaped") == Names{norm + " is I8, expected F32, F16, BF16 or F64", key + "_scale has shape (1,32), expected (32,1)"});
  }
}

TEST_CASE("a float weight among int8 weights is loaded as the call requests", "[models][int8]") {
  const Checkpoint mixed = with_tensors(bert(), [](Tensors& tensors) {
    Tensors floats = read_tensors(stock("tiny-bert").weights);
    std::erase_if(tensors, [](const FileTensor& tensor) { return tensor.name == kQuery + "_scale"; });
    named(tensors, kQuery) = named(floats, kQuery);
  });
  check_error({ErrorCode::unsupported, "model.safetensors", kQuery, {"I8", "F32"}}, [&] { loaded(mixed); });
  CHECK_THAT(numbers(*loaded(mixed, true)), HasBitsOf(numbers(*loaded(bert()))));
  CHECK_THAT(state_of(*loaded(mixed, false)).at(kQuery), HasBitsOf(state_of(*loaded(stock("tiny-bert"))).at(kQuery)));
}

TEST_CASE("files with a float32 embedding matrix keep it as float32", "[models][int8]") {
  const std::string words = "bert.embeddings.word_embeddings.weight";
  Checkpoint linear = with_config(bert(), [](json& config) { config["quantization_config"]["config_groups"].erase("group_1"); });
  linear = with_tensors(linear, [&](Tensors& tensors) {
    Tensors floats = read_tensors(stock("tiny-bert").weights);
    std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == words + "_scale"; });
    named(tensors, words) = named(floats, words);
  });
  const auto model = loaded(linear);
  CHECK(model->is_quantized());
  CHECK_THAT(state_of(*model).at(words), HasBitsOf(state_of(*loaded(stock("tiny-bert"))).at(words)));
  CHECK_THAT(state_of(*model).at(kQuery), HasBitsOf(state_of(*loaded(bert())).at(kQuery)));
  const Checkpoint again = written(linear, FileWeights::int8);
  CHECK_THAT(numbers(*loaded(again)), HasBitsOf(numbers(*model)));
  CHECK(json::parse(again.config)["quantization_config"]["config_groups"].size() == 1);
  CHECK_THAT(numbers(*loaded(linear, true)), HasBitsOf(numbers(*loaded(bert()))));
}

TEST_CASE("every unsupported value of quantization_config is an UNSUPPORTED error with its name", "[models][int8]") {
  using Change = std::function<void(json&)>;
  const std::string all = "quantization_config.", first = all + "config_groups.group_0.";
  const std::vector<std::pair<std::string, Change>> cases{
      {all + "quant_method", [](json& config) { config["quant_method"] = "gptq"; }},
      {all + "quant_method", [](json& config) { config.erase("quant_method"); }},
      {all + "format", [](json& config) { config["format"] = "pack-quantized"; }},
      {all + "format", [](json& config) { config["format"] = "marlin-24"; }},
      {all + "format", [](json& config) { config.erase("format"); }},
      {all + "quantization_status", [](json& config) { config["quantization_status"] = "frozen"; }},
      {all + "kv_cache_scheme", [](json& config) { config["kv_cache_scheme"] = {{"num_bits", 8}}; }},
      {all + "sparsity_config", [](json& config) { config["sparsity_config"] = {{"format", "sparse-24-bitmask"}}; }},
      {all + "transform_config", [](json& config) { config["transform_config"] = {{"config_groups", {{"u", 1}}}}; }},
      {all + "config_groups", [](json& config) { config["config_groups"] = json::object(); }},
      {all + "config_groups", [](json& config) { config["config_groups"].erase("group_0"); }},
      {all + "config_groups.W8A8", [](json& config) { config["config_groups"]["W8A8"] = {"Linear"}; }},
      {first + "targets", [](json& config) { config["config_groups"]["group_0"]["targets"] = {"Linear", "re:.*mlp.*"}; }},
      {first + "targets", [](json& config) { config["config_groups"]["group_0"]["targets"] = {"Embedding"}; }},
      {first + "format", [](json& config) { config["config_groups"]["group_0"]["format"] = "float-quantized"; }},
      {first + "weights", [](json& config) { config["config_groups"]["group_0"]["weights"] = nullptr; }},
      {first + "weights.num_bits", [](json& config) { config["config_groups"]["group_0"]["weights"]["num_bits"] = 4; }},
      {first + "weights.type", [](json& config) { config["config_groups"]["group_0"]["weights"]["type"] = "float"; }},
      {first + "weights.symmetric", [](json& config) { config["config_groups"]["group_0"]["weights"]["symmetric"] = false; }},
      {first + "weights.strategy", [](json& config) { config["config_groups"]["group_0"]["weights"]["strategy"] = "tensor"; }},
      {first + "weights.strategy", [](json& config) { config["config_groups"]["group_0"]["weights"].erase("strategy"); }},
      {first + "weights.strategy", [](json& config) { config["config_groups"]["group_0"]["weights"]["strategy"] = "group"; }},
      {first + "weights.group_size", [](json& config) { config["config_groups"]["group_0"]["weights"]["group_size"] = 128; }},
      {first + "weights.block_structure", [](json& config) { config["config_groups"]["group_0"]["weights"]["block_structure"] = {128, 128}; }},
      {first + "weights.dynamic", [](json& config) { config["config_groups"]["group_0"]["weights"]["dynamic"] = true; }},
      {first + "input_activations", [](json& config) { config["config_groups"]["group_0"]["input_activations"] = nullptr; }},
      {first + "input_activations.num_bits", [](json& config) { config["config_groups"]["group_0"]["input_activations"]["num_bits"] = 16; }},
      {first + "input_activations.type", [](json& config) { config["config_groups"]["group_0"]["input_activations"]["type"] = "float"; }},
      {first + "input_activations.strategy", [](json& config) { config["config_groups"]["group_0"]["input_activations"]["strategy"] = "tensor"; }},
      {first + "input_activations.symmetric", [](json& config) { config["config_groups"]["group_0"]["input_activations"]["symmetric"] = true; }},
      {first + "input_activations.symmetric", [](json& config) { config["config_groups"]["group_0"]["input_activations"].erase("symmetric"); }},
      {first + "input_activations.dynamic", [](json& config) { config["config_groups"]["group_0"]["input_activations"]["dynamic"] = false; }},
      {first + "output_activations", [](json& config) { config["config_groups"]["group_0"]["output_activations"] = {{"num_bits", 8}}; }},
      {all + "config_groups.group_1.input_activations",
       [](json& config) { config["config_groups"]["group_1"]["input_activations"] = {{"num_bits", 8}}; }},
      {all + "config_groups.group_1.targets", [](json& config) { config["config_groups"]["group_1"]["targets"] = {"re:.*position_embeddings$"}; }},
  };
  for (const auto& [argument, change] : cases) {
    const Checkpoint other = with_config(bert(), [&, &edit = change](json& config) { edit(config["quantization_config"]); });
    check_error({ErrorCode::unsupported, "config.json", argument, {}}, [&] { detail::ModelLoader(other.files()); });
  }
  const std::vector<Change> same{
      [](json& config) { config["config_groups"]["group_1"]["targets"] = {"bert.embeddings.word_embeddings"}; },
      [](json& config) { config["config_groups"]["group_1"]["targets"] = {"re:.*word_embeddings"}; },
      [](json& config) { config["config_groups"]["group_0"]["weights"]["group_size"] = nullptr; },
      [](json& config) { config["config_groups"]["group_0"]["weights"]["actorder"] = "static"; },
      [](json& config) { config["config_groups"]["group_0"].erase("format"); },
      [](json& config) { config["sparsity_config"] = json::object(); },
      [](json& config) { config["version"] = "0.20.0"; },
      [](json& config) { config.erase("ignore"); },
  };
  for (const Change& change : same) CHECK_NOTHROW(loaded(with_config(bert(), [&](json& config) { change(config["quantization_config"]); })));
}

TEST_CASE("int8 weights with a config.json for float weights are refused with that reason", "[models][int8]") {
  const Checkpoint floats = with_config(bert(), [](json& config) { config.erase("quantization_config"); });
  for (const std::optional<bool> quantized : {std::optional<bool>(), std::optional(true), std::optional(false)})
    check_error({ErrorCode::unsupported, "model.safetensors", "", {"I8", "quantization_config"}}, [&] { loaded(floats, quantized); });
}

TEST_CASE("int8 products of more than 65 536 terms are refused", "[models][int8]") {
  const Checkpoint wide = with_member(stock("tiny-bert"), "intermediate_size", 65'537);
  check_error({ErrorCode::unsupported, "model.safetensors", "", {"65536", "65537"}}, [&] { detail::ModelLoader(wide.files(), true); });
  CHECK_NOTHROW(detail::ModelLoader(wide.files()));
  CHECK_NOTHROW(detail::ModelLoader(with_member(stock("tiny-bert"), "intermediate_size", 65'536).files(), true));
}

TEST_CASE("the memory limit is compared with the size of int8 weights", "[models][int8]") {
  // 400 MB of embeddings in float32.
  const Checkpoint large = with_config(stock("tiny-bert"), [](json& config) {
    config["vocab_size"] = 260'000;
    config["hidden_size"] = 384;
    config["num_attention_heads"] = 12;
  });
  struct Limit {
    Limit() { set_memory_limit(200 << 20); }
    ~Limit() { set_memory_limit(std::uint64_t{1} << 63); }
  } const limit;
  CHECK_NOTHROW(detail::ModelLoader(large.files(), true));
  check_error({ErrorCode::memory, "model.safetensors", "", {}}, [&] { detail::ModelLoader(large.files()); });
}

TEST_CASE("weights that are loaded into an int8 model are rounded like those of a file", "[models][int8]") {
  const auto model = loaded(bert()), other = loaded(stock("tiny-bert"), true);
  const auto floats = state_of(*loaded(stock("tiny-bert")));
  StateView state;
  for (const auto& [name, values] : floats) state.emplace(name, TensorView(values.data.data(), values.dims));
  std::vector<float> ones(32 * 32, 1.0F);
  model->load_state({{kQuery, TensorView(ones.data(), {32, 32})}}, false);
  CHECK(state_of(*model).at(kQuery).data == ones);
  model->load_state(state, true);
  check_same(*model, *other);

  std::vector<float> bad(32 * 32, 2.0F);
  bad[700] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> norm(32, 5.0F);
  const StateView edit{{"bert.embeddings.LayerNorm.weight", TensorView(norm.data(), {32})}, {kQuery, TensorView(bad.data(), {32, 32})}};
  check_error({ErrorCode::format, "load_state_dict", kQuery, {"NaN"}}, [&] { model->load_state(edit, false); });
  check_same(*model, *other);
}

}  // namespace models_int8_files_test
}  // namespace attn::test
