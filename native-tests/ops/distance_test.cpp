#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>

#include "attn/layers/rotary_layer.hpp"
#include "attn/models/rope_scaling.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/positions.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_distance_test {

struct Inputs {
  Array query, key, value;

  Inputs(std::int64_t L, std::int64_t S) {
    Generator random(static_cast<std::uint64_t>(L * 10'000 + S));
    query = random.normal({2, 3, L, 8});
    key = random.normal({2, 3, S, 8});
    value = random.normal({2, 3, S, 5});
  }
};

struct Output {
  Array output, weights, scores;
};

Output attend(const Inputs& in, const AttentionOptions& options, const detail::PositionBias& position_bias = {}) {
  const TensorView q{in.query.data.data(), in.query.dims}, k{in.key.data.data(), in.key.dims}, v{in.value.data.data(), in.value.dims};
  const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, options);
  Output result{Array(plan.output), {}, {}};
  detail::AttentionBuffers buffers;
  buffers.output = result.output.data.data();
  if (plan.spec.need_weights) {
    result.weights = Array(plan.weights);
    buffers.weights = result.weights.data.data();
  }
  const auto scores = static_cast<std::size_t>(TraceName::scores);
  if (plan.spec.trace.has(TraceName::scores)) {
    result.scores = Array(plan.trace_shapes[scores]);
    buffers.trace[scores] = result.scores.data.data();
  }
  const std::int64_t H = 3, L = in.query.dims.back(1), S = in.key.dims.back(1);
  const detail::AttentionInputs inputs{.query = detail::heads_of(q.data, H, L, 8),
                                       .key = detail::heads_of(k.data, H, S, 8),
                                       .value = detail::heads_of(v.data, H, S, 5),
                                       .context = detail::heads_of(buffers.output, H, L, 5),
                                       .position_bias = position_bias};
  detail::Scratch scratch;
  detail::attention_core(plan.spec, plan.sizes, inputs, buffers, scratch);
  return result;
}

Mask band(std::int64_t L, std::int64_t S, std::int64_t window) {
  xt::xtensor<bool, 2> flags({static_cast<std::size_t>(L), static_cast<std::size_t>(S)});
  for (std::int64_t i = 0; i < L; ++i)
    for (std::int64_t j = 0; j < S; ++j) flags(i, j) = std::abs(i - j) <= window;
  return Mask::attend(std::move(flags));
}

TEST_CASE("a window gives the bits of the equivalent mask", "[ops]") {
  struct Case {
    std::int64_t L, S, window, padding;
  };
  // Blocks have 1024 keys: the last rows of 1030 begin within, of 1100 after.
  const auto [L, S, window, padding] =
      GENERATE(Case{1, 1, 1, 0}, Case{1, 1, 0, 0}, Case{30, 30, 0, 7}, Case{7, 7, 2, 1}, Case{30, 30, 29, 7}, Case{30, 30, 40, 7},
               Case{200, 200, 1, 50}, Case{300, 300, 64, 75}, Case{300, 300, 70, 75}, Case{40, 300, 9, 75}, Case{300, 40, 50, 10},
               Case{1030, 1030, 3, 2}, Case{1030, 1030, 40, 250}, Case{1100, 1100, 3, 30});
  CAPTURE(L, S, window, padding);
  const Inputs in(L, S);
  const bool causal = GENERATE(false, true), need_weights = GENERATE(false, true);
  CAPTURE(causal, need_weights);
  Array padded({2, S}, 1.0F);
  for (std::int64_t j = S - padding; j < S; ++j) padded.data[static_cast<std::size_t>(j)] = 0;
  const MaskView padding_mask = MaskView(MaskKind::attend, padded.data.data(), padded.dims);
  for (const FullyMasked fully_masked : {FullyMasked::zero, FullyMasked::uniform}) {
    const AttentionOptions with_mask{.mask = band(L, S, window),
                                     .key_padding_mask = padding_mask,
                                     .is_causal = causal,
                                     .need_weights = need_weights,
                                     .fully_masked = fully_masked};
    AttentionOptions with_window = with_mask;
    with_window.mask.reset();
    const Output expected = attend(in, with_mask);
    with_window.window = Window{window, window};
    const Output got = attend(in, with_window);
    CHECK_THAT(got.output, HasBitsOf(expected.output));
    if (need_weights) CHECK_THAT(got.weights, HasBitsOf(expected.weights));
  }
}

TEST_CASE("keys outside the window do not affect the output, even if they are NaN", "[ops]") {
  Inputs in(300, 300);
  const AttentionOptions window{.window = Window{20, 20}};
  const Array before = attend(in, window).output;
  const auto spoil = [](Array& x) {
    const auto width = static_cast<std::size_t>(x.dims.back(0));
    for (std::size_t head = 0; head < 6; ++head) std::fill_n(x.data.begin() + static_cast<std::ptrdiff_t>(head * 300 * width), 100 * width, kNaN);
  };
  spoil(in.key);
  spoil(in.value);
  const Array after = attend(in, window).output;
  for (std::size_t head = 0; head < 6; ++head)
    for (std::size_t i = head * 300 * 5; i < (head + 1) * 300 * 5; ++i) {
      const bool sees = (i / 5) % 300 < 120;
      if (std::isnan(after.data[i]) != sees || (!sees && after.data[i] != before.data[i])) FAIL("row " << i / 5 % 300);
    }
}

TEST_CASE("a position bias is added to the scores, by head and before masks", "[ops]") {
  const std::int64_t L = GENERATE(5, 70, 1500), S = L;
  CAPTURE(L);
  const Inputs in(L, S);
  const bool everything = GENERATE(false, true);
  const Array by_distance = Generator(3).normal({3, 2 * L - 1});
  Array bias({1, 3, L, S});
  for (std::int64_t head = 0; head < 3; ++head)
    for (std::int64_t i = 0; i < L; ++i)
      std::copy_n(by_distance.data.data() + head * (2 * L - 1) + L - 1 - i, S, bias.data.data() + (head * L + i) * S);
  AttentionOptions options{.is_causal = L == 70, .need_weights = everything};
  if (everything) options.trace = {TraceName::scores};
  const Output got = attend(in, options, {by_distance.data.data() + L - 1, 2 * L - 1});
  AttentionOptions added = options;
  added.mask = MaskView(MaskKind::additive, bias.data.data(), bias.dims);
  const Output expected = attend(in, added);
  CHECK_THAT(got.output, HasBitsOf(expected.output));
  if (!everything) return;
  CHECK_THAT(got.weights, HasBitsOf(expected.weights));
  Array sums = expected.scores;
  for (std::size_t i = 0; i < sums.data.size(); ++i) sums.data[i] += bias.data[i % bias.data.size()];
  CHECK_THAT(got.scores, HasBitsOf(sums));
}

TEST_CASE("a rotary table rotates as apply_rotary does, except for the rounding of angles", "[ops]") {
  const std::int64_t D = GENERATE(2, 8, 64);
  const double theta = GENERATE(10000.0, 160000.0);
  CAPTURE(D, theta);
  const detail::RotaryTable table(detail::rope_frequencies(theta, {}, D), 600, D);
  Array x = Generator(5).normal({1, 600, D});
  const TensorView view{x.data.data(), x.dims};
  Array expected(x.dims);
  detail::apply_rotary(view, {.theta = theta}, 1, expected.data.data());
  const auto width = static_cast<std::size_t>(D);
  for (std::size_t row = 0; row < 600; ++row) table.rotate(x.data.data() + row * width, 1, row);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    // Frequency and angle round once: 2 · 2⁻²⁴ of the angle; values are below 10.
    const double bound = 10 * (static_cast<double>(i / width) * 3 + 4) * 0x1p-24;
    if (std::abs(static_cast<double>(x.data[i]) - static_cast<double>(expected.data[i])) > bound)
      FAIL(i << " " << x.data[i] << " " << expected.data[i]);
  }
}

}  // namespace ops_distance_test
}  // namespace attn::test
