#include "attn/c.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "attn/attn.hpp"
#include "support/random.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
using Tensors = std::unique_ptr<attn_tensors, Free<attn_tensors_free>>;
using Failure = std::unique_ptr<attn_error, Free<attn_error_free>>;

template <class T>
T* handle_of(void (*)(T*));

template <auto kFree, class F, class... Given>
auto made(F f, Given... given) {
  using Handle = decltype(handle_of(kFree));
  Handle made = nullptr;
  attn_error* error = nullptr;
  const attn_status status = f(given..., &made, &error);
  INFO(attn_error_message(error));
  REQUIRE(status == ATTN_OK);
  REQUIRE(error == nullptr);
  REQUIRE(made != nullptr);
  return std::unique_ptr<std::remove_pointer_t<Handle>, Free<kFree>>(made);
}

attn_tensor find(const Tensors& tensors, const std::string& name) {
  INFO(name);
  attn_tensor tensor{};
  REQUIRE(attn_tensors_get(tensors.get(), name.c_str(), &tensor));
  return tensor;
}

struct View : attn_view {
  std::vector<std::int64_t> sizes, steps;
  template <class E>
  explicit View(const E& tensor) : sizes(tensor.shape().begin(), tensor.shape().end()), steps(tensor.strides().begin(), tensor.strides().end()) {
    data = tensor.data() + tensor.data_offset();
    rank = sizes.size();
    dims = sizes.data();
    strides = steps.data();
  }
  View(const View&) = delete;
};

template <class E>
void check_same(const Tensors& tensors, const std::string& name, const E& expected) {
  const attn_tensor tensor = find(tensors, name);
  using T = typename E::value_type;
  REQUIRE(tensor.dtype == (std::is_same_v<T, float> ? ATTN_FLOAT32 : std::is_same_v<T, std::int32_t> ? ATTN_INT32 : ATTN_UINT8));
  REQUIRE(std::vector<std::int64_t>(tensor.dims, tensor.dims + tensor.rank) ==
          std::vector<std::int64_t>(expected.shape().begin(), expected.shape().end()));
  const auto* values = static_cast<const T*>(tensor.data);
  CHECK(std::memcmp(values, expected.data(), expected.size() * sizeof(T)) == 0);
}

template <std::size_t N>
Tensor<N> drawn(Generator& random, const std::array<std::size_t, N>& shape) {
  Tensor<N> x(shape);
  for (float& value : x) value = random.normal();
  return x;
}

template <class F>
std::string refused(attn_status expected, F f) {
  attn_error* error = nullptr;
  const attn_status status = f(&error);
  const Failure kept(error);
  CHECK(attn_status_name(status) == std::string(attn_status_name(expected)));
  REQUIRE(error != nullptr);
  CHECK(attn_error_code(error) == expected);
  CHECK(nlohmann::json::parse(attn_error_detail(error)).is_object());
  CHECK(f(nullptr) == expected);
  return attn_error_message(error);
}

attn_text text_of(const std::string& text) { return {text.data(), text.size()}; }

auto sentiment(attn_weights weights = ATTN_WEIGHTS_AS_STORED) {
  const std::string folder = testdata("models/sentiment").string();
  return made<attn_text_model_free>(attn_text_model_load, folder.c_str(), weights);
}

}  // namespace

TEST_CASE("C: attention has the bits of the C++ interface, including weights, traces, masks and gaps between rows", "[c]") {
  Generator random(11);
  const auto q = drawn<4>(random, {2, 4, 5, 8}), k = drawn<4>(random, {2, 2, 7, 8}), v = drawn<4>(random, {2, 2, 7, 6});
  const xt::xtensor<std::uint8_t, 2> allowed{
      {1, 1, 0, 1, 1, 1, 1}, {1, 0, 1, 1, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0}, {1, 1, 1, 0, 0, 0, 1}};
  AttentionOptions expected;
  expected.mask = Mask::attend(allowed);
  expected.is_causal = true;
  expected.scale = 0.5F;
  expected.need_weights = expected.enable_gqa = true;
  expected.softcap = 2;
  expected.window = Window{3, 1};
  expected.trace = {TraceName::scores, TraceName::context};
  const auto result = scaled_dot_product_attention(q, k, v, expected);

  const std::int64_t dims[] = {5, 7};
  const attn_mask mask{ATTN_MASK_ATTEND, allowed.data(), nullptr, 2, dims};
  const char* trace[] = {"scores", "context"};
  attn_attention_options options;
  attn_attention_options_init(&options);
  options.mask = &mask;
  options.is_causal = options.need_weights = options.enable_gqa = true;
  options.scale = 0.5F;
  options.softcap = 2;
  options.window_left = 3;
  options.window_right = 1;
  options.trace = trace;
  options.trace_count = 2;
  // Column-major keys must be copied.
  Tensor<4> turned(std::array<std::size_t, 4>{2, 2, 8, 7});
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t i = 0; i < 7; ++i)
        for (std::size_t j = 0; j < 8; ++j) turned(b, h, j, i) = k(b, h, i, j);
  const View query(q), value(v);
  const std::int64_t key_dims[] = {2, 2, 7, 8}, key_strides[] = {112, 56, 1, 7};
  const attn_view key{turned.data(), 4, key_dims, key_strides};
  const auto call = [&](const attn_attention_options* given) {
    return made<attn_tensors_free>(attn_scaled_dot_product_attention, &query, &key, &value, given);
  };
  const Tensors c = call(&options);
  CHECK(attn_tensors_count(c.get()) == 4);
  check_same(c, "output", result.output);
  check_same(c, "weights", *result.weights);
  check_same(c, "trace.scores", result.trace->at(TraceName::scores));
  check_same(c, "trace.context", result.trace->at(TraceName::context));

  SECTION("invalid arguments are reported, and nothing is written") {
    attn_tensors* untouched = c.get();
    const auto attend = [&](const attn_view* a, const attn_attention_options& with) {
      return [&, a](attn_error** error) { return attn_scaled_dot_product_attention(a, &key, &value, &with, &untouched, error); };
    };
    CHECK(refused(ATTN_ERROR_ARGUMENT, attend(nullptr, options)).find("query") != std::string::npos);
    attn_view wrong = query;
    wrong.rank = 9;
    CHECK(refused(ATTN_ERROR_SHAPE, attend(&wrong, options)).find("at most 8") != std::string::npos);
    const std::int64_t negative[] = {2, 4, -5, 8};
    wrong = query;
    wrong.dims = negative;
    refused(ATTN_ERROR_SHAPE, attend(&wrong, options));
    wrong = query;
    wrong.data = nullptr;
    refused(ATTN_ERROR_ARGUMENT, attend(&wrong, options));
    attn_attention_options bad = options;
    bad.enable_gqa = false;
    refused(ATTN_ERROR_SHAPE, attend(&query, bad));
    bad = options;
    const char* unknown[] = {"score"};
    bad.trace = unknown;
    bad.trace_count = 1;
    CHECK(refused(ATTN_ERROR_ARGUMENT, attend(&query, bad)).find("masked_scores") != std::string::npos);
    attn_mask none = mask;
    none.flags = nullptr;
    bad = options;
    bad.mask = &none;
    refused(ATTN_ERROR_MASK, attend(&query, bad));
    none = mask;
    none.kind = static_cast<attn_mask_kind>(7);
    refused(ATTN_ERROR_MASK, attend(&query, bad));
    bad = options;
    bad.fully_masked = static_cast<attn_fully_masked>(3);
    refused(ATTN_ERROR_CONFIG, attend(&query, bad));
    CHECK(untouched == c.get());
    refused(ATTN_ERROR_ARGUMENT,
            [&](attn_error** error) { return attn_scaled_dot_product_attention(&query, &key, &value, &options, nullptr, error); });
    attn_set_memory_limit(1000);
    refused(ATTN_ERROR_MEMORY, attend(&query, options));
    attn_set_memory_limit(UINT64_MAX);
    check_same(call(&options), "output", result.output);
  }
}

TEST_CASE("C: layers load and return state dictionaries, and forward as the C++ layers do", "[c]") {
  Generator random(12);
  const auto x = drawn<3>(random, {2, 5, 12}), other = drawn<3>(random, {2, 3, 12});
  const MultiHeadAttention layer({.embed_dim = 12, .num_heads = 3, .num_key_value_heads = 1});
  attn_multi_head_attention_options options;
  attn_multi_head_attention_options_init(&options);
  options.embed_dim = 12;
  options.num_heads = 3;
  options.num_key_value_heads = 1;
  const auto c = made<attn_multi_head_attention_free>(attn_multi_head_attention_new, &options);
  const auto state = layer.state_dict();
  const Tensors fresh = made<attn_tensors_free>(attn_multi_head_attention_state_dict, c.get());
  REQUIRE(attn_tensors_count(fresh.get()) == state.size());
  std::size_t index = 0;
  for (const auto& [name, tensor] : state) {
    CHECK(attn_tensors_name(fresh.get(), index++) == name);
    check_same(fresh, name, tensor);
  }
  CHECK(attn_tensors_name(fresh.get(), index) == nullptr);

  MultiHeadAttention changed({.embed_dim = 12, .num_heads = 3, .num_key_value_heads = 1});
  changed.initialize({.seed = 5});
  const Tensors weights = made<attn_tensors_free>(attn_tensors_new);
  for (const auto& [name, tensor] : changed.state_dict()) {
    const View view(tensor);
    REQUIRE(attn_tensors_set(weights.get(), name.c_str(), &view, nullptr) == ATTN_OK);
  }
  REQUIRE(attn_multi_head_attention_load_state_dict(c.get(), weights.get(), true, nullptr) == ATTN_OK);
  const View query(x), memory(other);
  const auto forward = [&](const attn_view* key) {
    return made<attn_tensors_free>(attn_multi_head_attention_forward, c.get(), &query, key, key, nullptr);
  };
  check_same(forward(nullptr), "output", changed.forward(x).output);
  check_same(forward(&memory), "output", changed.forward(x, other, other).output);
  refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) {
    attn_tensors* results = nullptr;
    return attn_multi_head_attention_forward(c.get(), &query, &memory, nullptr, nullptr, &results, error);
  });

  const View view(x);
  REQUIRE(attn_tensors_set(weights.get(), "surplus", &view, nullptr) == ATTN_OK);
  CHECK(refused(ATTN_ERROR_MISMATCH, [&](attn_error** error) {
          return attn_multi_head_attention_load_state_dict(c.get(), weights.get(), true, error);
        }).find("surplus") != std::string::npos);
  check_same(forward(nullptr), "output", changed.forward(x).output);

  attn_transformer_encoder_layer_options of_layer;
  attn_transformer_encoder_layer_options_init(&of_layer);
  of_layer.d_model = 12;
  of_layer.nhead = 3;
  of_layer.dim_feedforward = 16;
  of_layer.activation = "gelu";
  attn_transformer_encoder_options of_encoder;
  attn_transformer_encoder_options_init(&of_encoder);
  of_encoder.layer = &of_layer;
  of_encoder.num_layers = 2;
  of_encoder.final_norm = true;
  const auto encoder = made<attn_transformer_encoder_free>(attn_transformer_encoder_new, &of_encoder);
  const TransformerEncoder expected(
      {.layer = {.d_model = 12, .nhead = 3, .dim_feedforward = 16, .activation = Activation::gelu}, .num_layers = 2, .final_norm = true});
  const char* trace[] = {"norm2"};
  attn_encoder_forward_options forward_options;
  attn_encoder_forward_options_init(&forward_options);
  forward_options.output_attentions = forward_options.output_hidden_states = true;
  forward_options.trace = trace;
  forward_options.trace_count = 1;
  EncoderForwardOptions wanted{.output_attentions = true, .output_hidden_states = true};
  wanted.trace = {.names = {TraceName::norm2}};
  const auto result = expected.forward(x, wanted);
  const Tensors encoded = made<attn_tensors_free>(attn_transformer_encoder_forward, encoder.get(), &query, &forward_options);
  CHECK(attn_tensors_count(encoded.get()) == 1 + 2 + 3 + 2);
  check_same(encoded, "output", result.output);
  for (std::size_t i = 0; i < 2; ++i) {
    check_same(encoded, "attentions." + std::to_string(i), (*result.attentions)[i]);
    check_same(encoded, "trace." + std::to_string(i) + ".norm2", result.trace->at(static_cast<std::int64_t>(i)).at(TraceName::norm2));
  }
  for (std::size_t i = 0; i < 3; ++i) check_same(encoded, "hidden_states." + std::to_string(i), (*result.hidden_states)[i]);
  of_layer.activation = "gelo";
  CHECK(refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) {
          attn_transformer_encoder* none = nullptr;
          return attn_transformer_encoder_new(&of_encoder, &none, error);
        }).find("gelu_tanh") != std::string::npos);
}

TEST_CASE("C: options that were initialised for another size of their struct are refused, and nothing is written past it", "[c]") {
  Generator random(13);
  const auto numbers = drawn<3>(random, {1, 4, 8});
  const View x(numbers);
  attn_attention_options options;
  const auto attend = [&](attn_error** error) {
    attn_tensors* results = nullptr;
    const attn_status status = attn_scaled_dot_product_attention(&x, &x, &x, &options, &results, error);
    attn_tensors_free(results);
    return status;
  };
  attn_attention_options_init(&options);
  CHECK(options.size == sizeof options);
  CHECK(attend(nullptr) == ATTN_OK);
  for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t), sizeof options - 1, sizeof options + 1, SIZE_MAX}) {
    options.size = size;
    const std::string message = refused(ATTN_ERROR_ARGUMENT, attend);
    CHECK(message.find("options.size") != std::string::npos);
    CHECK(message.find("_init()") != std::string::npos);
  }
  for (const std::size_t size : {offsetof(attn_attention_options, trace), sizeof options + 24}) {
    std::vector<unsigned char> bytes(size + 8, 0xA5);
    (attn_attention_options_init)(reinterpret_cast<attn_attention_options*>(bytes.data()), size);
    std::size_t stored = 0;
    std::memcpy(&stored, bytes.data(), sizeof stored);
    CHECK(stored == size);
    for (std::size_t i = sizeof options; i < size; ++i) CHECK(bytes[i] == 0);
    for (std::size_t i = size; i < bytes.size(); ++i) CHECK(bytes[i] == 0xA5);
    std::memcpy(&options, bytes.data(), std::min(size, sizeof options));
    refused(ATTN_ERROR_ARGUMENT, attend);
  }
  attn_transformer_encoder_options stack;
  attn_transformer_encoder_options_init(&stack);
  stack.num_layers = 1;
  const auto encoder = [&](attn_error** error) {
    attn_transformer_encoder* made = nullptr;
    return attn_transformer_encoder_new(&stack, &made, error);
  };
  CHECK(refused(ATTN_ERROR_ARGUMENT, encoder).find("layer") != std::string::npos);
  const attn_transformer_encoder_layer_options not_initialised{};
  stack.layer = &not_initialised;
  CHECK(refused(ATTN_ERROR_ARGUMENT, encoder).find("layer.size") != std::string::npos);
}

TEST_CASE("C: text models embed, classify, forward and explain as in C++", "[c]") {
  auto expected = TextModel::load(testdata("models/sentiment"));
  const auto model = sentiment();
  const std::vector<std::string> texts{"A wonderful film.", "", "Not good, and far too long: two hours of nothing."};
  std::vector<attn_text> given;
  for (const std::string& text : texts) given.push_back(text_of(text));
  CHECK(attn_text_model_max_length(model.get()) == expected.max_length());
  for (std::size_t i = 0; i < expected.labels().size(); ++i) CHECK(attn_text_model_label(model.get(), i) == expected.labels()[i]);
  CHECK(attn_text_model_label(model.get(), expected.labels().size()) == nullptr);

  attn_embed_options embed;
  attn_embed_options_init(&embed);
  embed.pooling = "cls";
  embed.normalize = 1;
  const auto vectors = [&](const attn_text_model* of, const attn_embed_options* options) {
    return made<attn_tensors_free>(attn_text_model_embed, of, given.data(), given.size(), options);
  };
  check_same(vectors(model.get(), nullptr), "embeddings", expected.embed(texts));
  check_same(vectors(model.get(), &embed), "embeddings", expected.embed(texts, {.pooling = Pooling::cls, .normalize = true}));

  const Tensors classes = made<attn_tensors_free>(attn_text_model_classify, model.get(), given.data(), nullptr, given.size(), nullptr);
  const auto answers = expected.classify(texts);
  const auto* scores = static_cast<const float*>(find(classes, "scores").data);
  const auto* labels = static_cast<const std::int32_t*>(find(classes, "labels").data);
  for (std::size_t i = 0; i < answers.size(); ++i)
    for (std::size_t j = 0; j < answers[i].size(); ++j) {
      CHECK(scores[2 * i + j] == answers[i][j].score);
      CHECK(attn_text_model_label(model.get(), static_cast<std::size_t>(labels[2 * i + j])) == answers[i][j].label);
    }

  const Tensors encoded = made<attn_tensors_free>(attn_text_model_tokenize, model.get(), given.data(), given.data() + 0, given.size(), 9, true);
  const Encoding pairs = expected.tokenize_pairs({{texts[0], texts[0]}, {texts[1], texts[1]}, {texts[2], texts[2]}}, {.max_length = 9});
  check_same(encoded, "input_ids", pairs.input_ids);
  check_same(encoded, "token_type_ids", pairs.token_type_ids);
  check_same(encoded, "attention_mask", pairs.attention_mask);
  const attn_tensor offsets = find(encoded, "offsets");
  REQUIRE(offsets.dtype == ATTN_INT64);
  const std::size_t L = pairs.input_ids.shape(1);
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t i = 0; i < L; ++i) {
      const auto* range = static_cast<const std::int64_t*>(offsets.data) + 2 * (b * L + i);
      const auto wanted = i < pairs.offsets[b].size() ? pairs.offsets[b][i] : std::nullopt;
      CHECK(std::pair(range[0], range[1]) == wanted.value_or(std::pair<std::int64_t, std::int64_t>(-1, -1)));
    }
  char* token = nullptr;
  REQUIRE(attn_text_model_id_to_token(model.get(), pairs.input_ids(0, 0), &token, nullptr) == ATTN_OK);
  CHECK(token == std::string("[CLS]"));
  attn_string_free(token);
  refused(ATTN_ERROR_OUT_OF_RANGE, [&](attn_error** error) { return attn_text_model_id_to_token(model.get(), -1, &token, error); });

  const Encoding inputs = expected.tokenize({texts[0]});
  xt::xtensor<float, 2> heads = xt::ones<float>({2, 4});
  heads(1, 3) = 0;
  TextForwardOptions wanted{.output_attentions = true, .output_hidden_states = true, .head_mask = TensorCopy(heads)};
  wanted.trace = {.names = {TraceName::merged}};
  const TextModelOutput result = expected.forward(inputs, wanted);
  const View head_mask(heads);
  const char* trace[] = {"merged"};
  attn_text_forward_options options;
  attn_text_forward_options_init(&options);
  options.output_attentions = options.output_hidden_states = true;
  options.head_mask = &head_mask;
  options.trace = trace;
  options.trace_count = 1;
  const auto forward = [&](const std::int32_t* ids, std::int64_t length, attn_tensors** to, attn_error** error) {
    return attn_text_model_forward(model.get(), ids, nullptr, nullptr, 1, length, &options, to, error);
  };
  attn_tensors* raw = nullptr;
  REQUIRE(forward(inputs.input_ids.data(), static_cast<std::int64_t>(inputs.input_ids.size()), &raw, nullptr) == ATTN_OK);
  const Tensors output(raw);
  check_same(output, "last_hidden_state", result.last_hidden_state);
  check_same(output, "logits", *result.logits);
  check_same(output, "attentions.1", (*result.attentions)[1]);
  check_same(output, "hidden_states.2", (*result.hidden_states)[2]);
  check_same(output, "trace.1.merged", result.trace->at(1).at(TraceName::merged));
  const std::int32_t unknown = 1 << 20;
  refused(ATTN_ERROR_OUT_OF_RANGE, [&](attn_error** error) { return forward(&unknown, 1, &raw, error); });
  refused(ATTN_ERROR_SHAPE, [&](attn_error** error) { return forward(&unknown, -1, &raw, error); });
  refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return forward(nullptr, 1, &raw, error); });
  CHECK(raw == output.get());

  const auto attribute = [&](const char* method, const char* target, attn_tensors** to, attn_error** error) {
    return attn_text_model_attribute(model.get(), given.data(), method, target, to, error);
  };
  REQUIRE(attribute("integrated_gradients", "negative", &raw, nullptr) == ATTN_OK);
  const Tensors explained(raw);
  const TextAttribution attribution = expected.attribute(texts[0], {.target = "negative"});
  check_same(explained, "scores", xt::xtensor<float, 1>(xt::adapt(attribution.scores)));
  CHECK(*static_cast<const float*>(find(explained, "delta").data) == static_cast<float>(*attribution.delta));
  refused(ATTN_ERROR_OUT_OF_RANGE, [&](attn_error** error) { return attribute("leave_one_out", "neutral", &raw, error); });
  refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attribute("shap", nullptr, &raw, error); });

  SECTION("text that is not UTF-8 is refused, and the model stays usable") {
    const attn_text bad{"\xff\xfe", 2};
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_embed(model.get(), &bad, 1, nullptr, &raw, error); });
    check_same(vectors(model.get(), nullptr), "embeddings", expected.embed(texts));
  }

  SECTION("weights are changed, saved as int8 and loaded again") {
    const Tensors state = made<attn_tensors_free>(attn_text_model_state_dict, model.get());
    auto bias = expected.get_parameter<1>("classifier.bias");
    check_same(state, "classifier.bias", bias);
    bias(0) += 1;
    const View changed(bias);
    const Tensors one = made<attn_tensors_free>(attn_tensors_new);
    REQUIRE(attn_tensors_set(one.get(), "classifier.bias", &changed, nullptr) == ATTN_OK);
    refused(ATTN_ERROR_MISMATCH, [&](attn_error** error) { return attn_text_model_load_state_dict(model.get(), one.get(), true, error); });
    REQUIRE(attn_text_model_load_state_dict(model.get(), one.get(), false, nullptr) == ATTN_OK);
    expected.load_state_dict({{"classifier.bias", AnyTensor(bias)}}, false);
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "attn_c_test";
    std::filesystem::remove_all(folder);
    REQUIRE(attn_text_model_save_pretrained(model.get(), folder.string().c_str(), ATTN_FILE_INT8, nullptr) == ATTN_OK);
    const auto again = made<attn_text_model_free>(attn_text_model_load, folder.string().c_str(), ATTN_WEIGHTS_AS_STORED);
    expected.save_pretrained(folder, {.weights = FileWeights::int8});
    check_same(vectors(again.get(), nullptr), "embeddings", TextModel::load(folder).embed(texts));
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("C: entities, masks, answers, ranks and decoded ids are those of the C++ interface", "[c][tasks]") {
  const auto load = [](const std::string& name) {
    const std::string folder = testdata("models/" + name).string();
    return made<attn_text_model_free>(attn_text_model_load, folder.c_str(), ATTN_WEIGHTS_AS_STORED);
  };
  const auto texts_of = [](const Tensors& results, const char* name) {
    std::vector<std::string> texts;
    for (attn_text text{}; attn_tensors_text(results.get(), name, texts.size(), &text); texts.emplace_back(text.data, text.size))
      REQUIRE(text.data[text.size] == '\0');
    return texts;
  };
  const auto numbers_of = []<class T>(const Tensors& results, const std::string& name, attn_dtype dtype, T) {
    const attn_tensor tensor = find(results, name);
    REQUIRE(tensor.dtype == dtype);
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < tensor.rank; ++axis) count *= tensor.dims[axis];
    const auto* data = static_cast<const T*>(tensor.data);
    return std::vector<T>(data, data + count);
  };
  const auto floats = [&](const Tensors& results, const std::string& name) { return numbers_of(results, name, ATTN_FLOAT32, 0.0F); };
  const auto longs = [&](const Tensors& results, const std::string& name) { return numbers_of(results, name, ATTN_INT64, std::int64_t{}); };
  const auto dims_of = [](const attn_tensor& tensor) { return std::vector<std::int64_t>(tensor.dims, tensor.dims + tensor.rank); };
  attn_tensors* raw = nullptr;

  SECTION("entities") {
    const auto model = load("tiny-bert-ner");
    const TextModel expected = TextModel::load(testdata("models/tiny-bert-ner"));
    CHECK(attn_text_model_task(model.get()) == std::string("token-classification"));
    std::vector<std::string> texts{"A happy person smiles at the child.", "", "\u00dcberraschend sch\u00f6n, was it?"};
    for (int i = 0; i < 60; ++i) texts[0] += " The film was good!";
    std::vector<attn_text> given;
    for (const std::string& text : texts) given.push_back(text_of(text));
    const auto check = [&](const attn_classify_tokens_options* options, const ClassifyTokensOptions& wanted) {
      const Tensors results = made<attn_tensors_free>(attn_text_model_classify_tokens, model.get(), given.data(), given.size(), options);
      std::vector<std::int64_t> rows, offsets;
      std::vector<float> scores;
      std::vector<std::string> labels;
      const auto found = expected.classify_tokens(texts, wanted);
      for (std::size_t i = 0; i < found.size(); ++i)
        for (const Entity& each : found[i]) {
          rows.push_back(static_cast<std::int64_t>(i));
          offsets.insert(offsets.end(), {each.start, each.end});
          scores.push_back(each.score);
          labels.push_back(each.label);
        }
      CHECK(longs(results, "rows") == rows);
      CHECK(longs(results, "offsets") == offsets);
      CHECK(dims_of(find(results, "offsets")) == std::vector<std::int64_t>{static_cast<std::int64_t>(rows.size()), 2});
      CHECK(floats(results, "scores") == scores);
      CHECK(texts_of(results, "labels") == labels);
      return rows.size();
    };
    const std::size_t cut = check(nullptr, {});
    attn_classify_tokens_options options;
    attn_classify_tokens_options_init(&options);
    CHECK(check(&options, {}) == cut);
    options.stride = 8;
    options.aggregation = "first";
    options.batch_size = 2;
    CHECK(check(&options, {.aggregation = Aggregation::first, .stride = 8}) > cut);
    const std::string first = expected.classify_tokens(texts, {.aggregation = Aggregation::none, .ignore_labels = {}})[0][0].label;
    const char* ignored[] = {"O", first.c_str()};
    attn_classify_tokens_options_init(&options);
    options.aggregation = "none";
    options.ignore_labels = ignored;
    options.ignore_label_count = 0;
    const std::size_t all = check(&options, {.aggregation = Aggregation::none, .ignore_labels = {}});
    options.ignore_label_count = 2;
    CHECK(check(&options, {.aggregation = Aggregation::none, .ignore_labels = {"O", first}}) < all);
    given.clear();
    texts.clear();
    CHECK(check(nullptr, {}) == 0);
    const auto refuse = [&](attn_status status) {
      return refused(status, [&](attn_error** error) { return attn_text_model_classify_tokens(model.get(), nullptr, 0, &options, &raw, error); });
    };
    options.stride = 1;
    CHECK(refuse(ATTN_ERROR_CONFIG).find("stride") != std::string::npos);
    options.aggregation = "last";
    refuse(ATTN_ERROR_ARGUMENT);
    attn_classify_tokens_options_init(&options);
    options.ignore_labels = nullptr;
    refuse(ATTN_ERROR_ARGUMENT);
  }

  SECTION("masks") {
    const auto model = load("tiny-bert-mlm");
    const TextModel expected = TextModel::load(testdata("models/tiny-bert-mlm"));
    const std::string text = "A [MASK] person smiles at the [MASK].", good = "good", child = "child";
    const attn_text given = text_of(text), targets[] = {text_of(good), text_of(child)};
    const auto check = [&](const attn_fill_mask_options* options, const FillMaskOptions& wanted) {
      const Tensors results = made<attn_tensors_free>(attn_text_model_fill_mask, model.get(), &given, options);
      std::vector<std::int64_t> ids;
      std::vector<float> scores;
      std::vector<std::string> tokens, texts;
      for (const auto& of_mask : expected.fill_mask(text, wanted))
        for (const FilledMask& each : of_mask) {
          ids.push_back(each.id);
          scores.push_back(each.score);
          tokens.push_back(each.token);
          texts.push_back(each.text);
        }
      CHECK(longs(results, "ids") == ids);
      CHECK(floats(results, "scores") == scores);
      CHECK(dims_of(find(results, "scores")) == std::vector<std::int64_t>{2, static_cast<std::int64_t>(ids.size() / 2)});
      CHECK(texts_of(results, "tokens") == tokens);
      CHECK(texts_of(results, "texts") == texts);
    };
    check(nullptr, {});
    attn_fill_mask_options options;
    attn_fill_mask_options_init(&options);
    check(&options, {});
    options.top_k = 3;
    options.targets = targets;
    options.target_count = 2;
    check(&options, {.top_k = 3, .targets = {good, child}});
    options.batch_size = 0;
    refused(ATTN_ERROR_CONFIG, [&](attn_error** error) { return attn_text_model_fill_mask(model.get(), &given, &options, &raw, error); });
    options.batch_size = 1;
    options.top_k = 0;
    refused(ATTN_ERROR_CONFIG, [&](attn_error** error) { return attn_text_model_fill_mask(model.get(), &given, &options, &raw, error); });
    const attn_text plain = text_of(good);
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_fill_mask(model.get(), &plain, nullptr, &raw, error); });
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_fill_mask(model.get(), nullptr, nullptr, &raw, error); });
  }

  SECTION("answers") {
    const auto model = load("tiny-bert-qa");
    const TextModel expected = TextModel::load(testdata("models/tiny-bert-qa"));
    const std::string question = "Who smiles?";
    std::string context = "\u00dcberraschend sch\u00f6n: a happy person smiles at the child.";
    for (int i = 0; i < 30; ++i) context += " The film was good!";
    const attn_text asked = text_of(question), given = text_of(context);
    const auto check = [&](const attn_answer_options* options, const AnswerOptions& wanted) {
      const Tensors results = made<attn_tensors_free>(attn_text_model_answer, model.get(), &asked, &given, options);
      std::vector<std::int64_t> offsets;
      std::vector<float> scores;
      std::vector<std::string> texts;
      for (const Answer& each : expected.answer(question, context, wanted)) {
        offsets.insert(offsets.end(), {each.start, each.end});
        scores.push_back(each.score);
        texts.push_back(each.text);
      }
      CHECK(longs(results, "offsets") == offsets);
      CHECK(floats(results, "scores") == scores);
      CHECK(texts_of(results, "texts") == texts);
      return texts.size();
    };
    CHECK(check(nullptr, {}) == 1);
    attn_answer_options options;
    attn_answer_options_init(&options);
    CHECK(check(&options, {}) == 1);
    options.top_k = 4;
    options.max_answer_length = 3;
    options.stride = 5;
    options.allow_empty = true;
    CHECK(check(&options, {.top_k = 4, .max_answer_length = 3, .stride = 5, .allow_empty = true}) > 1);
    options.max_length = 24;
    options.batch_size = 2;
    CHECK(check(&options, {.top_k = 4, .max_answer_length = 3, .stride = 5, .allow_empty = true, .max_length = 24}) > 1);
    const attn_text empty{nullptr, 0};
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_answer(model.get(), &empty, &given, nullptr, &raw, error); });
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_answer(model.get(), nullptr, &given, nullptr, &raw, error); });
  }

  SECTION("ranks") {
    TextModel expected = TextModel::load(testdata("models/tiny-bert-cls"));
    expected.fine_tune({{.text = "good", .label = 1.0}, {.text = "bad", .label = 0.0}}, {.epochs = 1, .labels = {"relevant"}, .seed = 5});
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "attn_c_rank_test";
    expected.save_pretrained(folder);
    const auto model = made<attn_text_model_free>(attn_text_model_load, folder.string().c_str(), ATTN_WEIGHTS_AS_STORED);
    std::filesystem::remove_all(folder);
    const std::string query = "Was it good?";
    const std::vector<std::string> documents{"It was bad.", "The film was good!", "", "A happy person smiles at the child."};
    const attn_text asked = text_of(query);
    std::vector<attn_text> given;
    for (const std::string& document : documents) given.push_back(text_of(document));
    const auto check = [&](const attn_rank_options* options, const RankOptions& wanted) {
      const Tensors results = made<attn_tensors_free>(attn_text_model_rank, model.get(), &asked, given.data(), given.size(), options);
      std::vector<std::int64_t> indices;
      std::vector<float> scores;
      for (const RankedDocument& each : expected.rank(query, documents, wanted)) {
        indices.push_back(each.index);
        scores.push_back(each.score);
      }
      CHECK(longs(results, "indices") == indices);
      CHECK(floats(results, "scores") == scores);
      return indices.size();
    };
    CHECK(check(nullptr, {}) == 4);
    attn_rank_options options;
    attn_rank_options_init(&options);
    CHECK(check(&options, {}) == 4);
    options.max_length = 8;
    options.top_k = 3;
    options.batch_size = 2;
    CHECK(check(&options, {.max_length = 8, .top_k = 3}) == 3);
    options.prompt = "query: ";
    options.add_special_tokens = false;
    options.truncation_side = "left";
    CHECK(check(&options, {.max_length = 8, .top_k = 3, .add_special_tokens = false, .truncation_side = Side::left, .prompt = "query: "}) == 3);
    options.truncation_side = "middle";
    refused(ATTN_ERROR_ARGUMENT,
            [&](attn_error** error) { return attn_text_model_rank(model.get(), &asked, given.data(), 1, &options, &raw, error); });
    const auto other = sentiment();
    refused(ATTN_ERROR_UNSUPPORTED, [&](attn_error** error) { return attn_text_model_rank(other.get(), &asked, nullptr, 0, nullptr, &raw, error); });
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_rank(model.get(), &asked, nullptr, 1, nullptr, &raw, error); });
  }

  SECTION("ids") {
    const auto model = load("tiny-bert");
    const TextModel expected = TextModel::load(testdata("models/tiny-bert"));
    CHECK(attn_text_model_task(model.get()) == std::string("text-classification"));
    CHECK(attn_text_model_task(nullptr) == nullptr);
    CHECK(attn_text_model_note(model.get(), expected.notes().size()) == nullptr);
    CHECK(attn_text_model_note(nullptr, 0) == nullptr);
    char* mask = nullptr;
    REQUIRE(attn_text_model_mask_token(model.get(), &mask, nullptr) == ATTN_OK);
    CHECK(mask == expected.mask_token());
    attn_string_free(mask);
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_mask_token(model.get(), nullptr, error); });
    const Encoding encoding = expected.tokenize({"Was it bad?"});
    const std::vector<std::int64_t> ids(encoding.input_ids.begin(), encoding.input_ids.end());
    for (const bool skip : {false, true}) {
      char* text = nullptr;
      REQUIRE(attn_text_model_decode(model.get(), encoding.input_ids.data(), ids.size(), skip, &text, nullptr) == ATTN_OK);
      CHECK(text == expected.decode(ids, skip));
      CHECK((std::string(text).find("[CLS]") == std::string::npos) == skip);
      attn_string_free(text);
    }
    char* text = nullptr;
    REQUIRE(attn_text_model_decode(model.get(), nullptr, 0, false, &text, nullptr) == ATTN_OK);
    CHECK(text == std::string());
    attn_string_free(text);
    refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_decode(model.get(), nullptr, 1, false, &text, error); });
  }
  CHECK(raw == nullptr);
  CHECK(!attn_tensors_text(nullptr, "labels", 0, nullptr));
}

TEST_CASE("C: classify returns the indices of labels with equal names, at most top_k of them", "[c][tasks]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("attn-c-labels-" + std::to_string(std::random_device()()));
  std::filesystem::copy(testdata("models/tiny-bert"), folder);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config["id2label"] = {{"0", "same"}, {"1", "same"}, {"2", "other"}};
  std::ofstream(folder / "config.json") << config;
  std::ofstream(folder / "modules.json") << "[]";
  std::ofstream(folder / "sentence_bert_config.json") << R"({"processing_kwargs":{"text":{"truncation":false}}})";
  const auto model = made<attn_text_model_free>(attn_text_model_load, folder.string().c_str(), ATTN_WEIGHTS_AS_STORED);
  REQUIRE(attn_text_model_note(model.get(), 0) != nullptr);
  CHECK(attn_text_model_note(model.get(), 0) == std::string("sentence_bert_config.json: processing_kwargs is not used"));
  CHECK(attn_text_model_note(model.get(), 1) == nullptr);
  const TextModel expected = TextModel::load(testdata("models/tiny-bert"));
  const std::vector<std::string>& names = expected.labels();
  for (const std::string text : {"A happy person smiles.", "Was it bad?"}) {
    const attn_text given = text_of(text);
    const Tensors results = made<attn_tensors_free>(attn_text_model_classify, model.get(), &given, nullptr, std::size_t{1}, nullptr);
    const auto* const labels = static_cast<const std::int32_t*>(find(results, "labels").data);
    const auto scores = expected.classify({text})[0];
    for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[static_cast<std::size_t>(labels[i])] == scores[i].label);
    attn_classify_options options;
    attn_classify_options_init(&options);
    options.top_k = 2;
    options.truncation_side = "left";
    const Tensors best = made<attn_tensors_free>(attn_text_model_classify, model.get(), &given, nullptr, std::size_t{1}, &options);
    const attn_tensor best_labels = find(best, "labels");
    CHECK(std::vector<std::int64_t>(best_labels.dims, best_labels.dims + best_labels.rank) == std::vector<std::int64_t>{1, 2});
    CHECK(std::equal(labels, labels + 2, static_cast<const std::int32_t*>(best_labels.data)));
  }
  std::filesystem::remove_all(folder);
}

static_assert(std::is_same_v<std::underlying_type_t<attn_weights>, int> && std::is_same_v<std::underlying_type_t<attn_mask_kind>, int> &&
                  std::is_same_v<std::underlying_type_t<attn_status>, int> && std::is_same_v<std::underlying_type_t<attn_dtype>, int> &&
                  std::is_same_v<std::underlying_type_t<attn_fully_masked>, int> && std::is_same_v<std::underlying_type_t<attn_file_weights>, int>,
              "a number that is none of an enum's can be looked at");

TEST_CASE("C: a thread that is cancelled during a call ends after the call", "[c]") {
  static std::atomic<bool> began{false};
  pthread_t thread{};
  REQUIRE(pthread_create(
              &thread, nullptr,
              [](void*) -> void* {
                const auto folder = testdata("models/sentiment").string();
                // A thread is cancelled when it reads files.
                while (true) {
                  attn_text_model* model = nullptr;
                  began = true;
                  if (attn_text_model_load(folder.c_str(), ATTN_WEIGHTS_AS_STORED, &model, nullptr) != ATTN_OK) break;
                  attn_text_model_free(model);
                  pthread_testcancel();
                }
                return nullptr;
              },
              nullptr) == 0);
  while (!began) std::this_thread::yield();
  REQUIRE(pthread_cancel(thread) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
}

TEST_CASE("C: NULL handles are allowed, and the process reports its version and architecture", "[c]") {
  attn_error_free(nullptr);
  attn_tensors_free(nullptr);
  attn_text_model_free(nullptr);
  attn_multi_head_attention_free(nullptr);
  attn_transformer_encoder_free(nullptr);
  attn_string_free(nullptr);
  CHECK(attn_tensors_count(nullptr) == 0);
  CHECK(!attn_tensors_get(nullptr, "output", nullptr));
  CHECK(attn_status_name(static_cast<attn_status>(12)) == nullptr);
  CHECK(attn_status_name(static_cast<attn_status>(-1)) == nullptr);
  CHECK(attn_status_name(ATTN_ERROR_OUT_OF_RANGE) == std::string("OUT_OF_RANGE"));
  CHECK(attn_version() == std::string(ATTN_TEST_VERSION));
  const char* arch = nullptr;
  REQUIRE(attn_arch(&arch, nullptr) == ATTN_OK);
  CHECK(arch == std::string(Context::arch()));
  refused(ATTN_ERROR_ARGUMENT, [](attn_error** error) { return attn_arch(nullptr, error); });
  REQUIRE(attn_set_num_threads(3, nullptr) == ATTN_OK);
  CHECK(attn_num_threads() == 3);
  REQUIRE(attn_set_num_threads(1, nullptr) == ATTN_OK);

  attn_tensors* tensors = nullptr;
  CHECK(refused(ATTN_ERROR_FORMAT, [&](attn_error** error) {
          return attn_read_safetensors("/nowhere.safetensors", &tensors, error);
        }).find("/nowhere.safetensors") != std::string::npos);
  attn_text_model* model = nullptr;
  refused(ATTN_ERROR_FORMAT, [&](attn_error** error) { return attn_text_model_load("/nowhere", ATTN_WEIGHTS_AS_STORED, &model, error); });
  refused(ATTN_ERROR_ARGUMENT, [&](attn_error** error) { return attn_text_model_load("/nowhere", static_cast<attn_weights>(9), &model, error); });
  CHECK((tensors == nullptr && model == nullptr));
  const Tensors layer = made<attn_tensors_free>(attn_read_safetensors, testdata("minilm_layer0.safetensors").string().c_str());
  for (const auto& [name, tensor] : read_safetensors(testdata("minilm_layer0.safetensors"))) check_same(layer, name, tensor);
}

}  // namespace attn::test
