// Replaces operator new to count and to fail allocations.
#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#if __has_include(<malloc/malloc.h>)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "attn/attn.hpp"
#include "attn/io/json.hpp"
#include "attn/memory/scratch.hpp"
#include "memory/bytes.hpp"
#include "models/checkpoint.hpp"
#include "support/call_backward.hpp"
#include "support/encoder_case.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/tensors.hpp"

namespace {

std::atomic<std::int64_t> made{0};
std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> bytes{0};
std::atomic<std::int64_t> most_bytes{0};
std::atomic<std::int64_t> countdown{-1};  // the allocation that makes it 0 fails; negative: none fails
std::atomic<bool> failed{false};
std::atomic<std::int64_t> largest{0};
// Bytes asked for in blocks that begin at a cache line: those of AlignedArray.
std::atomic<std::int64_t> line_bytes{0};
std::atomic<std::int64_t> most_line_bytes{0};

std::int64_t size_of_block(void* block) {
#if __has_include(<malloc/malloc.h>)
  return static_cast<std::int64_t>(malloc_size(block));
#else
  return static_cast<std::int64_t>(malloc_usable_size(block));
#endif
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (static_cast<std::int64_t>(size) > largest.load()) largest = static_cast<std::int64_t>(size);
  if (countdown.load() >= 0 && countdown.fetch_sub(1) == 0) {
    failed = true;
    return nullptr;
  }
  void* const block =
      alignment > 0 ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment) : std::malloc(size > 0 ? size : 1);
  if (block == nullptr) return nullptr;
  ++live, ++made;
  bytes += size_of_block(block);
  if (bytes.load() > most_bytes.load()) most_bytes = bytes.load();
  return block;
}
void* allocate_or_throw(std::size_t size, std::size_t alignment = 0) {
  void* const block = allocate(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void release(void* block) {
  if (block != nullptr) --live, bytes -= size_of_block(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
/// The bytes before the block hold its size.
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto before = static_cast<std::size_t>(alignment);
  if (size > PTRDIFF_MAX) throw std::bad_alloc();
  auto* const begin = static_cast<std::size_t*>(allocate_or_throw(size + before, before));
  *begin = size;
  line_bytes += static_cast<std::int64_t>(size);
  if (line_bytes.load() > most_line_bytes.load()) most_line_bytes = line_bytes.load();
  return reinterpret_cast<char*>(begin) + before;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 0); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t alignment) noexcept {
  if (block == nullptr) return;
  auto* const begin = reinterpret_cast<std::size_t*>(static_cast<char*>(block) - static_cast<std::size_t>(alignment));
  line_bytes -= static_cast<std::int64_t>(*begin);
  release(begin);
}
void operator delete(void* block, std::size_t, std::align_val_t alignment) noexcept { operator delete(block, alignment); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }

namespace attn::test {

std::int64_t most_line_bytes_of(const std::function<void()>& call) {
  const std::int64_t before = line_bytes;
  most_line_bytes = before;
  call();
  return most_line_bytes - before;
}

std::int64_t most_bytes_of(const std::function<void()>& call) {
  const std::int64_t before = bytes;
  most_bytes = before;
  call();
  return most_bytes - before;
}

namespace {

enum class End : std::uint8_t { success, out_of_memory, other };

End attempt(const std::function<void()>& call, std::int64_t n) {
  End end = End::success;
  failed = false;
  countdown = n;
  try {
    call();
  } catch (const std::bad_alloc&) {
    end = End::out_of_memory;
  } catch (const Error& error) {
    end = error.code() == ErrorCode::memory ? End::out_of_memory : End::other;
  } catch (...) {
    end = End::other;
  }
  countdown = -1;
  return end;
}

/// A failure must be bad_alloc or MEMORY, leave no block and change nothing, which after() checks. Returns the number
/// of allocations of call().
std::int64_t exhaust(const std::function<void()>& call, const std::function<void()>& after = [] {}) {
  REQUIRE(attempt(call, -1) == End::success);  // also allocates one-time objects
  for (std::int64_t n = 0; n < 100'000; ++n) {
    const std::int64_t before = live;
    const End end = attempt(call, n);
    const std::int64_t kept = live - before;
    INFO("allocation " << n);
    CHECK(kept == 0);
    if (!failed) {
      CHECK(end == End::success);
      return n;
    }
    // std::stable_sort succeeds without the block.
    if (end != End::success) CHECK(end == End::out_of_memory);
    after();
  }
  FAIL("the call makes more than 100000 allocations");
  return 0;
}

struct Inputs {
  Tensor<4> q, k, v;
  Tensor<3> x;
  Mask mask, padding;
  explicit Inputs(Generator& random)
      : q(tensor_of<4>(random.normal({2, 2, 5, 4}))),
        k(tensor_of<4>(random.normal({2, 2, 7, 4}))),
        v(tensor_of<4>(random.normal({2, 2, 7, 3}))),
        x(tensor_of<3>(random.normal({2, 5, 8}))),
        mask(mask_of(random_mask(random, MaskKind::additive, {5, 7}))),
        padding(mask_of(random_padding(random, MaskKind::block, 2, 5))) {}
};

TEST_CASE("every op reports MEMORY for every failed allocation, leaks nothing and works afterwards", "[memory]") {
  Generator random(1);
  const Inputs in(random);
  AttentionOptions all{.dropout = 0.3F, .seed = 1, .need_weights = true, .average_weights = true, .trace = kAttentionTrace};
  all.mask = in.mask;
  const AdditiveAttentionParams params{tensor_of<2>(random.normal({6, 4})), tensor_of<2>(random.normal({6, 4})), tensor_of<1>(random.normal({6})),
                                       tensor_of<1>(random.normal({6}))};
  const Tensor<2> square = tensor_of<2>(random.normal({4, 4})), weight = tensor_of<2>(random.normal({9, 8}));
  const Tensor<1> bias = tensor_of<1>(random.normal({9})), norm = tensor_of<1>(random.normal({8}));
  const Array given = random.normal({5, 7});
  const AnyTensor flags = state_of({{"", given}}).begin()->second;

  const std::pair<const char*, std::function<void()>> calls[] = {
      {"scaled_dot_product_attention", [&] { scaled_dot_product_attention(in.q, in.k, in.v); }},
      {"scaled_dot_product_attention with everything", [&] { scaled_dot_product_attention(in.q, in.k, in.v, all); }},
      {"additive_attention", [&] { attn::additive_attention(in.q, in.k, in.v, params, all); }},
      {"general_attention", [&] { attn::general_attention(in.q, in.k, in.v, square, all); }},
      {"linear", [&] { attn::linear(in.x, weight, bias); }},
      {"softmax", [&] { attn::softmax(in.x, 1); }},
      {"softmax of the last dimension", [&] { attn::softmax(in.x); }},
      {"layer_norm", [&] { attn::layer_norm(in.x, norm, norm); }},
      {"rms_norm", [&] { attn::rms_norm(in.x, norm); }},
      {"activation", [&] { attn::activation(in.x, Activation::gelu); }},
      {"sinusoidal_positions", [&] { attn::sinusoidal_positions(9, 8); }},
      {"apply_rotary", [&] { attn::apply_rotary(in.q); }},
      {"alibi_bias", [&] { attn::alibi_bias(3, 5, 7); }},
      {"Mask::attend", [&] { Mask::attend(flags > 0.0F); }},
      {"Mask::additive", [&] { Mask::additive(1.0F + flags); }},
  };
  for (const auto& [name, call] : calls) {
    INFO(name);
    const Array before = array_of(scaled_dot_product_attention(in.q, in.k, in.v, all).output);
    CHECK(exhaust(call) > 0);
    CHECK_THAT(array_of(scaled_dot_product_attention(in.q, in.k, in.v, all).output), HasBitsOf(before));
  }
}

TEST_CASE("texts are tokenized on demand: peak memory grows only with the results", "[memory]") {
  const TextModel model = TextModel::load(testdata("models/tiny-bert"));
  std::string longest;
  for (std::int64_t i = 0; i < model.max_length(); ++i) longest += "film ";
  const auto texts_of = [&](std::size_t count) {
    std::vector<std::string> texts(count, "a film");
    texts[count / 2] = longest;
    return texts;
  };
  const auto most_of = [](const std::function<void()>& call) {
    const std::int64_t before = bytes;
    most_bytes = before;
    call();
    return most_bytes - before;
  };
  const std::vector<std::string> texts = texts_of(10'000), more = texts_of(20'000);
  const Tensor<2> warm = model.embed(texts_of(100));
  {
    const std::int64_t a_text = static_cast<std::int64_t>(warm.shape(1) * sizeof(float));
    const std::int64_t most = most_of([&] { model.embed(texts); }), most_of_more = most_of([&] { model.embed(more); });
    INFO("embed: " << most << " bytes for 10 000 texts, " << most_of_more << " for 20 000");
    CHECK(most < 10'000 * a_text + 4'000'000);
    CHECK(most_of_more - most < 10'000 * a_text + 100'000);
  }
  {
    std::vector<std::vector<LabelScore>> result;
    const std::int64_t kept = most_of([&] { result = model.classify(std::vector<std::string>(texts.begin(), texts.begin() + 10)); });
    const std::int64_t before = bytes;
    result = model.classify(texts);
    const std::int64_t of_result = bytes - before;
    result.clear(), result.shrink_to_fit();
    const std::int64_t most = most_of([&] { model.classify(texts); });
    INFO("classify: " << most << " bytes for 10 000 texts, " << of_result << " of them results");
    CHECK(most < of_result + kept + 4'000'000);
  }
}

template <class Layer, class Options, class Run>
void exhaust_layer(const char* name, const Options& options, Run run) {
  INFO(name);
  Generator random(2);
  CHECK(exhaust([&] { Layer another(options); }) > 0);
  Layer layer(options);
  const StateDict state = state_of(draw_state(random, layer.parameter_shapes())), other = state_of(draw_state(random, layer.parameter_shapes()));
  layer.load_state_dict(state);
  const Array before = run(layer);
  const Arrays numbers = arrays_of(state);
  const auto unchanged = [&] {
    CHECK(arrays_of(layer.state_dict()) == numbers);
    CHECK_THAT(run(layer), HasBitsOf(before));
  };
  CHECK(exhaust([&] { run(layer); }, unchanged) > 0);
  for (std::int64_t n = 0, done = 0; done == 0; ++n) {
    const std::int64_t kept = live;
    {
      Layer fresh(options);
      fresh.load_state_dict(state);
      const End end = attempt([&] { run(fresh); }, n);
      INFO("allocation " << n << " of the first forward");
      if (end != End::success) CHECK(end == End::out_of_memory);
      if (!failed) done = 1;
      CHECK_THAT(run(fresh), HasBitsOf(before));
    }
    CHECK(live == kept);
  }
  CHECK(exhaust([&] { const StateDict copy = layer.state_dict(); }) > 0);
  CHECK(exhaust([&] { const auto shapes = layer.parameter_shapes(); }) > 0);
  CHECK(exhaust([&] { layer.parameter_count(); }) > 0);

  const auto loading = [&](const std::function<void()>& load) {
    for (std::int64_t n = 0;; ++n) {
      layer.load_state_dict(state);
      const std::int64_t kept = live;
      const End end = attempt(load, n);
      const bool leaked = failed && live != kept;
      INFO("allocation " << n);
      if (!failed) {
        CHECK(end == End::success);
        return n;
      }
      CHECK(end == End::out_of_memory);
      CHECK_FALSE(leaked);
      unchanged();
    }
  };
  CHECK(loading([&] { layer.load_state_dict(other); }) > 0);
  CHECK(loading([&] { layer.load_state_dict(other, false); }) > 0);
  CHECK(loading([&] { layer.initialize({.seed = 3}); }) > 0);
  CHECK(loading([&] { layer.initialize({.scheme = InitScheme::normal, .seed = 3}); }) > 0);
}

TEST_CASE("a tokenizer uses at most ten times the size of its compact file", "[memory]") {
  std::uint32_t state = 1;
  const auto word = [&](std::size_t length) {
    std::string text;
    while (text.size() < length) {
      state = state * 1664525 + 1013904223;
      text += "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[(state >> 16) % 62];
    }
    return text;
  };
  const auto flags = R"(,"id":0,"single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false})";
  const auto with_model = [](const std::string& model, const std::string& added = "") {
    return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added + R"(],"normalizer":null,"pre_tokenizer":)" +
           R"({"type":"BertPreTokenizer"},"post_processor":null,"decoder":null,"model":)" + model + "}";
  };
  const auto file = [&](const std::string& vocabulary, const std::string& added) {
    return with_model(
        R"({"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"?":0)" + vocabulary + "}}",
        added);
  };
  const auto check = [](const std::string& json) {
    const std::int64_t before = bytes;
    most_bytes = before;
    const Tokenizer tokenizer = Tokenizer::parse({reinterpret_cast<const std::uint8_t*>(json.data()), json.size()});
    const auto size = static_cast<std::int64_t>(json.size());
    INFO(json.substr(200, 150) << ": " << size << " bytes, at most " << most_bytes - before << ", then " << bytes - before);
    CHECK(most_bytes - before < 10 * size);
    CHECK(bytes - before < 8 * size);
  };
  for (const std::size_t length : {7, 30, 1000}) {
    std::string same, other, longer, added;
    for (std::size_t i = 0; i < 600'000 / length; ++i) {
      const std::string token = word(length);
      same += ",\"" + token + "\":0";
      other += ",\"" + token + "\":" + std::to_string(20 * i);
      if (token.size() < 1000) longer += ",\"" + token + "\":0,\"" + token + word(1) + "\":1";
      if (i < 6000) added += std::string(added.empty() ? "" : ",") + R"({"content":")" + token + "\"" + flags;
    }
    for (const std::string& vocabulary : {same, other, longer})
      if (!vocabulary.empty()) check(file(vocabulary, ""));
    check(file("", added));
  }
  // Tokens as short as the average of published ones.
  for (const std::size_t length : {7, 30}) {
    std::string tokens = "\"\":0", merges, pairs, pieces;
    for (std::size_t i = 0; i < 300'000 / length; ++i) {
      const std::string first = word(length / 2), second = word(length - length / 2);
      for (const std::string& token : {first, second, first + second}) tokens += ",\"" + token + "\":" + std::to_string(i);
      merges += std::string(merges.empty() ? "" : ",") + "\"" + first + " " + second + "\"";
      pairs += std::string(pairs.empty() ? "" : ",") + "[\"" + first + "\",\"" + second + "\"]";
      pieces += std::string(pieces.empty() ? "" : ",") + "[\"" + first + second + "\",-" + std::to_string(i) + ".25]";
    }
    for (const std::string& list : {merges, pairs}) check(with_model(R"({"type":"BPE","vocab":{)" + tokens + R"(},"merges":[)" + list + "]}"));
    check(with_model(R"({"type":"Unigram","unk_id":0,"vocab":[)" + pieces + "]}"));
  }
}

TEST_CASE("the members of a JSON object share a block of memory", "[memory][io]") {
  std::string json = "{\"\":0";
  for (int i = 0; i < 10'000; ++i) json += ",\"" + std::to_string(i) + "\":" + std::to_string(i);
  json += "}";
  const std::int64_t before = made;
  const detail::Json parsed = detail::parse_json("x.json", {reinterpret_cast<const std::uint8_t*>(json.data()), json.size()}, json.size());
  CHECK(made - before < 1000);
  CHECK(parsed.object()->size() == 10'001);
}

TEST_CASE("an embedding loads its table in place", "[memory]") {
  Embedding table({.num_embeddings = 1000, .embedding_dim = 64});
  const std::vector<float> numbers(64'000, 0.5F);
  const StateView state{{"weight", TensorView(numbers.data(), Shape{1000, 64})}};
  const auto most_during = [](const auto& call) {
    const std::int64_t before = bytes;
    most_bytes = before;
    call();
    return most_bytes - before;
  };
  CHECK(most_during([&] { table.load_state(state); }) < 64'000);
  CHECK(table.row(999) == std::vector<float>(64, 0.5F));
  table.quantize();
  table.load_state(state);
  CHECK_FALSE(table.is_quantized());
  CHECK(table.row(0) == std::vector<float>(64, 0.5F));
}

TEST_CASE("every layer reports MEMORY for every failed allocation, leaks nothing and keeps its numbers", "[memory]") {
  Generator random(3);
  const Inputs in(random);
  const auto encode = [&](const auto& layer) {
    EncoderForwardOptions options{.is_causal = true, .output_attentions = true, .output_hidden_states = true};
    options.key_padding_mask = in.padding;
    options.trace = EncoderTraceOptions{};
    return array_of(layer.forward(in.x, options).output);
  };
  const auto attend = [&](const MultiHeadAttention& layer) {
    return array_of(layer.forward(in.x, AttentionOptions{.need_weights = true, .average_weights = true, .trace = kWholeTrace}).output);
  };
  exhaust_layer<MultiHeadAttention>("MultiHeadAttention", MultiHeadAttentionOptions{.embed_dim = 8, .num_heads = 2}, attend);
  exhaust_layer<MultiHeadAttention>(
      "MultiHeadAttention with all options",
      MultiHeadAttentionOptions{
          .embed_dim = 8, .num_heads = 4, .num_key_value_heads = 2, .head_dim = 3, .value_head_dim = 5, .add_bias_kv = true, .add_zero_attn = true},
      attend);
  exhaust_layer<TransformerEncoderLayer>("TransformerEncoderLayer",
                                         TransformerEncoderLayerOptions{.d_model = 8, .nhead = 2, .dim_feedforward = 6, .gated = true}, encode);
  exhaust_layer<TransformerEncoder>(
      "TransformerEncoder",
      TransformerEncoderOptions{.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 6, .norm_first = true}, .num_layers = 2, .final_norm = true},
      encode);
  exhaust_layer<TransformerClassifier>(
      "TransformerClassifier",
      TransformerClassifierOptions{
          .encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 6}, .num_layers = 1}, .num_classes = 3, .pooling = Pooling::mean},
      [&](const TransformerClassifier& layer) {
        EncoderForwardOptions options;
        options.key_padding_mask = in.padding;
        const auto result = layer.forward(in.x, options);
        return Array(to_shape(result.logits.shape()), std::vector<float>(result.logits.begin(), result.logits.end()));
      });
  const xt::xtensor<std::int32_t, 2> ids{{0, 1}, {2, 3}};
  exhaust_layer<Embedding>("Embedding", EmbeddingOptions{.num_embeddings = 4, .embedding_dim = 3, .padding_idx = 0}, [&](const Embedding& table) {
    table.nearest(1, 2);
    table.analogy(0, 1, 2, 1);
    return array_of(table.forward(ids));
  });
}

template <class Layer, class Options>
void exhaust_backward(const char* what, const Options& options, const Tensor<3>& x, const Mask& padding, const Array& grad) {
  INFO(what);
  Layer layer(options);
  EncoderForwardOptions call{.for_backward = true};
  call.key_padding_mask = padding;
  const auto gradients = [&] { return arrays_of(layer.gradients()); };
  const auto run = [&](std::int64_t n) {
    layer.forward(x, call);
    return attempt([&] { backward(layer, grad, {.trace = EncoderTraceOptions{}}); }, n);
  };
  REQUIRE(run(-1) == End::success);
  for (const bool accumulate : {false, true}) {
    if (!accumulate) layer.zero_grad();
    const std::map<std::string, Array> before = gradients();
    CHECK(before.empty() != accumulate);
    layer.forward(x, call);
    const std::int64_t start = live;
    std::int64_t n = 0;
    for (; n < 100'000; ++n) {
      const End end = run(n);
      if (!failed) break;
      const std::int64_t left = live;
      INFO("allocation " << n << ", accumulate " << accumulate);
      CHECK(end == End::out_of_memory);
      CHECK(left <= start);
      if (gradients() != before) break;
    }
    CHECK(n > 10);
    countdown = -1;
    if (!accumulate) continue;
    for (const auto& [name, sum] : gradients()) CHECK(sum != before.at(name));
  }
  layer.forward(x, call);
  for (std::int64_t n = 0; attempt([&] { layer.forward(x, call); }, n) == End::out_of_memory; ++n) CHECK(failed);
  layer.zero_grad();
  CHECK(run(-1) == End::success);
}

TEST_CASE("a backward changes no gradient if any of its allocations fails", "[memory][backward]") {
  Generator random(5);
  const Inputs in(random);
  const TransformerClassifierOptions o{
      .encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 6, .gated = true}, .num_layers = 2, .final_norm = true},
      .num_classes = 3,
      .pooling = Pooling::max};
  exhaust_backward<TransformerEncoderLayer>("TransformerEncoderLayer", o.encoder.layer, in.x, in.padding, random.normal({2, 5, 8}));
  exhaust_backward<TransformerEncoder>("TransformerEncoder", o.encoder, in.x, in.padding, random.normal({2, 5, 8}));
  exhaust_backward<TransformerClassifier>("TransformerClassifier", o, in.x, in.padding, random.normal({2, 3}));

  Embedding table(EmbeddingOptions{.num_embeddings = 4, .embedding_dim = 8});
  const xt::xtensor<std::int32_t, 2> ids{{0, 1, 1}, {2, 3, 1}};
  const xt::xtensor<float, 3> grad = tensor_of<3>(random.normal({2, 3, 8}));
  const auto gradients = [&] { return arrays_of(table.gradients()); };
  for (const bool accumulate : {false, true}) {
    const std::map<std::string, Array> before = gradients();
    CHECK(before.empty() != accumulate);
    table.forward(ids, {.for_backward = true});
    std::int64_t n = 0;
    while (attempt([&] { table.backward(grad); }, n) == End::out_of_memory) {
      INFO("Embedding, allocation " << n++ << ", accumulate " << accumulate);
      CHECK(gradients() == before);
    }
    CHECK(n > 0);
    CHECK(gradients() != before);
  }
}

TEST_CASE("reading and writing safetensors reports MEMORY for every failed allocation", "[memory][io]") {
  Generator random(4);
  const StateDict state = state_of({{"a", random.normal({3, 5})}, {"a much longer name than fits into a string itself", random.normal({2})}});
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"a much longer key than fits into a string itself", "and its value as well"}};
  const std::vector<std::uint8_t> bytes = write_safetensors(state, metadata);
  CHECK(exhaust([&] { write_safetensors(state, metadata); }) > 0);
  CHECK(exhaust([&] { parse_safetensors(bytes); }) > 0);
  const std::filesystem::path path = testdata("safetensors_python.safetensors");
  CHECK(exhaust([&] { read_safetensors(path); }) > 0);
}

TEST_CASE("loading a checkpoint reports MEMORY for every failed allocation, and leaks nothing", "[memory][models]") {
  const Checkpoint checkpoint = read_checkpoint(testdata("models/tiny-bert"));
  const Batch batch{{2, 5}, {2, 7, 9, 11, 3, 2, 8, 6, 4, 3}, {}, {}};
  const Array expected = forward(*load(checkpoint), batch).logits;
  CHECK(exhaust([&] { load(checkpoint, 1001); }) > 100);
  CHECK_THAT(forward(*load(checkpoint), batch).logits, HasBitsOf(expected));
  const auto model = load(checkpoint);
  CHECK(exhaust([&] { forward(*model, batch); }, [&] { CHECK_THAT(forward(*model, batch).logits, HasBitsOf(expected)); }) > 10);

  const std::filesystem::path folder = testdata("models/tiny-bert");
  CHECK(exhaust([&] { TextModel::load(folder); }) > 1000);
}

TEST_CASE("a model above the memory limit is refused before any large allocation", "[memory][models]") {
  Checkpoint checkpoint = read_checkpoint(testdata("models/tiny-bert"));
  nlohmann::json config = nlohmann::json::parse(checkpoint.config);
  config["num_hidden_layers"] = 10'000;
  config["hidden_size"] = config["intermediate_size"] = 65'536;
  const std::string text = config.dump();
  checkpoint.config.assign(text.begin(), text.end());
  set_memory_limit(std::uint64_t{1} << 34);
  largest = 0;
  CHECK_THROWS_AS(detail::ModelLoader(checkpoint.files()), Error);
  const std::int64_t asked = largest;
  set_memory_limit(std::uint64_t{1} << 63);
  CHECK(asked < 65'536);
}

TEST_CASE("a misuse whose message cannot be allocated reports itself or out of memory, and leaks nothing", "[memory][errors]") {
  Generator random(5);
  const Inputs in(random);
  MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const StateDict wrong = state_of({{"something", Array({1})}});
  const std::vector<std::uint8_t> bytes(20, 'x');
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"SHAPE", [&] { scaled_dot_product_attention(in.q, in.v, in.v); }},
      {"MASK", [&] { layer.forward(in.x, AttentionOptions{.mask = in.mask}); }},
      {"CONFIG", [&] { MultiHeadAttention other({.embed_dim = 8, .num_heads = 3}); }},
      {"MISMATCH", [&] { layer.load_state_dict(wrong); }},
      {"FORMAT", [&] { parse_safetensors(bytes); }},
  };
  for (const auto& [code, call] : calls) {
    INFO(code);
    for (std::int64_t n = -1;; ++n) {
      const std::int64_t before = live;
      std::string got;
      failed = false;
      countdown = n;
      try {
        call();
        countdown = -1;
      } catch (const std::bad_alloc&) {
        countdown = -1;
        got = "MEMORY";
      } catch (const Error& error) {
        countdown = -1;
        got = to_string(error.code());
      }
      const bool leaked = live != before;  // a code fits into the string object
      INFO("allocation " << n);
      CHECK((got == code || (failed && got == "MEMORY")));
      CHECK_FALSE(leaked);
      if (n >= 0 && !failed) break;
    }
  }
}

TEST_CASE("if the memory for threads cannot be allocated, calls run in one thread", "[memory][threads]") {
  Generator random(6);
  const Inputs in(random);
  const Array expected = array_of(scaled_dot_product_attention(in.q, in.k, in.v).output);
  const auto fail_at = [&](std::int64_t n) {
    set_num_threads(1);
    const End end = attempt([] { set_num_threads(3); }, n);
    const bool done = !failed;
    const unsigned threads = num_threads();
    INFO("allocation " << n);
    CHECK(end == (done ? End::success : End::out_of_memory));
    CHECK(threads == (done ? 3U : 1U));
    CHECK_THAT(array_of(scaled_dot_product_attention(in.q, in.k, in.v).output), HasBitsOf(expected));
    set_num_threads(1);
    return done;
  };
  REQUIRE(fail_at(-1));  // also allocates one-time objects
  for (std::int64_t n = 0, before = live; n < 50 && !fail_at(n); ++n) CHECK(live == before);
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("the child of a fork computes alone if it cannot allocate its threads", "[memory][threads]") {
  set_num_threads(3);
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> calls{0};
    const auto body = [&](std::size_t, unsigned) noexcept { ++calls; };
    const End end = attempt([&] { parallel::run(9, 3, body); }, 0);
    const bool alone = failed && end == End::success && calls == 9 && num_threads() == 1;
    set_num_threads(2);
    parallel::run(9, 2, body);
    _exit(alone && calls == 18 && num_threads() == 2 ? 0 : 1);
  }
  REQUIRE(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(num_threads() == 3);
  set_num_threads(1);
}
#endif

TEST_CASE("with several threads, every failed allocation is also reported as MEMORY", "[memory][threads]") {
  Generator random(7);
  TransformerEncoderLayer layer({.d_model = 48, .nhead = 6, .dim_feedforward = 96});
  const Tensor<3> x = tensor_of<3>(random.normal({4, 40, 48}));
  set_num_threads(3);
  const Array before = array_of(layer.forward(x).output);
  CHECK(exhaust([&] { layer.forward(x); }, [&] { CHECK_THAT(array_of(layer.forward(x).output), HasBitsOf(before)); }) > 0);
  set_num_threads(1);
}

std::int64_t allocations_of(const std::function<void()>& call) {
  call();
  const std::int64_t before = made;
  call();
  return made - before;
}

TEST_CASE("a repeated forward allocates only its results", "[memory][warm]") {
  constexpr std::int64_t E = 48, B = 3, L = 40;
  Generator random(8);
  const MultiHeadAttention attention({.embed_dim = E, .num_heads = 6});
  const MultiHeadAttention everything({.embed_dim = E,
                                       .num_heads = 4,
                                       .num_key_value_heads = 2,
                                       .head_dim = 5,
                                       .value_head_dim = 7,
                                       .add_bias_kv = true,
                                       .add_zero_attn = true,
                                       .dropout = 0.1F});
  const TransformerEncoderLayer layer({.d_model = E, .nhead = 6, .dim_feedforward = 96});
  const TransformerEncoderLayer turning({.d_model = E, .nhead = 6, .dim_feedforward = 96, .rotary = RotaryOptions{}});
  const TransformerEncoderLayer gated(
      {.d_model = E, .nhead = 6, .dim_feedforward = 96, .norm_first = true, .norm = NormKind::rms_norm, .gated = true});
  TransformerEncoder training({.layer = {.d_model = E, .nhead = 6, .dim_feedforward = 96}, .num_layers = 2});
  training.train();
  const TransformerEncoder encoder({.layer = {.d_model = E, .nhead = 6, .dim_feedforward = 96}, .num_layers = 3, .final_norm = true});
  const TransformerClassifier classifier(
      {.encoder = {.layer = {.d_model = E, .nhead = 6, .dim_feedforward = 96}, .num_layers = 2}, .num_classes = 3, .pooling = Pooling::mean});
  const TransformerClassifier unpooled({.encoder = {.layer = {.d_model = E, .nhead = 6, .dim_feedforward = 96}, .num_layers = 1}, .num_classes = 3});

  const Tensor<3> x = tensor_of<3>(random.normal({B, L, E})), memory = tensor_of<3>(random.normal({B, 2 * L, E}));
  const Mask padding = mask_of(random_padding(random, MaskKind::block, B, L)), added = mask_of(random_mask(random, MaskKind::additive, {L, L}));
  for (const unsigned threads : {1U, 2U}) {
    set_num_threads(threads);
    for (const int masks : {0, 1, 2, 3}) {  // bit 0: causal, bit 1: mask and padding
      INFO(threads << " threads, causal " << masks % 2 << ", masked " << masks / 2);
      AttentionOptions plain{.is_causal = masks % 2 == 1};
      EncoderForwardOptions encode{.is_causal = masks % 2 == 1};
      if (masks / 2 == 1) {
        plain.mask = encode.mask = added;
        plain.key_padding_mask = encode.key_padding_mask = padding;
      }
      AttentionOptions weights = plain, averaged = plain;
      weights.need_weights = averaged.need_weights = averaged.average_weights = true;
      CHECK(allocations_of([&] { attention.forward(x, plain); }) == 1);
      CHECK(allocations_of([&] { attention.forward(x, weights); }) == 2);
      CHECK(allocations_of([&] { attention.forward(x, averaged); }) == 2);
      CHECK(allocations_of([&] { everything.forward(x, averaged); }) == 2);
      CHECK(allocations_of([&] { layer.forward(x, encode); }) == 1);
      CHECK(allocations_of([&] { turning.forward(x, encode); }) == 1);
      CHECK(allocations_of([&] { gated.forward(x, encode); }) == 1);
      CHECK(allocations_of([&] { encoder.forward(x, encode); }) == 1);
      // For backward: an object, its numbers, tables of layers and offsets, copies of masks. A dry run also makes the object and the tables.
      CHECK(allocations_of([&] { training.forward(x, encode); }) == (masks / 2 == 1 ? 12 : 10));
      CHECK(allocations_of([&] { classifier.forward(x, encode); }) == 2);
      CHECK(allocations_of([&] { unpooled.forward(x, encode); }) == 2);
    }
    CHECK(allocations_of([&] { attention.forward(x, memory, memory); }) == 1);
    CHECK(allocations_of([&] { attention.forward(x, AttentionOptions{.dropout = 0.5F, .seed = 1}); }) == 1);
  }
  set_num_threads(1);
}

TEST_CASE("a forward into the caller's memory allocates nothing", "[memory][warm]") {
  Generator random(9);
  const MultiHeadAttention attention({.embed_dim = 12, .num_heads = 2});
  const TransformerClassifier classifier(
      {.encoder = {.layer = {.d_model = 12, .nhead = 2, .dim_feedforward = 20}, .num_layers = 2}, .num_classes = 3, .pooling = Pooling::max});
  const Tensor<3> x = tensor_of<3>(random.normal({2, 9, 12}));
  const detail::Input view(x, "a test", "x");
  std::vector<float> output(x.size()), logits(6);
  CHECK(allocations_of([&] {
          const AttentionOptions options{.is_causal = true};
          attention.run(attention.plan(view, view, view, options), view, view, view, options, {.output = output.data()});
        }) == 0);
  CHECK(allocations_of([&] {
          const EncoderForwardOptions options{.is_causal = true};
          classifier.run(classifier.plan(view, options), view, {output.data(), {}, {}}, logits.data());
        }) == 0);
}

TEST_CASE("a layer's memory is reused by every forward that is not larger, also after new weights", "[memory][warm]") {
  Generator random(10);
  TransformerEncoder encoder({.layer = {.d_model = 24, .nhead = 3, .dim_feedforward = 48}, .num_layers = 2});
  const Tensor<3> large = tensor_of<3>(random.normal({3, 30, 24})), small = tensor_of<3>(random.normal({2, 7, 24})),
                  longer = tensor_of<3>(random.normal({1, 400, 24}));
  const auto count = [&](const Tensor<3>& x) {
    const std::int64_t before = made;
    encoder.forward(x);
    return made - before;
  };
  CHECK(count(large) > 1);
  CHECK(count(large) == 1);
  CHECK(count(small) == 1);
  CHECK(count(large) == 1);
  CHECK(count(longer) > 1);
  CHECK(count(large) == 1);
  CHECK(count(longer) == 1);
  encoder.load_state_dict(encoder.state_dict());
  encoder.initialize({.seed = 2});
  CHECK(count(longer) == 1);
  const std::int64_t before = live;
  {
    TransformerEncoder other({.layer = {.d_model = 24, .nhead = 3, .dim_feedforward = 48}, .num_layers = 2});
    other.forward(longer);
    TransformerEncoder moved(std::move(other));
    moved.forward(longer);
  }
  CHECK(live == before);
}

TEST_CASE("released memory of a layer is freed, and the next forward allocates it again", "[memory][warm]") {
  Generator random(11);
  const TransformerEncoder encoder({.layer = {.d_model = 24, .nhead = 3, .dim_feedforward = 48}, .num_layers = 2});
  const MultiHeadAttention attention({.embed_dim = 24, .num_heads = 3});
  const Tensor<3> x = tensor_of<3>(random.normal({2, 200, 24}));
  const Array expected = array_of(encoder.forward(x).output);
  Context::release_memory();
  const std::int64_t before = bytes, blocks = live;
  encoder.forward(x);
  attention.forward(x);
  const std::int64_t kept = live - blocks;
  CHECK(bytes - before > 2 * 2 * 200 * 24 * 4);
  Context::release_memory();
  CHECK(bytes == before);
  CHECK(live == blocks);
  CHECK_THAT(array_of(encoder.forward(x).output), HasBitsOf(expected));
  attention.forward(x);
  CHECK(live == blocks + kept);  // malloc may give another size the second time
  CHECK(allocations_of([&] { encoder.forward(x); }) == 1);
  Context::release_memory();
  Context::release_memory();
  CHECK(bytes == before);
}

TEST_CASE("a scratch without memory throws bad_alloc, and its workspace stays usable", "[memory][scratch]") {
  bool intact = true;
  const auto use = [&](detail::Workspace& workspace) {
    const auto fill = [](float* values, std::size_t size, float value) {
      if (!detail::counts()) std::fill_n(values, size, value);
    };
    detail::Scratch scratch(&workspace);
    float* const first = scratch.take(100);
    fill(first, 100, 1.0F);
    {
      const detail::Scratch::Frame frame(scratch);
      fill(scratch.take(1000), 1000, 2.0F);
    }
    fill(scratch.take(10), 10, 3.0F);
    if (!detail::counts()) intact = intact && std::all_of(first, first + 100, [](float value) { return value == 1; });
  };
  int ends = 0;
  for (bool done = false; !done;) {
    const std::int64_t before = live;
    {
      detail::Workspace workspace;
      const End end = attempt([&] { use(workspace); }, ends);
      done = end == End::success;
      INFO("allocation " << ends);
      CHECK(end != End::other);
      CHECK(failed != done);
      ends += done ? 0 : 1;
      detail::check_memory("a test", [&] { use(workspace); });
      CHECK(allocations_of([&] { use(workspace); }) == 0);
    }
    CHECK(live == before);
  }
  CHECK(ends >= 4);
  CHECK(intact);
}

TEST_CASE("reading a safetensors file uses no more memory than its numbers, and none if the limit forbids it", "[memory][errors]") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("attn-allocations-" + std::to_string(std::random_device()()));
  constexpr std::int64_t kData = 1 << 26;
  std::string header = R"({"x":{"dtype":"F32","shape":[16777216],"data_offsets":[0,67108864]}})";
  header.insert(0, std::string{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0});
  std::ofstream(path, std::ios::binary) << header;
  std::filesystem::resize_file(path, header.size() + kData);
  set_memory_limit(1'000'000);
  const std::int64_t before = most_bytes = bytes.load();
  check_error({ErrorCode::memory, "safetensors", "", {"67108864 bytes"}}, [&] { read_safetensors(path); });
  CHECK(most_bytes - before < 1'000'000);
  set_memory_limit(std::uint64_t{1} << 63);
  most_bytes = before;
  read_safetensors(path);
  CHECK(most_bytes - before < kData + 1'000'000);
  std::filesystem::remove(path);
}

TEST_CASE("parameters over the memory limit are refused before any allocation for them", "[memory][errors]") {
  set_memory_limit(1'000'000);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"MultiHeadAttention", [] { MultiHeadAttention layer({.embed_dim = 512, .num_heads = 8}); }},
      {"TransformerEncoderLayer", [] { TransformerEncoderLayer layer({.d_model = 64, .nhead = 8, .dim_feedforward = 100'000}); }},
      {"TransformerEncoder", [] { TransformerEncoder layer({.layer = {.d_model = 64, .nhead = 8, .dim_feedforward = 64}, .num_layers = 1000}); }},
      {"TransformerClassifier",
       [] {
         TransformerClassifier layer(
             {.encoder = {.layer = {.d_model = 64, .nhead = 8, .dim_feedforward = 64}, .num_layers = 1}, .num_classes = 100'000});
       }},
      {"Embedding", [] { Embedding layer({.num_embeddings = 100'000, .embedding_dim = 64}); }},
  };
  for (const auto& [op, call] : calls) check_error({ErrorCode::memory, op, "", {"bytes"}}, call);
  set_memory_limit(std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace attn::test
