#include "attn/ops/dropout.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "attn/kernels/philox.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace ops_dropout_test {

using detail::DropoutSite;

struct Place {
  std::uint64_t seed = 0, step = 0;
  DropoutSite site = DropoutSite::attention_weights;
  std::uint32_t layer = 0;
};

/// By definition: Philox of (step, site, layer) under the seed is the key of Philox of (key / 4, query, head, batch),
/// of which the upper 24 bits of word key mod 4 are used.
double draw(const Place& place, std::size_t batch, std::size_t head, std::size_t query, std::size_t key) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto outer =
      kernels::philox({low(place.step), high(place.step), static_cast<std::uint32_t>(place.site), place.layer}, {low(place.seed), high(place.seed)});
  const auto words = kernels::philox({low(key / 4), low(query), low(head), low(batch)}, {outer[0], outer[1]});
  return (words[key % 4] >> 8) * 0x1p-24;
}

bool dropped(float probability, const Place& place, std::size_t batch, std::size_t head, std::size_t query, std::size_t key) {
  return draw(place, batch, head, query, key) < static_cast<double>(probability);
}

Array after_dropout(Array x, float probability, const Place& place) {
  const bool heads = x.dims.rank() == 4;
  const auto S = static_cast<std::size_t>(x.dims.back(0)), L = static_cast<std::size_t>(x.dims.back(1)),
             H = heads ? static_cast<std::size_t>(x.dims[1]) : 1;
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = dropped(probability, place, i / S / L / H, i / S / L % H, i / S % L, i % S) ? 0 : x.data[i] * (1 / (1 - probability));
  return x;
}

/// 0 if dropped, otherwise scaled with three roundings of half a unit, because the division by the sum follows;
/// denormals round to multiples of the smallest.
IsCloseTo is_weights_after_dropout(const Array& probabilities, float probability, const Place& place) {
  const Array exact = after_dropout(probabilities, probability, place);
  const double factor = 1 / (1 - probability);
  Estimate weights(probabilities);
  for (std::size_t i = 0; i < exact.data.size(); ++i) {
    if (!std::isnan(weights.value[i])) weights.value[i] *= exact.data[i] == 0 ? 0 : factor;
    weights.error[i] = weights.value[i] == 0 ? 0 : 2 * kEps * weights.value[i] + (1 + factor) * kSmallestDenormal;
  }
  return IsCloseTo(weights);
}

/// Weights are 1 / S, so the output shows dropped ones.
AttentionCase even(std::int64_t B, std::int64_t H, std::int64_t L, std::int64_t S) {
  AttentionCase c;
  c.query = Array({B, H, L, 1});
  c.key = Array({B, H, S, 1});
  c.value = Array({B, H, S, 1}, 1);
  return c;
}

Array weights_of(const AttentionCase& c, float probability, std::uint64_t seed) {
  return *attention(c, {.dropout = probability, .seed = seed, .need_weights = true}).weights;
}

TEST_CASE("a weight is dropped if and only if the probability is above its random number", "[dropout]") {
  constexpr std::uint64_t kSeed = 5;
  for (std::size_t key = 0; key < 16; ++key) {
    const auto probability = static_cast<float>(draw({.seed = kSeed}, 0, 0, 0, key));
    CHECK(weights_of(even(1, 1, 1, 16), probability, kSeed).data[key] > 0);
    CHECK(weights_of(even(1, 1, 1, 16), std::nextafter(probability, 1.0F), kSeed).data[key] == 0);
  }
}

TEST_CASE("the share of dropped weights is right in total and along every axis, and the others are scaled up", "[dropout]") {
  constexpr std::size_t B = 4, H = 3, L = 32, S = 128, N = B * H * L * S;
  for (const float p : {0.01F, 0.1F, 0.25F, 0.5F, 0.75F, 0.9F, 0.99F}) {
    const std::uint64_t seed = static_cast<std::uint64_t>(p * 1000);
    const Array weights = weights_of(even(B, H, L, S), p, seed);
    const float kept = 1.0F / S * (1 / (1 - p));
    std::vector<double> by_batch(B), by_head(H), by_query(L), by_key(S);
    double count = 0;
    for (std::size_t i = 0; i < N; ++i) {
      REQUIRE((weights.data[i] == 0 || weights.data[i] == kept));
      if (weights.data[i] == 0) continue;
      ++count, ++by_batch[i / S / L / H], ++by_head[i / S / L % H], ++by_query[i / S % L], ++by_key[i % S];
    }
    INFO("probability " << p << ", seed " << seed << ", kept " << count << " of " << N);
    const auto check = [&](const char* what, double got, std::size_t of) {
      const auto n = static_cast<double>(of);
      INFO(what << ": " << got << " of " << of);
      CHECK(std::abs(got - n * (1 - p)) < 5 * std::sqrt(n * p * (1 - static_cast<double>(p))));
    };
    check("all", count, N);
    for (const double got : by_batch) check("of a batch entry", got, N / B);
    for (const double got : by_head) check("of a head", got, N / H);
    for (const double got : by_query) check("of a query", got, N / L);
    for (const double got : by_key) check("of a key", got, N / S);
    const double mean = count * static_cast<double>(kept) / (B * H * L);
    CHECK(std::abs(mean - 1) < 5 * std::sqrt(p / (1 - static_cast<double>(p)) / N) + 4 * kEps);
  }
}

double correlation(const std::vector<bool>& x, const std::vector<bool>& y, double p) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += ((x[i] ? p : p - 1) * (y[i] ? p : p - 1));
  return sum / (p * (1 - p)) / static_cast<double>(x.size());
}

std::vector<bool> kept(const Array& weights) {
  std::vector<bool> kept;
  for (const float weight : weights.data) kept.push_back(weight != 0);
  return kept;
}

TEST_CASE("dropped values are independent of their neighbours and of other seeds, steps, sites and layers", "[dropout]") {
  constexpr std::size_t S = 64, N = 4 * 2 * 32 * S;
  const AttentionCase c = even(4, 2, 32, S);
  const float p = 0.5F;
  const auto at = [&](const Place& place) { return kept(after_dropout(Array({4, 2, 32, S}, 1), p, place)); };
  const std::vector<bool> one = kept(weights_of(c, p, 1));
  CHECK(one == at({.seed = 1}));
  const double bound = 5 / std::sqrt(static_cast<double>(N));
  for (const Place& other : {Place{2}, Place{std::uint64_t{1} << 32}, Place{(std::uint64_t{1} << 32) + 1}, Place{1, 1},
                             Place{1, std::uint64_t{1} << 32}, Place{1, 0, DropoutSite::attention_output}, Place{1, 0, DropoutSite::hidden},
                             Place{1, 0, DropoutSite::feed_forward_output}, Place{1, 0, DropoutSite::attention_weights, 1}, Place{0, 1}}) {
    INFO("seed " << other.seed << ", step " << other.step << ", site " << static_cast<int>(other.site) << ", layer " << other.layer);
    CHECK(std::abs(correlation(one, at(other), p)) < bound);
  }
  for (const std::size_t distance : {std::size_t{1}, std::size_t{2}, std::size_t{4}, S, 32 * S, 64 * S}) {
    INFO("at distance " << distance);
    const std::vector<bool> first(one.begin(), one.end() - static_cast<std::ptrdiff_t>(distance)),
        second(one.begin() + static_cast<std::ptrdiff_t>(distance), one.end());
    CHECK(std::abs(correlation(first, second, p)) < 5 / std::sqrt(static_cast<double>(first.size())));
  }
}

TEST_CASE("dropout of a call follows its definition for every seed, probability and index", "[dropout]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Generator random(seed);
    AttentionCase c;
    c.seed = seed;
    const std::int64_t B = 1 + random.below(3), H = 1 + random.below(3), L = 1 + random.below(30), S = 1 + random.below(40);
    c.query = random.normal({B, H, L, 5});
    c.key = random.normal({B, H, S, 5});
    c.value = random.normal({B, H, S, 3});
    if (random.coin(0.5)) c.mask = random_mask(random, kMaskKinds[random.below(3)], random.pick(mask_dims(B, H, L, S)));
    c.is_causal = random.coin(0.3);
    c.fully_masked = kPolicies[random.below(3)];
    const float p = random.pick<float>({0.1F, 0.3F, 0.5F, 0.9F});
    const std::uint64_t key = random.coin(0.5) ? random.next() : seed;
    INFO(describe(c) << ", dropout " << p << ", dropout's seed " << key);
    const Result plain = attention(c, {.need_weights = true}),
                 result = attention(c, {.dropout = p, .seed = key, .need_weights = true, .trace = kAttentionTrace});
    CHECK_THAT(result.trace.at(TraceName::probabilities), HasBitsOf(*plain.weights));
    CHECK_THAT(*result.weights, is_weights_after_dropout(*plain.weights, p, {.seed = key}));
    CHECK_THAT(result.trace.at(TraceName::weights), HasBitsOf(*result.weights));
    Estimate output({B, H, L, 3});
    for (std::size_t row = 0; row < output.value.size() / 3; ++row)
      for (std::size_t d = 0; d < 3; ++d) {
        Sum sum;
        for (std::size_t j = 0; j < static_cast<std::size_t>(S); ++j) {
          const double weight = result.weights->data[row * static_cast<std::size_t>(S) + j];
          // The output is divided last; a returned weight is rounded separately.
          sum.add(weight, std::abs(weight) * kEps / 2, c.value.data[(row / static_cast<std::size_t>(L) * static_cast<std::size_t>(S) + j) * 3 + d],
                  0);
        }
        output.value[row * 3 + d] = sum.value();
        output.error[row * 3 + d] = sum.error();
      }
    CHECK_THAT(result.output, IsCloseTo(output));
    CHECK_THAT(attention(c, {.dropout = p, .seed = key}).output, HasBitsOf(result.output));
    CHECK_THAT(attention(c, {.dropout = 0.0F, .seed = key}).output, HasBitsOf(plain.output));
  }
}

TEST_CASE("the default seed is 0, and a seed without a probability has no effect", "[dropout]") {
  const AttentionCase c = even(1, 2, 5, 9);
  CHECK_THAT(*attention(c, {.dropout = 0.5F, .need_weights = true}).weights, HasBitsOf(weights_of(c, 0.5F, 0)));
  CHECK_THAT(*attention(c, {.seed = 5, .need_weights = true}).weights, HasBitsOf(*attention(c, {.need_weights = true}).weights));
}

TEST_CASE("dropped weights depend on the index of batch, head, query and key, not on the sizes or contents", "[dropout][properties]") {
  const Array large = weights_of(even(5, 4, 33, 70), 0.3F, 8);
  for (const auto& [B, H, L, S] : {std::tuple{1, 1, 1, 1}, std::tuple{2, 4, 7, 9}, std::tuple{5, 1, 33, 3}, std::tuple{1, 3, 2, 70}}) {
    const Array small = weights_of(even(B, H, L, S), 0.3F, 8);
    std::size_t wrong = 0;
    for (std::size_t b = 0, at = 0; b < static_cast<std::size_t>(B); ++b)
      for (std::size_t h = 0; h < static_cast<std::size_t>(H); ++h)
        for (std::size_t i = 0; i < static_cast<std::size_t>(L); ++i)
          for (std::size_t j = 0; j < static_cast<std::size_t>(S); ++j, ++at)
            if ((small.data[at] == 0) != (large.data[((b * 4 + h) * 33 + i) * 70 + j] == 0)) ++wrong;
    INFO(B << ' ' << H << ' ' << L << ' ' << S);
    CHECK(wrong == 0);
  }
}

TEST_CASE("masked keys are skipped under dropout, even if they are NaN", "[dropout]") {
  AttentionCase c = even(2, 1, 6, 8);
  c.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 8}, {1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1})};
  const Result clean = attention(c, {.dropout = 0.4F, .seed = 3, .need_weights = true});
  for (std::size_t j = 0; j < 16; ++j)
    if (c.key_padding_mask->data.data[j] == 0) c.key.data[j] = c.value.data[j] = kNaN;
  const Result spoiled = attention(c, {.dropout = 0.4F, .seed = 3, .need_weights = true});
  CHECK_THAT(spoiled.output, HasBitsOf(clean.output));
  CHECK_THAT(*spoiled.weights, HasBitsOf(*clean.weights));
}

TEST_CASE("additive and general attention drop the same weights as dot-product attention", "[dropout]") {
  Generator random(4);
  AttentionCase c;
  c.query = random.normal({2, 3, 5, 4});
  c.key = random.normal({2, 3, 9, 4});
  c.value = random.normal({2, 3, 9, 2});
  const AdditiveArrays params{random.normal({6, 4}), random.normal({6, 4}), random.normal({6})};
  const Array weight = random.normal({4, 4});
  const AttentionOptions dropout{.dropout = 0.5F, .seed = 7, .need_weights = true, .trace = {TraceName::probabilities}};
  for (const Result& result : {attention(c, dropout), additive_attention(c, params, dropout), general_attention(c, weight, dropout)})
    CHECK_THAT(*result.weights, is_weights_after_dropout(result.trace.at(TraceName::probabilities), 0.5F, {.seed = 7}));
}

TEST_CASE("multi-head attention drops only in training, with one more step per forward", "[dropout][layers]") {
  Generator random(1);
  auto layer = drawn_layer<MultiHeadAttention>(random, MultiHeadAttentionOptions{.embed_dim = 12, .num_heads = 3, .dropout = 0.4F});
  const Array x = random.normal({2, 7, 12});
  const AttentionOptions asked{.need_weights = true, .trace = {TraceName::probabilities}};
  const Result still = forward(layer, x, asked);
  CHECK_THAT(*still.weights, HasBitsOf(still.trace.at(TraceName::probabilities)));
  const auto expected = [&](std::uint64_t seed, std::uint64_t step) {
    return is_weights_after_dropout(*still.weights, 0.4F, {.seed = seed, .step = step});
  };

  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{5}, ~std::uint64_t{0}}) {
    INFO("seed " << seed);
    layer.train({.seed = seed});
    for (const std::uint64_t step : {0, 1, 2}) {
      const Result result = forward(layer, x, asked);
      INFO("step " << step);
      CHECK_THAT(*result.weights, expected(seed, step));
      CHECK_THAT(result.trace.at(TraceName::probabilities), HasBitsOf(*still.weights));
    }
  }
  layer.train();
  CHECK_THAT(*forward(layer, x, asked).weights, expected(0, 0));
  CHECK_THROWS(forward(layer, Array({2, 7, 11}), asked));
  CHECK_THAT(*forward(layer, x, asked).weights, expected(0, 1));
  layer.eval();
  for (int repeat = 0; repeat < 2; ++repeat) CHECK_THAT(forward(layer, x, asked).output, HasBitsOf(still.output));
}

TEST_CASE("dropout and seed of a call use step 0 in any mode, and a seed alone has an effect only in training", "[dropout][layers]") {
  Generator random(2);
  auto layer = drawn_layer<MultiHeadAttention>(random, MultiHeadAttentionOptions{.embed_dim = 12, .num_heads = 3, .dropout = 0.4F});
  const Array x = random.normal({2, 7, 12});
  const Array still = *forward(layer, x, {.need_weights = true}).weights;
  const auto weights = [&](std::optional<float> dropout, std::optional<std::uint64_t> seed) {
    return *forward(layer, x, {.dropout = dropout, .seed = seed, .need_weights = true}).weights;
  };
  const Array own = weights(0.7F, 9);
  CHECK_THAT(own, is_weights_after_dropout(still, 0.7F, {.seed = 9}));
  CHECK_THAT(weights(0.7F, 9), HasBitsOf(own));
  CHECK_THAT(weights(0.7F, {}), is_weights_after_dropout(still, 0.7F, {}));
  CHECK_THAT(weights({}, 9), HasBitsOf(still));
  layer.train({.seed = 4});
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK_THAT(weights(0.7F, 9), HasBitsOf(own));
    CHECK_THAT(weights({}, 9), is_weights_after_dropout(still, 0.4F, {.seed = 9}));
    CHECK_THAT(weights(0.0F, {}), HasBitsOf(still));
  }
  CHECK_THAT(weights({}, {}), is_weights_after_dropout(still, 0.4F, {.seed = 4, .step = 6}));
}

void check_training(const EncoderCase& c, const Arrays& state, const Array& x, const std::map<TraceName, Array>& trace, std::uint64_t seed,
                    std::uint64_t step, std::uint32_t layer, const Array& output) {
  const TransformerEncoderLayerOptions& o = c.options;
  const auto drop = [&](const Array& values, DropoutSite site) { return after_dropout(values, o.dropout, {seed, step, site, layer}); };
  const auto optional = [&](const std::string& name) { return state.contains(name) ? &state.at(name) : nullptr; };
  const auto norm = [&](const Array& values, const std::string& name) {
    const Array* const weight = &state.at(name + ".weight");
    return o.norm == NormKind::rms_norm ? rms_norm(values, weight, o.layer_norm_eps)
                                        : layer_norm(values, weight, optional(name + ".bias"), o.layer_norm_eps);
  };
  const auto plus = [](Array a, const Array& b) {
    for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] += b.data[i];
    return a;
  };
  const auto at = [&](TraceName name) -> const Array& { return trace.at(name); };

  CHECK_THAT(at(TraceName::weights),
             is_weights_after_dropout(at(TraceName::probabilities), o.dropout, {seed, step, DropoutSite::attention_weights, layer}));
  const Array residual = plus(x, drop(at(TraceName::output), DropoutSite::attention_output));
  CHECK_THAT(at(TraceName::attn_residual), HasBitsOf(residual));
  const Array hidden = drop(at(TraceName::ff_hidden), DropoutSite::hidden);
  const Array ff_output = linear(hidden, state.at("linear2.weight"), optional("linear2.bias"));
  CHECK_THAT(at(TraceName::ff_output), HasBitsOf(ff_output));
  const Array sum = plus(o.norm_first ? residual : norm(residual, "norm1"), drop(ff_output, DropoutSite::feed_forward_output));
  CHECK_THAT(at(TraceName::ff_residual), HasBitsOf(sum));
  CHECK_THAT(output, HasBitsOf(o.norm_first ? sum : norm(sum, "norm2")));
}

TEST_CASE("an encoder layer in training drops at torch's four sites, with independent random numbers", "[dropout][layers]") {
  for (std::uint64_t seed = 500; seed < 540; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    c.fully_masked = FullyMasked::zero;
    Generator random(seed);
    c.options.dropout = random.pick<float>({0.1F, 0.5F});
    INFO(describe(c) << ", dropout " << c.options.dropout);
    auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
    const Arrays state = arrays_of(layer.state_dict());
    EncoderForwardOptions asked = call_of(c);
    asked.trace = EncoderTraceOptions{.names = kWholeTrace};
    asked.output_attentions = true;
    const Array still = forward(layer, c.x, asked).output;
    layer.train({.seed = seed});
    for (const std::uint64_t step : {0, 1}) {
      const EncoderOutput result = forward(layer, c.x, asked);
      CHECK_THAT(result.attentions->at(0), HasBitsOf(result.trace->at(0).at(TraceName::weights)));
      check_training(c, state, c.x, result.trace->at(0), seed, step, 0, result.output);
    }
    layer.eval();
    CHECK_THAT(forward(layer, c.x, asked).output, HasBitsOf(still));
  }
}

TEST_CASE("layers of an encoder in training share the step but not the random numbers, and a classifier has the encoder's", "[dropout][layers]") {
  for (const bool norm_first : {false, true}) {
    Generator random(3);
    EncoderCase c;
    c.options = {.d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0.3F, .norm_first = norm_first};
    const TransformerClassifierOptions options{
        .encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0.3F, .norm_first = norm_first}, .num_layers = 3},
        .num_classes = 4};
    auto classifier = drawn_layer<TransformerClassifier>(random, options);
    const Arrays state = arrays_of(classifier.state_dict());
    TransformerEncoder encoder(options.encoder);
    encoder.load_state_dict(state_of(below("encoder.", state)));
    const Array x = random.normal({2, 6, 8});
    EncoderForwardOptions asked{.output_hidden_states = true};
    asked.trace = EncoderTraceOptions{.names = kWholeTrace};
    encoder.train({.seed = 6});
    classifier.train({.seed = 6});
    for (const std::uint64_t step : {0, 1, 2}) {
      INFO("pre-norm " << norm_first << ", step " << step);
      const EncoderOutput result = forward(encoder, x, asked);
      for (std::int64_t i = 0; i < 3; ++i)
        check_training(c, below("encoder.layers." + std::to_string(i) + ".", state), result.hidden_states->at(static_cast<std::size_t>(i)),
                       result.trace->at(i), 6, step, static_cast<std::uint32_t>(i), result.hidden_states->at(static_cast<std::size_t>(i) + 1));
      const EncoderOutput classified = forward(classifier, x, asked);
      CHECK_THAT(classified.output, HasBitsOf(result.output));
      CHECK_THAT(classified.logits, HasBitsOf(linear(result.output, state.at("classifier.weight"), &state.at("classifier.bias"))));
    }
  }
}

TEST_CASE("training gives the same bits with every number of threads", "[dropout][layers][threads]") {
  Generator random(4);
  auto encoder = drawn_layer<TransformerEncoder>(
      random, TransformerEncoderOptions{.layer = {.d_model = 48, .nhead = 6, .dim_feedforward = 130, .dropout = 0.2F}, .num_layers = 2});
  const Array x = random.normal({5, 61, 48});
  set_num_threads(1);
  encoder.train({.seed = 2});
  const Array first = forward(encoder, x).output, second = forward(encoder, x).output;
  CHECK_THAT(second, !HasBitsOf(first));
  for (const unsigned threads : {2U, 3U}) {
    set_num_threads(threads);
    INFO("seed 4, " << threads << " threads");
    encoder.train({.seed = 2});
    CHECK_THAT(forward(encoder, x).output, HasBitsOf(first));
    CHECK_THAT(forward(encoder, x).output, HasBitsOf(second));
  }
  set_num_threads(1);
}

TEST_CASE("dropout of a batch entry in training depends on its index, not on other entries", "[dropout][layers]") {
  Generator random(5);
  auto layer = drawn_layer<TransformerEncoderLayer>(random, TransformerEncoderLayerOptions{.d_model = 8, .nhead = 2, .dim_feedforward = 12});
  const Array a = random.normal({6, 8}), b = random.normal({6, 8}), c = random.normal({6, 8});
  const auto output = [&](const std::vector<Array>& entries) {
    layer.train({.seed = 1});
    return forward(layer, stack(entries)).output;
  };
  const Array one = output({a, b}), two = output({a, c, b}), swapped = output({b, a});
  CHECK_THAT(slice(two, 0), HasBitsOf(slice(one, 0)));
  CHECK_THAT(slice(output({a}), 0), HasBitsOf(slice(one, 0)));
  CHECK_THAT(slice(swapped, 1), !HasBitsOf(slice(one, 0)));
}

TEST_CASE("NaN stays NaN or is dropped, and scaling does not turn infinities into NaN", "[dropout]") {
  AttentionCase c = even(1, 1, 4, 6);
  for (float& value : c.value.data) value = kInfinity;
  for (const float value : attention(c, {.dropout = 0.2F, .seed = 1, .need_weights = true}).output.data)
    CHECK((std::isnan(value) || value == kInfinity));  // 0 · infinity is NaN, as in torch
}

TEST_CASE("a dropout probability outside [0,1) is a CONFIG error everywhere", "[dropout][errors]") {
  Generator random(6);
  AttentionCase c;
  c.query = c.key = c.value = random.normal({2, 3, 4});
  const AdditiveArrays params{random.normal({6, 4}), random.normal({6, 4}), random.normal({6})};
  const Array weight = random.normal({4, 4});
  const MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  for (const float p : {1.0F, 1.5F, -0.1F, -1e-30F, kNaN, kInfinity, -kInfinity}) {
    INFO(p);
    const AttentionOptions options{.dropout = p, .seed = 1};
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"scaled_dot_product_attention", [&] { attention(c, options); }},
        {"additive_attention", [&] { additive_attention(c, params, options); }},
        {"general_attention", [&] { general_attention(c, weight, options); }},
        {"MultiHeadAttention", [&] { forward(layer, c.query, options); }},
        {"MultiHeadAttention", [&] { MultiHeadAttention other({.embed_dim = 4, .num_heads = 2, .dropout = p}); }},
        {"TransformerEncoderLayer", [&] { TransformerEncoderLayer other({.d_model = 4, .nhead = 2, .dropout = p}); }},
        {"TransformerEncoder", [&] { TransformerEncoder other({.layer = {.d_model = 4, .nhead = 2, .dropout = p}, .num_layers = 1}); }},
        {"TransformerClassifier",
         [&] { TransformerClassifier other({.encoder = {.layer = {.d_model = 4, .nhead = 2, .dropout = p}, .num_layers = 1}, .num_classes = 2}); }},
    };
    for (const auto& [op, call] : calls) check_error({ErrorCode::config, op, "dropout", {"from 0 up to, not including, 1"}}, call);
  }
  CHECK_NOTHROW(attention(c, {.dropout = std::nextafter(1.0F, 0.0F), .seed = 1}));
}

}  // namespace ops_dropout_test
}  // namespace attn::test
