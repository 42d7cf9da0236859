#include "attn/layers/transformer_classifier.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/layers/embedding_layer.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace layers_transformer_classifier_test {

constexpr const char* kOp = "TransformerClassifier";
constexpr Pooling kPoolings[] = {Pooling::none, Pooling::mean, Pooling::cls, Pooling::max};

std::string to_string(Pooling pooling) { return std::string(kPoolingNames[static_cast<std::size_t>(pooling)]); }

TransformerClassifierOptions small(Pooling pooling) {
  return {.encoder = {.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true},
          .num_classes = 3,
          .pooling = pooling};
}

std::vector<bool> kept_by(const MaskInput& mask) {
  std::vector<bool> kept;
  for (const float value : mask.data.data)
    kept.push_back(mask.kind == MaskKind::additive ? value != -kInfinity : (value != 0) == (mask.kind == MaskKind::attend));
  return kept;
}

/// (B,L,E) to (B,E); the policy applies to padding alone.
Estimate reference_pool(const Array& x, Pooling pooling, std::vector<bool> kept, FullyMasked policy) {
  const std::int64_t B = x.dims[0], L = x.dims[1], E = x.dims[2];
  Estimate pooled({B, E});
  for (std::int64_t b = 0; b < B; ++b) {
    const auto begin = kept.begin() + b * L;
    if (pooling == Pooling::cls) std::fill(begin, begin + L, false), *begin = true;
    if (std::none_of(begin, begin + L, [](bool k) { return k; })) {
      if (policy == FullyMasked::uniform) std::fill(begin, begin + L, true);
      if (policy == FullyMasked::nan) std::fill_n(pooled.value.begin() + b * E, E, static_cast<double>(kNaN));
    }
    const auto count = static_cast<double>(std::count(begin, begin + L, true));
    for (std::int64_t e = 0; count > 0 && e < E; ++e) {
      Sum sum;
      double most = -kInfinity;
      for (std::int64_t i = 0; i < L; ++i)
        if (begin[i]) {
          const double value = x.data[static_cast<std::size_t>((b * L + i) * E + e)];
          sum.add(value, 0, 1, 0);
          most = std::max(most, value);
        }
      const auto at = static_cast<std::size_t>(b * E + e);
      pooled.value[at] = pooling == Pooling::max ? most : sum.value() / count;
      pooled.error[at] = pooling == Pooling::mean ? 2 * sum.error() / count : 0;
    }
  }
  return pooled;
}

TEST_CASE("logits are the linear map of the pooled output without padding, for every pooling, kind of mask and policy", "[layers]") {
  std::uint64_t seed = 100;
  for (const Pooling pooling : kPoolings)
    for (const int kind : {-1, 0, 1, 2})
      for (const FullyMasked policy : kPolicies)
        for (int repeat = 0; repeat < 4; ++repeat) {
          Generator random(++seed);
          const std::int64_t B = 1 + random.below(4), L = 1 + random.below(12);
          INFO("seed " << seed << ", " << to_string(pooling) << ", mask " << kind << ", " << attn::test::to_string(policy) << ", B " << B << ", L "
                       << L);
          const auto classifier = drawn_layer<TransformerClassifier>(random, small(pooling));
          const Arrays state = arrays_of(classifier.state_dict());
          const Array x = random.normal({B, L, 6});
          EncoderForwardOptions options{.fully_masked = policy, .output_attentions = true};
          std::vector<bool> kept(static_cast<std::size_t>(B * L), true);
          if (kind >= 0) {
            const MaskInput padding = random_padding(random, kMaskKinds[kind], B, L);
            options.key_padding_mask = mask_of(padding);
            kept = kept_by(padding);
          }
          const EncoderOutput result = forward(classifier, x, options);

          TransformerEncoder encoder(small(pooling).encoder);
          encoder.load_state_dict(state_of(below("encoder.", state)));
          const EncoderOutput encoded = forward(encoder, x, options);
          CHECK_THAT(result.output, HasBitsOf(encoded.output));
          CHECK_THAT(result.attentions->at(1), HasBitsOf(encoded.attentions->at(1)));
          const Array &weight = state.at("classifier.weight"), &bias = state.at("classifier.bias");
          if (pooling == Pooling::none)
            CHECK_THAT(result.logits, HasBitsOf(linear(encoded.output, weight, &bias)));
          else
            CHECK_THAT(result.logits, IsCloseTo(reference_linear(reference_pool(encoded.output, pooling, kept, policy), weight, &bias)));
        }
}

TEST_CASE("a pooled classifier ignores padding, but positions hidden by `mask` still count", "[layers][properties]") {
  for (const Pooling pooling : kPoolings) {
    Generator random(2);
    INFO("seed 2, " << to_string(pooling));
    const auto classifier = drawn_layer<TransformerClassifier>(random, small(pooling));
    const Array sentence = random.normal({4, 6});
    const Array alone = forward(classifier, sentence).logits;
    CHECK(alone.dims == (pooling == Pooling::none ? Shape{4, 3} : Shape{3}));
    for (const float content : {0.0F, kNaN, 3e38F}) {
      Array padded({2, 9, 6}, content);
      std::copy(sentence.data.begin(), sentence.data.end(), padded.data.begin() + 54);
      EncoderForwardOptions options;
      options.key_padding_mask = mask_of({MaskKind::attend, Array({2, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0})});
      const Array logits = slice(forward(classifier, padded, options).logits, 1);
      CHECK_THAT(pooling == Pooling::none ? rows_of(logits, 0, 4) : logits, HasBitsOf(alone));
    }
    // `mask` hides keys, but their positions are pooled.
    if (pooling != Pooling::mean && pooling != Pooling::max) continue;
    const Array x = random.normal({1, 9, 6}), allowed({1, 1, 1, 9}, {1, 1, 1, 1, 0, 0, 0, 0, 0});
    const Array hidden = forward(classifier, x, {.mask = mask_of({MaskKind::attend, allowed})}).logits;
    const Array padding = forward(classifier, x, {.key_padding_mask = mask_of({MaskKind::attend, reshaped(allowed, {1, 9})})}).logits;
    CHECK_THAT(hidden, !HasBitsOf(padding));
  }
}

TEST_CASE("one padding mask may apply to the whole batch", "[layers]") {
  for (const Pooling pooling : kPoolings) {
    Generator random(3);
    const auto classifier = drawn_layer<TransformerClassifier>(random, small(pooling));
    const Array x = random.normal({3, 5, 6}), row({5}, {1, 1, 0, 1, 0});
    const Array one = forward(classifier, x, {.key_padding_mask = mask_of({MaskKind::attend, reshaped(row, {1, 5})})}).logits;
    const Array each = forward(classifier, x, {.key_padding_mask = mask_of({MaskKind::attend, stack({row, row, row})})}).logits;
    INFO("seed 3, " << to_string(pooling));
    CHECK_THAT(one, HasBitsOf(each));
    for (std::int64_t b = 0; b < 3; ++b)
      CHECK_THAT(forward(classifier, slice(x, b), {.key_padding_mask = mask_of({MaskKind::attend, row})}).logits, HasBitsOf(slice(one, b)));
  }
}

TEST_CASE("a classifier of empty batches and sequences gives logits of the right shape", "[layers]") {
  for (const Pooling pooling : kPoolings)
    for (const FullyMasked policy : kPolicies) {
      INFO(to_string(pooling) << ", " << attn::test::to_string(policy));
      Generator random(4);
      const auto classifier = drawn_layer<TransformerClassifier>(random, small(pooling));
      const bool none = pooling == Pooling::none;
      CHECK(forward(classifier, Array({0, 5, 6}), {.fully_masked = policy}).logits.dims == (none ? Shape{0, 5, 3} : Shape{0, 3}));
      const Array logits = forward(classifier, Array({2, 0, 6}), {.fully_masked = policy}).logits;
      CHECK(logits.dims == (none ? Shape{2, 0, 3} : Shape{2, 3}));
      const Array bias = arrays_of(classifier.state_dict()).at("classifier.bias");
      if (!none && policy == FullyMasked::nan) CHECK_THAT(logits, HasBitsOf(Array({2, 3}, kNaN)));
      if (!none && policy != FullyMasked::nan) CHECK_THAT(logits, HasBitsOf(stack({bias, bias})));
    }
}

TEST_CASE("NaN in a token reaches only the logits of its sequence", "[layers]") {
  for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
    Generator random(5);
    const auto classifier = drawn_layer<TransformerClassifier>(random, small(pooling));
    Array x = random.normal({2, 3, 6});
    const Array clean = forward(classifier, x).logits;
    x.data[12] = kNaN;
    const Array spoiled = forward(classifier, x).logits;
    INFO("seed 5, " << to_string(pooling));
    CHECK_THAT(slice(spoiled, 0), HasBitsOf(Array({3}, kNaN)));
    CHECK_THAT(slice(spoiled, 1), HasBitsOf(slice(clean, 1)));
  }
}

TEST_CASE("the reference case of two classes has logits (1,10,2)", "[reference]") {
  TransformerClassifier classifier({.encoder = {.layer = {.d_model = 10, .nhead = 1, .dim_feedforward = 10}, .num_layers = 1}, .num_classes = 2});
  Generator random(5);
  const EncoderOutput result = forward(classifier, random.normal({1, 10, 10}));
  CHECK(result.output.dims == Shape{1, 10, 10});
  CHECK(result.logits.dims == Shape{1, 10, 2});
}

TEST_CASE("the amount of padding does not affect a classifier of embedding, positions, encoder and pooled head", "[reference]") {
  Generator random(9);
  const auto words = drawn_layer<Embedding>(random, EmbeddingOptions{.num_embeddings = 20, .embedding_dim = 8, .padding_idx = 0});
  const auto classifier = drawn_layer<TransformerClassifier>(
      random, TransformerClassifierOptions{
                  .encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16, .activation = Activation::gelu}, .num_layers = 2},
                  .num_classes = 2,
                  .pooling = Pooling::mean});
  const auto logits = [&](const std::vector<std::int64_t>& ids, const Shape& dims) {
    Array x = forward(words, ids, dims);
    const Array positions = sinusoidal_positions(dims[1], 8);
    for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] += positions.data[i % positions.data.size()];
    MaskInput padding{MaskKind::attend, Array(dims)};
    for (std::size_t i = 0; i < ids.size(); ++i) padding.data.data[i] = ids[i] != 0 ? 1 : 0;
    return forward(classifier, x, {.key_padding_mask = mask_of(padding)}).logits;
  };
  const Array alone = logits({7, 3, 11}, {1, 3}), together = logits({7, 3, 11, 0, 0, 1, 2, 3, 4, 5}, {2, 5}), swapped = logits({3, 7, 11}, {1, 3});
  CHECK(alone.dims == Shape{1, 2});
  CHECK_THAT(slice(together, 0), HasBitsOf(slice(alone, 0)));
  CHECK_THAT(swapped, !is_within(1e-4, alone));
}

TEST_CASE("invalid options and inputs of a classifier are typed errors that name the classifier", "[layers][errors]") {
  TransformerClassifierOptions options = small(Pooling::mean);
  options.num_classes = 0;
  check_error({ErrorCode::config, kOp, "num_classes", {"is 0", "1 to 2147483647"}}, [&] { TransformerClassifier classifier(options); });
  options.num_classes = -3;
  check_error({ErrorCode::config, kOp, "num_classes", {"is -3"}}, [&] { TransformerClassifier classifier(options); });
  options = small(Pooling::mean);
  options.encoder.num_layers = 0;
  check_error({ErrorCode::config, kOp, "num_layers", {"is 0"}}, [&] { TransformerClassifier classifier(options); });
  options = small(Pooling::mean);
  options.encoder.layer.d_model = 7;
  check_error({ErrorCode::config, kOp, "d_model", {"is 7", "nhead 2"}}, [&] { TransformerClassifier classifier(options); });
  options = small(Pooling::mean);
  options.num_classes = 0x7fffffff;
  set_memory_limit(std::uint64_t{1} << 32);
  check_error({ErrorCode::memory, kOp, "", {"bytes"}}, [&] { TransformerClassifier classifier(options); });
  set_memory_limit(std::uint64_t{1} << 63);

  const TransformerClassifier classifier(small(Pooling::mean));
  check_error({ErrorCode::shape, kOp, "x", {"(2,4,5)", "(B,L,6)"}}, [&] { forward(classifier, Array({2, 4, 5})); });
  check_error({ErrorCode::mask, kOp, "key_padding_mask", {"(2,5)", "(2,4)"}},
              [&] { forward(classifier, Array({2, 4, 6}), {.key_padding_mask = mask_of({MaskKind::block, Array({2, 5})})}); });
  check_error({ErrorCode::out_of_range, kOp, "trace.layers", {"is 2", "0 to 1"}},
              [&] { forward(classifier, Array({2, 4, 6}), {.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{2}}}); });
}

}  // namespace layers_transformer_classifier_test
}  // namespace attn::test
