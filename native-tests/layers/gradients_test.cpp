#include "attn/layers/gradients.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace layers_gradients_test {

using Arrays = std::map<std::string, Array>;

StateView views(const Arrays& arrays) {
  StateView state;
  for (const auto& [name, array] : arrays) state.emplace(name, TensorView(array.data.data(), array.dims));
  return state;
}

void check_same(const Arrays& got, const Arrays& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, array] : expected) {
    INFO(name);
    CHECK_THAT(got.at(name), HasBitsOf(array));
  }
}

Arrays random_like(Generator& random, const Arrays& arrays) {
  Arrays all;
  for (const auto& [name, array] : arrays) all.emplace(name, random.normal(array.dims));
  return all;
}

template <class Test>
void each_layer(Test test) {
  const auto with = [&](const char* name, auto layer) {
    INFO(name);
    test(layer);
  };
  with("MultiHeadAttention", MultiHeadAttention({.embed_dim = 6, .num_heads = 2}));
  with("MultiHeadAttention, bias rows", MultiHeadAttention({.embed_dim = 6, .num_heads = 2, .add_bias_kv = true}));
  with("MultiHeadAttention, other widths", MultiHeadAttention({.embed_dim = 6, .num_heads = 2, .kdim = 5, .vdim = 7}));
  with("MultiHeadAttention, grouped",
       MultiHeadAttention({.embed_dim = 6, .num_heads = 4, .num_key_value_heads = 2, .head_dim = 3, .value_head_dim = 7, .add_bias_kv = true}));
  with("MultiHeadAttention, bare", MultiHeadAttention({.embed_dim = 6, .num_heads = 2, .bias = false, .out_proj = false}));
  with("TransformerEncoderLayer", TransformerEncoderLayer({.d_model = 6, .nhead = 2, .dim_feedforward = 41}));
  with("TransformerEncoderLayer, gated, RMS norms",
       TransformerEncoderLayer({.d_model = 6, .nhead = 2, .dim_feedforward = 8, .bias = false, .norm = NormKind::rms_norm, .gated = true}));
  with("TransformerEncoder", TransformerEncoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true}));
  with("TransformerClassifier",
       TransformerClassifier(
           {.encoder = {.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2}, .num_classes = 3, .pooling = Pooling::mean}));
  with("Embedding", Embedding({.num_embeddings = 4, .embedding_dim = 6, .padding_idx = 3}));
}

TEST_CASE("gradients are added by the names of the state until they are zeroed", "[layers][gradients]") {
  each_layer([](auto& layer) {
    Generator random(1);
    CHECK(layer.gradients().empty());
    layer.zero_grad();
    const Arrays state = arrays_of(layer.state_dict()), one = random_like(random, state), two = random_like(random, state);
    layer.add_gradients(views(one));
    check_same(arrays_of(layer.gradients()), one);
    layer.add_gradients(views(two));
    Arrays sum = one;
    for (auto& [name, array] : sum)
      for (std::size_t i = 0; i < array.data.size(); ++i) array.data[i] += two.at(name).data[i];
    check_same(arrays_of(layer.gradients()), sum);
    layer.zero_grad();
    CHECK(layer.gradients().empty());
    const Arrays part{*two.begin()};
    layer.add_gradients(views(part));
    check_same(arrays_of(layer.gradients()), part);
    check_same(arrays_of(layer.state_dict()), state);
  });
}

TEST_CASE("replaced weights discard the gradients, and a moved layer keeps them", "[layers][gradients]") {
  each_layer([](auto& layer) {
    Generator random(2);
    const Arrays state = arrays_of(layer.state_dict()), some = random_like(random, state);
    const auto ends = [&](auto&& replace) {
      layer.add_gradients(views(some));
      replace();
      CHECK(layer.gradients().empty());
    };
    ends([&] { layer.load_state_dict(layer.state_dict()); });
    ends([&] { layer.initialize({.seed = 7}); });
    ends([&] { layer.quantize(); });
    check_error({ErrorCode::unsupported, "add_gradients", "the module", {"int8", "initialize()"}}, [&] { layer.add_gradients(views(some)); });
    CHECK(layer.gradients().empty());
    layer.load_state_dict(state_of(state));

    layer.add_gradients(views(some));
    auto moved = std::move(layer);
    check_same(arrays_of(moved.gradients()), some);
    layer = std::move(moved);
    check_same(arrays_of(layer.gradients()), some);
    check_same(arrays_of(layer.state_dict()), state);
  });
}

TEST_CASE("gradients that do not fit their parameter are refused together, and none is added", "[layers][gradients][errors]") {
  TransformerEncoderLayer layer({.d_model = 6, .nhead = 2, .dim_feedforward = 8});
  const Array fits({6}, 1.0F), other({7}, 1.0F);
  const Arrays bad{{"norm1.weight", fits}, {"norm2.weight", other}, {"norm3.weight", fits}, {"self_attn.q_proj.weight", fits}};
  check_error({ErrorCode::mismatch,
               "add_gradients",
               "gradients",
               {"norm2.weight has shape (7), expected (6)", "unexpected: norm3.weight, self_attn.q_proj.weight"}},
              [&] { layer.add_gradients(views(bad)); });
  CHECK(layer.gradients().empty());
  layer.add_gradients(views({{"norm1.weight", fits}}));
  check_error({ErrorCode::mismatch, "add_gradients", "gradients", {}}, [&] { layer.add_gradients(views(bad)); });
  check_same(arrays_of(layer.gradients()), {{"norm1.weight", fits}});

  const std::uint64_t before = memory_limit();
  set_memory_limit(100);
  check_error({ErrorCode::memory, "gradients", "", {}}, [&] { layer.add_gradients(views({{"linear1.weight", Array({8, 6})}})); });
  set_memory_limit(before);
  check_same(arrays_of(layer.gradients()), {{"norm1.weight", fits}});
}

TEST_CASE("reserved gradients do not move, and they do not exist until they are used", "[layers][gradients]") {
  detail::Gradients gradients;
  gradients.reserve({{"a", {2}}, {"b", {3}}});
  CHECK(gradients.shapes().empty());
  CHECK(gradients.find("a") == nullptr);
  float* const a = gradients.at("a");
  CHECK((a[0] == 0 && a[1] == 0));
  a[0] = 5;
  gradients.reserve({{"a", {2}}, {"c", {1}}});
  CHECK(gradients.at("a") == a);
  CHECK(a[0] == 5);
  CHECK(gradients.find("a") == a);
  CHECK(gradients.shapes() == std::map<std::string, Shape>{{"a", {2}}});
  gradients.zero();
  CHECK(gradients.find("a") == nullptr);
  CHECK(gradients.at("a") == a);
  CHECK(a[0] == 0);
}

TEST_CASE("the pieces of a parameter are those of the state, and values written to them are the layer's", "[layers][gradients]") {
  each_layer([](auto& layer) {
    Generator random(3);
    layer.initialize({.seed = 3});
    const Arrays state = arrays_of(layer.state_dict());
    const detail::StateTensors tensors = layer.state_tensors();
    Arrays read;
    for (const auto& [name, tensor] : tensors) {
      Array& array = read[name] = Array(state.at(name).dims);
      std::size_t at = 0;
      for (const detail::ParameterRef& piece : tensor.pieces) {
        piece.get(array.data.data() + at);
        if (const float* values = piece.values())
          CHECK(std::equal(values, values + piece.size(), array.data.begin() + static_cast<std::ptrdiff_t>(at)));
        at += piece.size();
      }
      CHECK(at == array.data.size());
    }
    check_same(read, state);
    const Arrays other = random_like(random, state);
    for (const auto& [name, tensor] : tensors) {
      std::size_t at = 0;
      for (const detail::ParameterRef& piece : tensor.pieces) {
        piece.set_rows(0, std::span(other.at(name).data).subspan(at, piece.size()));
        at += piece.size();
      }
    }
    check_same(arrays_of(layer.state_dict()), other);
  });
}

}  // namespace layers_gradients_test
}  // namespace attn::test
