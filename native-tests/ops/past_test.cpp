#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <vector>
#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif

#include "attn/layers/multi_head_attention.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/score_functions.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace ops_past_test {

using xt::all;
using xt::range;

Tensor<4> heads(Generator& random, std::size_t B, std::size_t H, std::size_t rows, std::size_t width) {
  Tensor<4> x({B, H, rows, width});
  for (float& value : x) value = random.normal();
  return x;
}

Tensor<4> rows_of(const Tensor<4>& x, std::size_t first, std::size_t last) { return xt::view(x, all(), all(), range(first, last), all()); }

template <class Attend>
void check_steps(const Tensor<4>& q, const Tensor<4>& k, const Tensor<4>& v, const std::vector<std::size_t>& steps, AttentionOptions options,
                 Attend attend) {
  options.need_weights = true;
  options.is_causal = true;
  const auto whole = attend(q, k, v, options);
  std::optional<KeyValue<4>> present;
  std::size_t done = 0;
  for (const std::size_t step : steps) {
    AttentionOptions next = options;
    next.output_present = true;
    if (present) next.past = KeyValueView(present->key, present->value);
    auto part = attend(rows_of(q, done, done + step), rows_of(k, done, done + step), rows_of(v, done, done + step), next);
    CHECK(part.output == rows_of(whole.output, done, done + step));
    CHECK(*part.weights == Tensor<4>(xt::view(*whole.weights, all(), all(), range(done, done + step), range(0, done + step))));
    present = std::move(part.present);
    done += step;
    CHECK(present->key == rows_of(k, 0, done));
    CHECK(present->value == rows_of(v, 0, done));
  }
  REQUIRE(done == q.shape(2));
}

TEST_CASE("a single query of grouped heads, each with its own mask, has the bits of its row among others", "[ops]") {
  Generator random(11);
  const Tensor<4> q = heads(random, 2, 6, 3, 8), k = heads(random, 2, 2, 20, 8), v = heads(random, 2, 2, 20, 5), mask = heads(random, 2, 6, 3, 20);
  const auto attend = [&](const Tensor<4>& query, const Tensor<4>& bias) {
    return scaled_dot_product_attention(query, k, v, {.mask = Mask::additive(bias), .need_weights = true, .enable_gqa = true});
  };
  const auto whole = attend(q, mask);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto one = attend(rows_of(q, i, i + 1), rows_of(mask, i, i + 1));
    CHECK(one.output == rows_of(whole.output, i, i + 1));
    CHECK(*one.weights == rows_of(*whole.weights, i, i + 1));
  }
}

TEST_CASE("queries computed one by one give the results of a single call", "[ops]") {
  Generator random(7);
  const Tensor<4> q = heads(random, 2, 4, 9, 8), k = heads(random, 2, 2, 9, 8), v = heads(random, 2, 2, 9, 5);
  const std::vector<std::size_t> steps = GENERATE(std::vector<std::size_t>(9, 1), std::vector<std::size_t>{4, 1, 3, 1}, std::vector<std::size_t>{9});
  const AttentionOptions options = GENERATE(AttentionOptions{.enable_gqa = true}, AttentionOptions{.enable_gqa = true, .softcap = 2.0F},
                                            AttentionOptions{.enable_gqa = true, .window = Window{2, -1}});
  check_steps(q, k, v, steps, options, [](const auto& query, const auto& key, const auto& value, const AttentionOptions& o) {
    return scaled_dot_product_attention(query, key, value, o);
  });
  Tensor<2> weight({8, 8}), query_weight({6, 8}), key_weight({6, 8});
  Tensor<1> score_weight = Tensor<1>::from_shape({6});
  for (float& value : weight) value = random.normal();
  for (float& value : query_weight) value = random.normal();
  for (float& value : key_weight) value = random.normal();
  for (float& value : score_weight) value = random.normal();
  check_steps(q, k, v, steps, options, [&](const auto& query, const auto& key, const auto& value, const AttentionOptions& o) {
    return general_attention(query, key, value, weight, o);
  });
  const AdditiveAttentionParams params{query_weight, key_weight, score_weight};
  check_steps(q, k, v, steps, options, [&](const auto& query, const auto& key, const auto& value, const AttentionOptions& o) {
    return additive_attention(query, key, value, params, o);
  });
}

TEST_CASE("a layer gives the same results one position at a time, also with grouped heads and rotary positions", "[layers]") {
  MultiHeadAttentionOptions sizes{.embed_dim = 12, .num_heads = 6, .num_key_value_heads = 2, .head_dim = 4, .value_head_dim = 3};
  const std::optional<RotaryOptions> rotary =
      GENERATE(std::optional<RotaryOptions>{}, std::optional(RotaryOptions{.theta = 100, .offset = 5, .interleaved = true}));
  sizes.rotary = rotary;
  MultiHeadAttention layer(sizes);
  layer.initialize({.seed = 3});
  const AttentionOptions options = GENERATE(AttentionOptions{.is_causal = true}, AttentionOptions{.is_causal = true, .window = Window{3, 0}});
  Generator random(11);
  Tensor<3> x({2, 8, 12});
  for (float& value : x) value = random.normal();
  AttentionOptions everything = options;
  everything.trace = Trace::all();
  const auto whole = layer.forward(x, everything);
  std::optional<KeyValue<4>> present;
  for (std::size_t i = 0; i < 8; ++i) {
    AttentionOptions next = everything;
    next.output_present = true;
    if (present) next.past = KeyValueView(present->key, present->value);
    const Tensor<3> row = xt::view(x, all(), range(i, i + 1), all());
    auto part = layer.forward(row, next);
    CHECK(part.output == Tensor<3>(xt::view(whole.output, all(), range(i, i + 1), all())));
    const auto same_rows = [&](TraceName name) {
      CAPTURE(to_string(name));
      const Tensor<4> expected = whole.trace->at(name), got = part.trace->at(name);
      CHECK(got == rows_of(expected, i, i + 1));
    };
    same_rows(TraceName::q);
    same_rows(TraceName::context);
    CHECK(Tensor<4>(part.trace->at(TraceName::k)) == part.present->key);
    CHECK(Tensor<4>(part.trace->at(TraceName::v)) == part.present->value);
    CHECK(Tensor<3>(part.trace->at(TraceName::k_proj)).shape(1) == 1);
    present = std::move(part.present);
  }
  CHECK(present->key == Tensor<4>(whole.trace->at(TraceName::k)));
  CHECK(present->value == Tensor<4>(whole.trace->at(TraceName::v)));
}

TEST_CASE("a layer rotates queries and keys as apply_rotary does", "[layers]") {
  const RotaryOptions rotary{.theta = 1000, .offset = 3, .interleaved = GENERATE(false, true)};
  MultiHeadAttentionOptions sizes{.embed_dim = 8, .num_heads = 2};
  MultiHeadAttention plain(sizes);
  sizes.rotary = rotary;
  MultiHeadAttention turned(sizes);
  plain.initialize({.seed = 5});
  turned.load_state_dict(plain.state_dict());
  Generator random(12);
  const std::size_t keys = GENERATE(std::size_t{5}, std::size_t{7});
  Tensor<3> x({2, 5, 8}), memory({2, keys, 8});
  for (float& value : x) value = random.normal();
  for (float& value : memory) value = random.normal();
  const Trace names{TraceName::q, TraceName::k, TraceName::v};
  const auto before = plain.forward(x, memory, memory, {.trace = names}),
             after = turned.forward(x, memory, memory, {.trace = names, .query_offset = 2});
  RotaryOptions of_queries = rotary;
  of_queries.offset += 2;
  CHECK(Tensor<4>(after.trace->at(TraceName::q)) == apply_rotary(Tensor<4>(before.trace->at(TraceName::q)), of_queries));
  CHECK(Tensor<4>(after.trace->at(TraceName::k)) == apply_rotary(Tensor<4>(before.trace->at(TraceName::k)), rotary));
  CHECK(after.trace->at(TraceName::v) == before.trace->at(TraceName::v));
}

TEST_CASE("without a batch, a past has no batch dimension either", "[ops]") {
  Generator random(13);
  const MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  Tensor<2> x({3, 4});
  for (float& value : x) value = random.normal();
  const auto first = layer.forward(x, {.output_present = true});
  CHECK(first.present->key.shape() == std::array<std::size_t, 3>{2, 3, 2});
  const auto second = layer.forward(x, {.past = KeyValueView(first.present->key, first.present->value)});
  CHECK(second.present->value.shape() == std::array<std::size_t, 3>{2, 6, 2});
  const Tensor<2> keys({3, 4}, 0.5F);
  const auto flat = scaled_dot_product_attention(x, x, x, {.past = KeyValueView(keys, keys)});
  CHECK(flat.present->key.shape() == std::array<std::size_t, 2>{6, 4});
}

TEST_CASE("a past that does not fit is refused by name", "[ops]") {
  const char* op = "scaled_dot_product_attention";
  Generator random(14);
  const Tensor<4> q = heads(random, 2, 2, 3, 4), v = heads(random, 2, 2, 3, 5);
  const auto past = [&](const Tensor<4>& keys, const Tensor<4>& values) {
    return scaled_dot_product_attention(q, q, v, {.past = KeyValueView(keys, values)});
  };
  const Tensor<4> keys = heads(random, 2, 2, 6, 4), values = heads(random, 2, 2, 6, 5);
  CHECK_NOTHROW(past(keys, values));
  check_error({ErrorCode::shape, op, "past.key", {"(2,2,6,5)", "(2,2,3,4)"}}, [&] { past(values, values); });
  check_error({ErrorCode::shape, op, "past.value", {"(2,2,6,4)", "(2,2,3,5)"}}, [&] { past(keys, keys); });
  check_error({ErrorCode::shape, op, "past.value", {"6 rows", "(2,2,4,5)"}}, [&] { past(keys, heads(random, 2, 2, 4, 5)); });
  check_error({ErrorCode::shape, op, "past.key", {"(1,2,6,4)"}}, [&] { past(heads(random, 1, 2, 6, 4), values); });
  const MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  const Tensor<3> x({2, 1, 4}, 1.0F);
  const auto layer_past = [&](const Tensor<4>& k) { return layer.forward(x, {.past = KeyValueView(k, k)}); };
  CHECK_NOTHROW(layer_past(heads(random, 2, 2, 6, 2)));
  check_error({ErrorCode::shape, "MultiHeadAttention", "past.key", {"(2,2,P,2)", "(2,2,6,4)"}}, [&] { layer_past(keys); });
  check_error({ErrorCode::shape, "MultiHeadAttention", "past.key", {"(2,2,P,2)", "(2,1,6,2)"}}, [&] { layer_past(heads(random, 2, 1, 6, 2)); });
  const MultiHeadAttention biased({.embed_dim = 4, .num_heads = 2, .add_bias_kv = true}),
      zero({.embed_dim = 4, .num_heads = 2, .add_zero_attn = true});
  for (const MultiHeadAttention* each : {&biased, &zero}) {
    const Tensor<4> k = heads(random, 2, 2, 6, 2);
    check_error({ErrorCode::unsupported, "MultiHeadAttention", "past", {"add_bias_kv"}}, [&] { each->forward(x, {.past = KeyValueView(k, k)}); });
    check_error({ErrorCode::unsupported, "MultiHeadAttention", "output_present", {"add_bias_kv"}},
                [&] { each->forward(x, {.output_present = true}); });
  }
}

}  // namespace ops_past_test
}  // namespace attn::test
