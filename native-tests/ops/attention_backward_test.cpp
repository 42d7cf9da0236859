#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/call_backward.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_attention_backward_test {

constexpr std::uint64_t kCases = 60;

Shape output_dims(const AttentionCase& c) {
  Shape dims = c.query.dims;
  dims[dims.rank() - 1] = c.value.dims.back(0);
  return dims;
}

AttentionCase draw_case(std::uint64_t seed) {
  Generator random(seed);
  const std::int64_t B = 1 + random.below(3), Hkv = 1 + random.below(3), H = Hkv * (1 + random.below(2)), L = 1 + random.below(130),
                     S = 1 + random.below(150), D = 1 + random.below(20), Dv = 1 + random.below(20);
  AttentionCase c;
  c.seed = seed;
  c.query = random.normal({B, H, L, D});
  c.key = random.normal({B, Hkv, S, D});
  c.value = random.normal({B, Hkv, S, Dv});
  c.enable_gqa = true;
  constexpr MaskKind kKinds[] = {MaskKind::attend, MaskKind::block, MaskKind::additive};
  if (random.coin(0.6)) c.mask = random_mask(random, kKinds[random.below(3)], random.pick<Shape>({{S}, {L, S}, {B, L, S}, {B, H, L, S}}));
  if (random.coin(0.4)) c.key_padding_mask = random_padding(random, kKinds[random.below(3)], B, S);
  c.is_causal = random.coin(0.3);
  if (random.coin(0.3)) c.window = {random.below(40) - 1, random.below(20) - 1};
  if (random.coin(0.3)) c.query_offset = random.below(80) - 10;
  if (random.coin(0.3)) c.softcap = 1.5F;
  c.fully_masked = random.coin(0.3) ? FullyMasked::uniform : FullyMasked::zero;
  return c;
}

AttentionOptions asked_of(const AttentionCase& c, Trace trace = {}) {
  AttentionOptions options{.trace = trace};
  if (c.seed % 7 == 0) options.dropout = 0.25F, options.seed = c.seed;
  return options;
}

struct Drawn {
  AttentionCase c;
  Array grad;
  explicit Drawn(std::uint64_t seed) : c(draw_case(seed)) {
    Generator random(seed + 1000);
    grad = random.normal(output_dims(c));
  }
};

std::vector<bool> seen_keys(const AttentionCase& c) {
  AttentionCase finite = c;
  for (Array* array : {&finite.query, &finite.key, &finite.value}) std::fill(array->data.begin(), array->data.end(), 0.0F);
  const Array masked = attention(finite, {.trace = {TraceName::masked_scores}}).trace.at(TraceName::masked_scores);
  std::vector<bool> seen;
  for (const float score : masked.data) seen.push_back(score != -kInfinity);
  return seen;
}

void check_same(const Gradients& got, const Gradients& expected) {
  for (const auto& [name, array] : expected) {
    INFO(name);
    CHECK_THAT(got.at(name), HasBitsOf(array));
  }
}

TEST_CASE("gradients of attention have the same bits on any number of threads", "[backward][properties][threads]") {
  Generator random(1);
  AttentionCase c;
  c.query = random.normal({2, 6, 120, 24});
  c.key = random.normal({2, 3, 133, 24});
  c.value = random.normal({2, 3, 133, 40});
  c.enable_gqa = true;
  c.is_causal = true;
  c.query_offset = 60;
  const Array grad = random.normal(output_dims(c)), weight = random.normal({24, 24});
  const AdditiveArrays params{random.normal({16, 24}), random.normal({16, 24}), random.normal({16}), random.normal({16})};
  const AttentionOptions asked{.dropout = 0.1F, .seed = 3, .trace = kAttentionTrace};
  const Gradients alone = attention_backward(grad, c, asked), general = general_attention_backward(grad, c, weight, asked),
                  additive = additive_attention_backward(grad, c, params, asked);
  for (const unsigned threads : {2U, 3U}) {
    INFO(threads << " threads");
    set_num_threads(threads);
    check_same(attention_backward(grad, c, asked), alone);
    check_same(general_attention_backward(grad, c, weight, asked), general);
    check_same(additive_attention_backward(grad, c, params, asked), additive);
    set_num_threads(1);
  }
}

TEST_CASE("gradients of a batch are those of each entry alone, bit for bit", "[backward][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Drawn drawn(seed);
    AttentionCase& c = drawn.c;
    c.mask.reset();
    const AttentionOptions asked{.trace = kAttentionTrace};
    INFO(describe(c));
    const Gradients together = attention_backward(drawn.grad, c, asked);
    for (std::int64_t b = 0; b < c.query.dims[0]; ++b) {
      AttentionCase part = c;
      for (Array* array : {&part.query, &part.key, &part.value}) *array = take(*array, {b});
      if (part.key_padding_mask) part.key_padding_mask->data = take(part.key_padding_mask->data, {b});
      const Gradients alone = attention_backward(take(drawn.grad, {b}), part, asked);
      for (const auto& [name, array] : alone) {
        INFO(name << " of " << b);
        CHECK_THAT(take(together.at(name), {b}), HasBitsOf(array));
      }
    }
  }
}

TEST_CASE("the contents of masked keys and values do not affect gradients", "[backward][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Drawn drawn(seed);
    AttentionCase& c = drawn.c;
    c.fully_masked = FullyMasked::zero;
    INFO(describe(c));
    const Gradients expected = attention_backward(drawn.grad, c, asked_of(c, kAttentionTrace));
    const std::vector<bool> seen = seen_keys(c);
    const std::int64_t B = c.key.dims[0], Hkv = c.key.dims[1], S = c.key.dims[2], L = c.query.dims[2], heads = c.query.dims[1] / Hkv;
    for (std::int64_t head = 0; head < B * Hkv; ++head)
      for (std::int64_t j = 0; j < S; ++j) {
        bool any = false;
        for (std::int64_t i = 0; i < heads * L; ++i) any = any || seen[static_cast<std::size_t>((head * heads * L + i) * S + j)];
        if (any) continue;
        for (Array* array : {&c.key, &c.value}) {
          const std::int64_t width = array->dims[3];
          std::fill_n(array->data.begin() + (head * S + j) * width, width, j % 2 == 0 ? kNaN : kInfinity);
        }
      }
    check_same(attention_backward(drawn.grad, c, asked_of(c, kAttentionTrace)), expected);
  }
}

TEST_CASE("a key that is NaN affects only the gradients of queries that see it", "[backward][properties]") {
  Generator random(3);
  AttentionCase c;
  c.query = random.normal({1, 1, 9, 5});
  c.key = random.normal({1, 1, 9, 5});
  c.value = random.normal({1, 1, 9, 4});
  c.is_causal = true;
  const Array grad = random.normal({1, 1, 9, 4});
  const Gradients expected = attention_backward(grad, c);
  std::fill_n(c.key.data.begin() + 6 * 5, 5, kNaN);
  std::fill_n(c.value.data.begin() + 6 * 4, 4, kNaN);
  const Gradients found = attention_backward(grad, c);
  for (std::size_t i = 0; i < 9 * 5; ++i)
    if (i < 6 * 5)
      CHECK(canonical_bits(found.at("grad_query").data[i]) == canonical_bits(expected.at("grad_query").data[i]));
    else
      CHECK(std::isnan(found.at("grad_query").data[i]));
}

TEST_CASE("a query or gradient that is NaN affects only the gradients of keys that it sees", "[backward][properties]") {
  Generator random(4);
  AttentionCase c;
  c.query = random.normal({1, 1, 9, 5});
  c.key = random.normal({1, 1, 9, 5});
  c.value = random.normal({1, 1, 9, 4});
  c.is_causal = true;
  Array grad = random.normal({1, 1, 9, 4});
  const Gradients expected = attention_backward(grad, c);
  std::fill_n(c.query.data.begin() + 3 * 5, 5, kNaN);
  std::fill_n(grad.data.begin() + 3 * 4, 4, kNaN);
  const Gradients found = attention_backward(grad, c);
  for (const auto& [name, width] : {std::pair<const char*, std::size_t>{"grad_key", 5}, {"grad_value", 4}}) {
    const Array &one = found.at(name), &other = expected.at(name);
    for (std::size_t i = 0; i < 9 * width; ++i)
      if (i < 4 * width)
        CHECK(std::isnan(one.data[i]));
      else
        CHECK(canonical_bits(one.data[i]) == canonical_bits(other.data[i]));
  }
}

TEST_CASE("under the policy nan, a query without keys has NaN gradients unless its output gradient is 0", "[backward][properties]") {
  Generator random(5);
  AttentionCase c;
  c.query = random.normal({1, 1, 6, 5});
  c.key = random.normal({1, 1, 6, 5});
  c.value = random.normal({1, 1, 6, 4});
  c.is_causal = true;
  c.query_offset = -3;
  c.fully_masked = FullyMasked::nan;
  Array grad = random.normal({1, 1, 6, 4});
  std::fill_n(grad.data.begin() + 4, 4, 0.0F);
  const Trace asked = kAttentionTrace;
  const Gradients found = attention_backward(grad, c, {.trace = asked});
  for (const char* name : {"grad_query", "trace.scores", "trace.masked_scores", "trace.probabilities", "trace.weights", "trace.weighted_values"}) {
    INFO(name);
    const Array& gradient = found.at(name);
    const std::size_t width = gradient.data.size() / 6;
    for (std::size_t i = 0; i < gradient.data.size(); ++i) {
      const std::size_t query = i / width;
      if (query < 3 && query != 1)
        CHECK(std::isnan(gradient.data[i]));
      else if (query == 1)
        CHECK(gradient.data[i] == 0);
      else
        CHECK(std::isfinite(gradient.data[i]));
    }
  }
  const auto is_finite = [](float value) { return std::isfinite(value); };
  for (const char* name : {"grad_key", "grad_value"}) CHECK(std::all_of(found.at(name).data.begin(), found.at(name).data.end(), is_finite));
  const Array key_weight = random.normal({3, 5}), query_weight = random.normal({3, 5}), score_weight = random.normal({3});
  for (const bool comes_back : {true, false}) {
    if (!comes_back) std::fill_n(grad.data.begin(), 12, 0.0F);
    const Gradients additive = additive_attention_backward(grad, c, {query_weight, key_weight, score_weight});
    CHECK(std::isnan(additive.at("grad_score_weight").data[0]) == comes_back);
    CHECK(std::isnan(additive.at("grad_query_weight").data[0]) == comes_back);
    CHECK(std::all_of(additive.at("grad_key_weight").data.begin(), additive.at("grad_key_weight").data.end(), is_finite));
  }
  c.key = Array({1, 1, 0, 5}), c.value = Array({1, 1, 0, 4});
  const Array without = attention_backward(grad, c).at("grad_query");
  for (std::size_t i = 0; i < without.data.size(); ++i) CHECK(std::isnan(without.data[i]) == (i >= 15));
}

TEST_CASE("gradients are 0 for masked keys, and the score gradients of a row sum to 0", "[backward][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Drawn drawn(seed);
    AttentionCase& c = drawn.c;
    c.softcap = 0;
    c.fully_masked = FullyMasked::zero;
    INFO(describe(c));
    const Gradients found = attention_backward(drawn.grad, c, asked_of(c, kAttentionTrace));
    const std::vector<bool> seen = seen_keys(c);
    const auto S = static_cast<std::size_t>(c.key.dims[2]);
    for (const char* name : {"trace.scores", "trace.masked_scores", "trace.probabilities", "trace.weights"}) {
      INFO(name);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < seen.size(); ++i) wrong += !seen[i] && found.at(name).data[i] != 0.0F ? 1 : 0;
      CHECK(wrong == 0);
    }
    const std::vector<float>& scores = found.at("trace.scores").data;
    for (std::size_t row = 0; row * S < scores.size(); ++row) {
      double sum = 0, size = 0;
      for (std::size_t j = row * S; j < (row + 1) * S; ++j) sum += scores[j], size += std::abs(scores[j]);
      // The mean is rounded, and the probabilities sum to almost 1.
      REQUIRE(std::abs(sum) <= 64 * kEps * (1 + size) * std::sqrt(static_cast<double>(S)));
    }
  }
}

TEST_CASE("gradients of attention are linear in the output gradient", "[backward][properties][large]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Drawn drawn(seed);
    INFO(describe(drawn.c));
    Generator random(seed + 2000);
    const Array other = random.normal(drawn.grad.dims);
    Array both = drawn.grad;
    for (std::size_t i = 0; i < both.data.size(); ++i) both.data[i] += 2 * other.data[i];
    const AttentionOptions asked = asked_of(drawn.c, kAttentionTrace);
    const Gradients one = attention_backward(drawn.grad, drawn.c, asked), two = attention_backward(other, drawn.c, asked);
    for (const auto& [name, array] : attention_backward(both, drawn.c, asked)) {
      INFO(name);
      Array expected = one.at(name);
      double largest = 1;
      for (std::size_t i = 0; i < expected.data.size(); ++i) {
        expected.data[i] += 2 * two.at(name).data[i];
        largest = std::max(largest, std::abs(static_cast<double>(expected.data[i])));
      }
      CHECK_THAT(array, is_within(200 * kEps * largest, expected));
    }
  }
}

TEST_CASE("a gradient is the rate of change of the output", "[backward][properties][large]") {
  // The reference computes softcap directly.
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Drawn drawn(seed);
    AttentionCase& c = drawn.c;
    INFO(describe(c));
    const Gradients found = attention_backward(drawn.grad, c);
    Generator random(seed + 3000);
    for (const auto& [name, array] : {std::pair<const char*, Array AttentionCase::*>{"grad_query", &AttentionCase::query},
                                      {"grad_key", &AttentionCase::key},
                                      {"grad_value", &AttentionCase::value}}) {
      INFO(name);
      // A central difference. Steps of a power of two are exact in float32.
      constexpr float kStep = 0x1p-9F;
      AttentionCase above = c, below = c;
      double expected = 0;
      for (std::size_t i = 0; i < (c.*array).data.size(); ++i) {
        const float sign = random.coin(0.5) ? kStep : -kStep, middle = (c.*array).data[i];
        (above.*array).data[i] = middle + sign;
        (below.*array).data[i] = middle - sign;
        expected += static_cast<double>(found.at(name).data[i]) * ((above.*array).data[i] - static_cast<double>((below.*array).data[i]));
      }
      const Estimate one = reference_attention(above).context, other = reference_attention(below).context;
      double change = 0, size = 0;
      for (std::size_t i = 0; i < one.value.size(); ++i) {
        change += drawn.grad.data[i] * (one.value[i] - other.value[i]);
        size += std::abs(drawn.grad.data[i]) * (std::abs(one.value[i]) + 1);
      }
      // The third derivative, for steps of 2⁻⁹ and widths up to 20.
      CHECK(std::abs(change - expected) <= 1e-5 * size);
    }
  }
}

TEST_CASE("the probabilities of a backward are the forward's weights, bit for bit", "[backward][properties]") {
  Generator random(5);
  AttentionCase c;
  c.query = random.normal({1, 1, 50, 16});
  c.key = random.normal({1, 1, 333, 16});
  c.value = random.normal({1, 1, 333, 1});
  const Array weights = *attention(c, {.need_weights = true}).weights;
  for (const std::size_t query : {std::size_t{0}, std::size_t{31}, std::size_t{49}}) {
    Array grad({1, 1, 50, 1});
    grad.data[query] = 1;
    const Array values = attention_backward(grad, c).at("grad_value");
    CHECK_THAT(reshaped(values, {333}),
               HasBitsOf(Array({333}, std::vector<float>(weights.data.begin() + static_cast<std::ptrdiff_t>(query) * 333,
                                                         weights.data.begin() + static_cast<std::ptrdiff_t>(query + 1) * 333))));
  }
}

TEST_CASE("the memory of a backward of long rows grows only with their length", "[backward][properties]") {
  Generator random(6);
  AttentionCase c;
  c.query = random.normal({1, 1, 600, 8});
  c.key = random.normal({1, 1, 5000, 8});
  c.value = random.normal({1, 1, 5000, 8});
  const Array grad = random.normal({1, 1, 600, 8});
  const Gradients expected = attention_backward(grad, c);
  set_memory_limit(std::uint64_t{5000} * 1024);
  const Gradients found = attention_backward(grad, c);
  set_memory_limit(std::uint64_t{1} << 63);
  check_same(found, expected);
  AttentionCase one = c;
  one.query = Array({1, 1, 1, 8}, std::vector<float>(c.query.data.end() - 8, c.query.data.end()));
  const Array last({1, 1, 1, 8}, std::vector<float>(grad.data.end() - 8, grad.data.end()));
  const Array all = expected.at("grad_query");
  CHECK_THAT(attention_backward(last, one).at("grad_query"), HasBitsOf(Array({1, 1, 1, 8}, std::vector<float>(all.data.end() - 8, all.data.end()))));
}

TEST_CASE("additive and general attention skip masked keys, also in the gradients of their parameters", "[backward][properties]") {
  Generator random(7);
  AttentionCase c;
  c.query = random.normal({2, 4, 5});
  c.key = random.normal({2, 6, 3});
  c.value = random.normal({2, 6, 4});
  c.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 6}, {1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0})};
  c.mask = MaskInput{MaskKind::attend, Array({4, 6}, 1)};
  std::fill_n(c.mask->data.data.begin() + 6, 6, 0.0F);
  const Array grad = random.normal({2, 4, 4}), weight = random.normal({5, 3});
  const AdditiveArrays params{random.normal({7, 5}), random.normal({7, 3}), random.normal({7}), random.normal({7})};
  const Gradients general = general_attention_backward(grad, c, weight), additive = additive_attention_backward(grad, c, params);
  for (std::size_t i = 0; i < 12; ++i)
    if (c.key_padding_mask->data.data[i] == 0.0F) {
      std::fill_n(c.key.data.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, kNaN);
      std::fill_n(c.value.data.begin() + static_cast<std::ptrdiff_t>(4 * i), 4, kNaN);
    }
  for (std::size_t b = 0; b < 2; ++b) std::fill_n(c.query.data.begin() + static_cast<std::ptrdiff_t>((4 * b + 1) * 5), 5, kNaN);
  check_same(general_attention_backward(grad, c, weight), general);
  check_same(additive_attention_backward(grad, c, params), additive);
}

TEST_CASE("gradients of attention refuse invalid arguments", "[backward][errors]") {
  AttentionCase c;
  c.query = Array({2, 3, 5, 8}, 1);
  c.key = Array({2, 3, 7, 8}, 1);
  c.value = Array({2, 3, 7, 4}, 1);
  const Array grad({2, 3, 5, 4}, 1);
  const char* op = "scaled_dot_product_attention_backward";
  for (const Shape& dims : {Shape{2, 3, 5, 8}, Shape{2, 3, 7, 4}, Shape{6, 5, 4}, Shape{1, 3, 5, 4}})
    check_error({ErrorCode::shape, op, "grad", {to_string(dims), "(2,3,5,4)"}}, [&] { attention_backward(Array(dims), c); });
  AttentionCase wrong = c;
  wrong.key = Array({2, 3, 7, 5}, 1);
  check_error({ErrorCode::shape, op, "key", {"(2,3,7,5)"}}, [&] { attention_backward(grad, wrong); });
  wrong = c;
  wrong.mask = MaskInput{MaskKind::attend, Array({5, 6}, 1)};
  check_error({ErrorCode::mask, op, "mask", {"(5,6)"}}, [&] { attention_backward(grad, wrong); });
  check_error({ErrorCode::config, op, "dropout", {"1"}}, [&] { attention_backward(grad, c, {.dropout = 1.0F}); });
  check_error({ErrorCode::argument, op, "trace", {"merged"}}, [&] { attention_backward(grad, c, {.trace = {TraceName::merged}}); });
  const Tensor<4> past = detail::empty<4>({2, 3, 1, 8}), past_value = detail::empty<4>({2, 3, 1, 4});
  check_error({ErrorCode::unsupported, op, "past", {"in front of key and value", "query_offset"}},
              [&] { attention_backward(grad, c, {.past = KeyValueView(past, past_value)}); });
  check_error({ErrorCode::shape, "general_attention_backward", "weight", {"(8,7)", "(8,8)"}},
              [&] { general_attention_backward(grad, c, Array({8, 7})); });
  check_error({ErrorCode::shape, "general_attention_backward", "grad", {"(2,3,5,4)"}},
              [&] { general_attention_backward(Array({2, 3, 5, 5}), c, Array({8, 8})); });
  const AdditiveArrays params{Array({6, 8}), Array({6, 8}), Array({5})};
  check_error({ErrorCode::shape, "additive_attention_backward", "score_weight", {"(5)", "(6)"}},
              [&] { additive_attention_backward(grad, c, params); });
  set_memory_limit(4000);
  check_error({ErrorCode::memory, op, "", {"bytes"}}, [&] { attention_backward(grad, c); });
  check_error({ErrorCode::memory, "general_attention_backward", "", {"bytes"}}, [&] { general_attention_backward(grad, c, Array({8, 8})); });
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("gradients write nothing if an argument is invalid", "[backward][errors]") {
  const Array x({5, 4}, 1), grad({5, 3}, 1);
  std::vector<float> place(20, 7.0F);
  const auto untouched = [&] { return std::all_of(place.begin(), place.end(), [](float value) { return value == 7.0F; }); };
  const TensorView q(x.data.data(), x.dims), g(grad.data.data(), grad.dims);
  check_error({ErrorCode::shape, "scaled_dot_product_attention_backward", "grad", {}}, [&] {
    const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention_backward(g, q, q, q, {});
    detail::scaled_dot_product_attention_backward(plan, g, q, q, q, {}, {place.data(), place.data(), place.data(), {}});
  });
  CHECK(untouched());
}

}  // namespace ops_attention_backward_test
}  // namespace attn::test
