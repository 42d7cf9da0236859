#include "attn/layers/multi_head_attention.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <ostream>

#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace layers_multi_head_attention_test {

constexpr const char* kOp = "MultiHeadAttention";
using Names = std::vector<std::string>;
using Arrays = std::map<std::string, Array>;

struct Config {
  std::int64_t E, H;
  std::optional<std::int64_t> kdim = {}, vdim = {};
  bool bias = true, out_proj = true;
  std::optional<float> scale = {};
};

MultiHeadAttentionOptions options(const Config& config) {
  return {.embed_dim = config.E,
          .num_heads = config.H,
          .kdim = config.kdim,
          .vdim = config.vdim,
          .bias = config.bias,
          .scale = config.scale,
          .out_proj = config.out_proj};
}

std::string describe(const Config& config) {
  return "E " + std::to_string(config.E) + ", H " + std::to_string(config.H) + ", kdim " + std::to_string(config.kdim.value_or(config.E)) +
         ", vdim " + std::to_string(config.vdim.value_or(config.E)) + ", bias " + std::to_string(config.bias) + ", outProj " +
         std::to_string(config.out_proj) + ", scale " + (config.scale ? std::to_string(*config.scale) : "default");
}

ReferenceWeights draw_weights(Generator& random, const Config& c) {
  const float factor = 1 / std::sqrt(static_cast<float>(c.E));
  ReferenceWeights w;
  w.query = random.normal({c.E, c.E}, factor);
  w.key = random.normal({c.E, c.kdim.value_or(c.E)}, factor);
  w.value = random.normal({c.E, c.vdim.value_or(c.E)}, factor);
  if (c.out_proj) w.out = random.normal({c.E, c.E}, factor);
  if (!c.bias) return w;
  w.query_bias = random.normal({c.E});
  w.key_bias = random.normal({c.E});
  w.value_bias = random.normal({c.E});
  if (c.out_proj) w.out_bias = random.normal({c.E});
  return w;
}

Array joined(const std::vector<Array>& parts) {
  Array all = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    all.data.insert(all.data.end(), parts[i].data.begin(), parts[i].data.end());
    all.dims[0] += parts[i].dims[0];
  }
  return all;
}

Arrays torch_state(const ReferenceWeights& w, const Config& c) {
  Arrays state;
  if (c.kdim.value_or(c.E) == c.E && c.vdim.value_or(c.E) == c.E)
    state["in_proj_weight"] = joined({w.query, w.key, w.value});
  else
    state["q_proj_weight"] = w.query, state["k_proj_weight"] = w.key, state["v_proj_weight"] = w.value;
  if (c.out_proj) state["out_proj.weight"] = w.out;
  if (c.bias) state["in_proj_bias"] = joined({w.query_bias, w.key_bias, w.value_bias});
  if (c.bias && c.out_proj) state["out_proj.bias"] = w.out_bias;
  return state;
}

Arrays separate_state(const ReferenceWeights& w, const Config& c) {
  Arrays state{{"q_proj.weight", w.query}, {"k_proj.weight", w.key}, {"v_proj.weight", w.value}};
  if (c.bias) state["q_proj.bias"] = w.query_bias, state["k_proj.bias"] = w.key_bias, state["v_proj.bias"] = w.value_bias;
  if (c.out_proj) state["out_proj.weight"] = w.out;
  if (c.bias && c.out_proj) state["out_proj.bias"] = w.out_bias;
  return state;
}

MultiHeadAttention layer_of(const Config& config, const ReferenceWeights& weights) {
  MultiHeadAttention layer(options(config));
  layer.load_state_dict(state_of(torch_state(weights, config)));
  return layer;
}

AttentionCase draw_inputs(Generator& random, const Config& config, std::int64_t B, std::int64_t L, std::int64_t S) {
  AttentionCase c;
  c.query = random.normal({B, L, config.E});
  c.key = random.normal({B, S, config.kdim.value_or(config.E)});
  c.value = random.normal({B, S, config.vdim.value_or(config.E)});
  return c;
}

const std::vector<Config> kConfigs{
    {1, 1, {}, {}},
    {8, 2, {}, {}},
    {8, 8, {}, {}},
    {12, 3, {}, {}, false},
    {12, 3, {}, {}, true, false},
    {15, 5, 7, 9},
    {16, 4, 16, 5},
    {16, 4, 3, {}, false},
    {24, 2, {}, {}, false, false},
    {32, 4, {}, {}, true, true, 1.0F},
    {40, 5, {}, {}, true, true, 0.25F},
    {64, 1, {}, {}},
    {33, 11, 20, 20, true, false},
};

TEST_CASE("multi-head attention agrees with the float64 reference in every intermediate", "[layers]") {
  std::uint64_t seed = 100;
  for (const Config& config : kConfigs)
    for (const int variant : {0, 1, 2, 3}) {
      Generator random(++seed);
      const ReferenceWeights weights = draw_weights(random, config);
      const std::int64_t B = 1 + random.below(3), L = 1 + random.below(30), S = 1 + random.below(30);
      AttentionCase c = draw_inputs(random, config, B, L, S);
      c.seed = seed;
      c.scale = config.scale;
      c.is_causal = variant == 1;
      constexpr MaskKind kKinds[] = {MaskKind::attend, MaskKind::block, MaskKind::additive};
      if (variant >= 2) {
        c.mask = random_mask(random, kKinds[seed % 3],
                             random.pick<Shape>({{S}, {L, S}, {B, L, S}, {B, config.H, L, S}, {1, config.H, 1, S}, {B, 1, 1, S}}));
        c.fully_masked = random.pick<FullyMasked>({FullyMasked::zero, FullyMasked::nan, FullyMasked::uniform});
      }
      if (variant == 3) c.key_padding_mask = random_padding(random, kKinds[seed / 3 % 3], B, S);
      INFO(describe(config) << "; " << describe(c));

      const MultiHeadAttention layer = layer_of(config, weights);
      AttentionOptions asked{.need_weights = true, .trace = kWholeTrace};
      AttentionCase call = c;
      call.scale.reset();
      const Result result = forward(layer, call, asked);
      const ReferenceMultiHeadAttention expected = reference_multi_head_attention(c, config.H, weights);
      CHECK_THAT(result.output, IsCloseTo(expected.output));
      CHECK_THAT(*result.weights, IsCloseTo(expected.attention.weights));
      const std::pair<TraceName, const Estimate*> traces[] = {{TraceName::q_proj, &expected.q_proj},
                                                              {TraceName::k_proj, &expected.k_proj},
                                                              {TraceName::v_proj, &expected.v_proj},
                                                              {TraceName::q, &expected.q},
                                                              {TraceName::k, &expected.k},
                                                              {TraceName::v, &expected.v},
                                                              {TraceName::scores, &expected.attention.scores},
                                                              {TraceName::masked_scores, &expected.attention.masked_scores},
                                                              {TraceName::probabilities, &expected.attention.weights},
                                                              {TraceName::weights, &expected.attention.weights},
                                                              {TraceName::weighted_values, &expected.attention.weighted_values},
                                                              {TraceName::context, &expected.attention.context},
                                                              {TraceName::merged, &expected.merged},
                                                              {TraceName::output, &expected.output}};
      CHECK(result.trace.size() == std::size(traces));
      for (const auto& [name, estimate] : traces) {
        INFO(to_string(name));
        CHECK_THAT(result.trace.at(name), IsCloseTo(*estimate));
      }
      CHECK_THAT(result.trace.at(TraceName::output), HasBitsOf(result.output));
      CHECK_THAT(result.trace.at(TraceName::weights), HasBitsOf(*result.weights));

      CHECK_THAT(forward(layer, call).output, HasBitsOf(result.output));
      const Result averaged = forward(layer, call, {.need_weights = true, .average_weights = true});
      CHECK_THAT(averaged.output, HasBitsOf(result.output));
      CHECK_THAT(*averaged.weights, IsCloseTo(mean_of_heads(expected.attention.weights)));
    }
}

const Config kUsual{12, 3, {}, {}};

TEST_CASE("key and value default to query", "[layers]") {
  Generator random(1);
  const MultiHeadAttention layer = layer_of(kUsual, draw_weights(random, kUsual));
  const Array x = random.normal({2, 5, 12});
  CHECK_THAT(forward(layer, x).output, HasBitsOf(forward(layer, x, x, x).output));
}

TEST_CASE("inputs of rank 2 are one batch entry, and the results have no batch dimension", "[layers]") {
  Generator random(2);
  const MultiHeadAttention layer = layer_of(kUsual, draw_weights(random, kUsual));
  const Array x = random.normal({1, 5, 12}), memory = random.normal({1, 7, 12});
  AttentionOptions asked{.need_weights = true, .trace = kWholeTrace};
  asked.key_padding_mask = mask_of({MaskKind::attend, Array({1, 7}, {1, 1, 0, 1, 1, 0, 0})});
  const Result batched = forward(layer, x, memory, memory, asked);
  asked.key_padding_mask = mask_of({MaskKind::attend, Array({7}, {1, 1, 0, 1, 1, 0, 0})});
  const Result unbatched = forward(layer, slice(x, 0), slice(memory, 0), slice(memory, 0), asked);
  CHECK_THAT(unbatched.output, HasBitsOf(slice(batched.output, 0)));
  CHECK_THAT(*unbatched.weights, HasBitsOf(slice(*batched.weights, 0)));
  CHECK(unbatched.trace.size() == batched.trace.size());
  for (const auto& [name, tensor] : unbatched.trace) {
    INFO(to_string(name));
    CHECK_THAT(tensor, HasBitsOf(slice(batched.trace.at(name), 0)));
  }
  asked.average_weights = true;
  CHECK(forward(layer, slice(x, 0), slice(memory, 0), slice(memory, 0), asked).weights->dims == Shape{1, 5, 7});
}

TEST_CASE("the scale of a call overrides that of the layer", "[layers]") {
  Generator random(3);
  Config config = kUsual;
  const ReferenceWeights weights = draw_weights(random, config);
  const Array x = random.normal({2, 5, 12});
  const Array plain = forward(layer_of(config, weights), x, {.scale = 0.7F}).output;
  config.scale = 3.0F;
  const MultiHeadAttention scaled = layer_of(config, weights);
  CHECK_THAT(forward(scaled, x, {.scale = 0.7F}).output, HasBitsOf(plain));
  CHECK_THAT(forward(scaled, x).output, !HasBitsOf(plain));
}

TEST_CASE("without an output projection, the output is the concatenation of heads", "[layers]") {
  Generator random(4);
  Config config = kUsual;
  const ReferenceWeights weights = draw_weights(random, config);
  const Array x = random.normal({2, 5, 12});
  const Array merged = forward(layer_of(config, weights), x, {.trace = {TraceName::merged}}).trace.at(TraceName::merged);
  config.out_proj = false;
  const Result result = forward(layer_of(config, weights), x, {.trace = {TraceName::merged}});
  CHECK_THAT(result.output, HasBitsOf(merged));
  CHECK_THAT(result.trace.at(TraceName::merged), HasBitsOf(merged));
}

TEST_CASE("several heads are the concatenation of single heads, bit for bit", "[layers][properties]") {
  for (const Config& base : {Config{12, 3, {}, {}, true, false}, Config{40, 5, 9, 17, true, false}, Config{32, 32, {}, {}, false, false}}) {
    Generator random(5);
    const ReferenceWeights weights = draw_weights(random, base);
    AttentionCase c = draw_inputs(random, base, 2, 23, 9);
    const std::int64_t D = base.E / base.H;
    c.scale = 0.5F;
    INFO(describe(base));
    const Result all =
        forward(layer_of(base, weights), c, {.need_weights = true, .trace = {TraceName::context, TraceName::q, TraceName::k, TraceName::v}});
    for (std::int64_t h = 0; h < base.H; ++h) {
      std::vector<std::int64_t> rows;
      for (std::int64_t d = 0; d < D; ++d) rows.push_back(h * D + d);
      const auto project = [&](const Array& x, const Array& weight, const Array& bias) {
        const Array b = bias.data.empty() ? Array({D}) : take(reshaped(bias, {base.E, 1}), rows);
        const Array flat = reshaped(b, {D});
        return linear(x, take(weight, rows), &flat);
      };
      AttentionCase head;
      head.query = project(c.query, weights.query, weights.query_bias);
      head.key = project(c.key, weights.key, weights.key_bias);
      head.value = project(c.value, weights.value, weights.value_bias);
      head.scale = c.scale;
      const Result alone = attention(head, {.need_weights = true});
      for (std::int64_t b = 0; b < 2; ++b) {
        CHECK_THAT(slice(alone.output, b), HasBitsOf(slice(slice(all.trace.at(TraceName::context), b), h)));
        CHECK_THAT(slice(*alone.weights, b), HasBitsOf(slice(slice(*all.weights, b), h)));
        for (std::int64_t i = 0; i < 23; ++i) {
          const Array row = slice(slice(all.output, b), i), own = slice(slice(alone.output, b), i);
          CHECK(std::equal(own.data.begin(), own.data.end(), row.data.begin() + h * D));
        }
      }
    }
  }
}

TEST_CASE("a sentence gives the same bits alone as in a padded batch", "[layers][properties]") {
  Generator random(6);
  const Config config{24, 4, {}, {}};
  const MultiHeadAttention layer = layer_of(config, draw_weights(random, config));
  const Array sentence = random.normal({11, 24});
  const Result alone = forward(layer, sentence, {.need_weights = true});
  for (const float content : {0.0F, kNaN}) {
    std::vector<Array> batch;
    MaskInput padding{MaskKind::block, Array({4, 30}, 1)};
    for (std::int64_t b = 0; b < 4; ++b) {
      Array entry({30, 24}, content);
      const std::int64_t length = b == 2 ? 11 : 5 + 7 * b;
      const Array tokens = b == 2 ? sentence : random.normal({length, 24});
      std::copy(tokens.data.begin(), tokens.data.end(), entry.data.begin());
      std::fill_n(padding.data.data.begin() + b * 30, length, 0.0F);
      batch.push_back(entry);
    }
    AttentionOptions asked{.need_weights = true};
    asked.key_padding_mask = mask_of(padding);
    const Result together = forward(layer, stack(batch), asked);
    INFO("seed 6, padding of " << content);
    for (std::int64_t i = 0; i < 11; ++i) CHECK_THAT(slice(slice(together.output, 2), i), HasBitsOf(slice(alone.output, i)));
  }
}

TEST_CASE("a layer without keys gives its output bias, and without queries an empty result", "[layers]") {
  Generator random(7);
  const ReferenceWeights weights = draw_weights(random, kUsual);
  const MultiHeadAttention layer = layer_of(kUsual, weights);
  const Result no_keys =
      forward(layer, random.normal({2, 3, 12}), Array({2, 0, 12}), Array({2, 0, 12}), {.need_weights = true, .trace = kWholeTrace});
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 3; ++i) CHECK_THAT(slice(slice(no_keys.output, b), i), HasBitsOf(weights.out_bias));
  CHECK(no_keys.weights->dims == Shape{2, 3, 3, 0});
  CHECK(no_keys.trace.at(TraceName::k_proj).dims == Shape{2, 0, 12});
  CHECK(forward(layer, Array({2, 0, 12})).output.dims == Shape{2, 0, 12});
  CHECK(forward(layer, Array({0, 3, 12}), {.need_weights = true}).weights->dims == Shape{0, 3, 3, 3});
}

MultiHeadAttention drawn(Generator& random, const MultiHeadAttentionOptions& options, Arrays* state = nullptr) {
  MultiHeadAttention layer(options);
  Arrays numbers;
  for (const auto& [name, dims] : layer.parameter_shapes()) numbers.emplace(name, random.normal(dims, 0.4F));
  layer.load_state_dict(state_of(numbers));
  if (state != nullptr) *state = numbers;
  return layer;
}

Array appended(const Array& x, const Array& row) {
  std::vector<Array> entries;
  for (std::int64_t b = 0; b < x.dims[0]; ++b) entries.push_back(joined({slice(x, b), reshaped(row, {1, x.dims[2]})}));
  return stack(entries);
}

TEST_CASE("learned and zero keys are rows after the projected ones that no mask hides, bit for bit", "[layers][properties]") {
  std::uint64_t seed = 900;
  for (const bool bias_kv : {false, true})
    for (const bool zero : {false, true})
      for (const int variant : {0, 1, 2, 3}) {
        if (!bias_kv && !zero) continue;
        Generator random(++seed);
        const std::int64_t B = 1 + random.below(3), L = 1 + random.below(9), S = variant == 3 ? 0 : 1 + random.below(9), extra = bias_kv + zero;
        INFO("seed " << seed << ", B " << B << ", L " << L << ", S " << S << ", bias rows " << bias_kv << ", zero row " << zero << ", variant "
                     << variant);
        Arrays state;
        const MultiHeadAttentionOptions options{.embed_dim = 6, .num_heads = 3, .add_bias_kv = bias_kv, .add_zero_attn = zero, .out_proj = false};
        const MultiHeadAttention layer = drawn(random, options, &state);
        const Array query = random.normal({B, L, 6}), memory = random.normal({B, S, 6});
        AttentionCase c;
        c.query = query, c.key = c.value = memory;
        if (variant == 1) c.is_causal = true;
        if (variant == 2) {
          c.mask = random_mask(random, MaskKind::additive, {L, S});
          c.key_padding_mask = random_padding(random, MaskKind::block, B, S);
        }
        const Result result = forward(layer, c, {.need_weights = true, .trace = kWholeTrace});
        CHECK(result.weights->dims == Shape{B, 3, L, S + extra});
        CHECK(result.trace.at(TraceName::k_proj).dims == Shape{B, S, 6});

        const auto project = [&](const Array& x, std::int64_t part) {
          std::vector<std::int64_t> rows{part * 6, part * 6 + 1, part * 6 + 2, part * 6 + 3, part * 6 + 4, part * 6 + 5};
          const Array bias = reshaped(take(reshaped(state.at("in_proj_bias"), {18, 1}), rows), {6});
          return linear(x, take(state.at("in_proj_weight"), rows), &bias);
        };
        Array keys = project(memory, 1), values = project(memory, 2);
        if (bias_kv) keys = appended(keys, state.at("bias_k")), values = appended(values, state.at("bias_v"));
        if (zero) keys = appended(keys, Array({6})), values = appended(values, Array({6}));
        const auto heads = [&](const Array& x) {
          Array y({B, 3, x.dims[1], 2});
          for (std::int64_t b = 0, at = 0; b < B; ++b)
            for (std::int64_t h = 0; h < 3; ++h)
              for (std::int64_t i = 0; i < x.dims[1]; ++i)
                for (std::int64_t d = 0; d < 2; ++d, ++at)
                  y.data[static_cast<std::size_t>(at)] = x.data[static_cast<std::size_t>((b * x.dims[1] + i) * 6 + h * 2 + d)];
          return y;
        };
        AttentionCase by_hand;
        by_hand.query = heads(project(query, 0)), by_hand.key = heads(keys), by_hand.value = heads(values);
        by_hand.mask = MaskInput{MaskKind::additive, Array({B, 1, L, S + extra})};
        for (std::int64_t b = 0, at = 0; b < B; ++b)
          for (std::int64_t i = 0; i < L; ++i)
            for (std::int64_t j = 0; j < S + extra; ++j, ++at) {
              float added = c.is_causal && j > i && j < S ? -kInfinity : 0;
              if (c.mask && j < S) added += mask_at(*c.mask, false, b, 0, i, j);
              if (c.key_padding_mask && j < S && mask_at(*c.key_padding_mask, true, b, 0, i, j) != 0) added = -kInfinity;
              by_hand.mask->data.data[static_cast<std::size_t>(at)] = added;
            }
        const Result expected = attention(by_hand, {.need_weights = true});
        CHECK_THAT(*result.weights, HasBitsOf(*expected.weights));
        CHECK_THAT(result.trace.at(TraceName::context), HasBitsOf(expected.output));
        CHECK_THAT(result.trace.at(TraceName::k), HasBitsOf(by_hand.key));
        CHECK_THAT(result.trace.at(TraceName::v), HasBitsOf(by_hand.value));
      }
}

TEST_CASE("fewer key and value heads equal repeated heads, bit for bit", "[layers][properties]") {
  std::uint64_t seed = 950;
  for (const auto& [H, Hkv] : {std::pair{4, 2}, std::pair{4, 1}, std::pair{6, 3}, std::pair{3, 3}})
    for (const bool rows : {false, true}) {
      Generator random(++seed);
      INFO("seed " << seed << ", H " << H << ", Hkv " << Hkv << ", bias rows " << rows);
      MultiHeadAttentionOptions options{
          .embed_dim = 10, .num_heads = H, .num_key_value_heads = Hkv, .kdim = 7, .head_dim = 3, .value_head_dim = 5, .add_bias_kv = rows};
      Arrays state;
      const MultiHeadAttention grouped = drawn(random, options, &state);
      options.num_key_value_heads.reset();
      MultiHeadAttention repeated(options);
      for (const auto& [name, width] : {std::pair{"k_proj.weight", 3}, std::pair{"k_proj.bias", 3}, std::pair{"v_proj.weight", 5},
                                        std::pair{"v_proj.bias", 5}, std::pair{"bias_k", 3}, std::pair{"bias_v", 5}}) {
        if (!state.contains(name)) continue;
        std::vector<std::int64_t> order;
        for (std::int64_t h = 0; h < H; ++h)
          for (std::int64_t d = 0; d < width; ++d) order.push_back(h / (H / Hkv) * width + d);
        Array& array = state.at(name);
        const Shape dims = array.dims;
        const std::int64_t columns = std::string(name).ends_with(".weight") ? dims[1] : 1;
        Array wide = take(reshaped(array, {Hkv * width, columns}), order);
        wide.dims = std::string(name).ends_with(".weight") ? Shape{H * width, columns}
                    : std::string(name).ends_with(".bias") ? Shape{H * width}
                                                           : Shape{1, 1, H * width};
        array = wide;
      }
      repeated.load_state_dict(state_of(state));
      AttentionCase c;
      c.query = random.normal({2, 5, 10}), c.key = random.normal({2, 8, 7}), c.value = random.normal({2, 8, 10});
      c.key_padding_mask = random_padding(random, MaskKind::attend, 2, 8);
      const Result one = forward(grouped, c, {.need_weights = true}), two = forward(repeated, c, {.need_weights = true});
      CHECK_THAT(one.output, HasBitsOf(two.output));
      CHECK_THAT(*one.weights, HasBitsOf(*two.weights));
    }
}

TEST_CASE("a state dictionary is returned with the same names and bits, in torch's form", "[layers][state]") {
  std::uint64_t seed = 200;
  for (const Config& config : kConfigs) {
    Generator random(++seed);
    INFO(describe(config) << ", seed " << seed);
    const ReferenceWeights weights = draw_weights(random, config);
    const Arrays state = torch_state(weights, config);
    MultiHeadAttention layer(options(config));
    layer.load_state_dict(state_of(state));
    CHECK(arrays_of(layer.state_dict()) == state);

    MultiHeadAttention separate(options(config));
    separate.load_state_dict(state_of(separate_state(weights, config)));
    CHECK(arrays_of(separate.state_dict()) == state);

    std::int64_t count = 0;
    const auto shapes = layer.parameter_shapes();
    CHECK(shapes.size() == state.size());
    for (const auto& [name, array] : state) {
      REQUIRE(shapes.contains(name));
      CHECK(shapes.at(name) == array.dims);
      count += static_cast<std::int64_t>(array.data.size());
    }
    CHECK(layer.parameter_count() == count);
  }
}

struct Mismatch {
  Names missing, unexpected, mis_shaped;
  bool operator==(const Mismatch&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Mismatch& m) {
    return out << Catch::Detail::stringify(m.missing) << ' ' << Catch::Detail::stringify(m.unexpected) << ' '
               << Catch::Detail::stringify(m.mis_shaped);
  }
};

Mismatch mismatch_of(MultiHeadAttention& layer, const Arrays& state, bool strict) {
  try {
    layer.load_state_dict(state_of(state), strict);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::mismatch);
    const auto list = [&](const char* name) { return std::get<Names>(error.detail().at(name)); };
    const Mismatch found{list("missing"), list("unexpected"), list("mis_shaped")};
    const std::string message = error.what();
    for (const Names* names : {&found.missing, &found.unexpected, &found.mis_shaped})
      for (const std::string& name : *names) {
        INFO(message);
        CHECK(message.find(name) != std::string::npos);
      }
    return found;
  }
  FAIL_CHECK("nothing was thrown");
  return {};
}

TEST_CASE("a strict load lists every missing, unexpected and mis-shaped name in one error and changes nothing", "[layers][state][errors]") {
  Generator random(8);
  const Arrays good = torch_state(draw_weights(random, kUsual), kUsual);
  MultiHeadAttention layer(options(kUsual));
  layer.load_state_dict(state_of(good));
  const Array x = random.normal({2, 5, 12}), before = forward(layer, x).output;

  Arrays bad = torch_state(draw_weights(random, kUsual), kUsual);
  bad.erase("out_proj.bias");
  bad["in_proj_bias"] = Array({35});
  bad["out_proj.weight"] = Array({12, 13});
  bad["bias_k"] = Array({1, 1, 12});
  bad["zzz"] = Array({1});
  const Mismatch all{
      {"out_proj.bias"}, {"bias_k", "zzz"}, {"in_proj_bias has shape (35), expected (36)", "out_proj.weight has shape (12,13), expected (12,12)"}};
  CHECK(mismatch_of(layer, bad, true) == all);
  CHECK(arrays_of(layer.state_dict()) == good);
  CHECK_THAT(forward(layer, x).output, HasBitsOf(before));

  CHECK(mismatch_of(layer, {}, true) == Mismatch{{"in_proj_bias", "in_proj_weight", "out_proj.bias", "out_proj.weight"}, {}, {}});
  CHECK(mismatch_of(layer, bad, false) == Mismatch{{}, {}, all.mis_shaped});
  CHECK(arrays_of(layer.state_dict()) == good);
}

TEST_CASE("a strict load of separate projections reports the names of that form", "[layers][state][errors]") {
  Generator random(9);
  const ReferenceWeights weights = draw_weights(random, kUsual);
  MultiHeadAttention layer(options(kUsual));
  Arrays bad = separate_state(weights, kUsual);
  bad.erase("k_proj.weight");
  bad.erase("v_proj.bias");
  bad["in_proj_weight"] = Array({36, 12});
  bad["q_proj.weight"] = Array({12, 11});
  CHECK(mismatch_of(layer, bad, true) ==
        Mismatch{{"k_proj.weight", "v_proj.bias"}, {"in_proj_weight"}, {"q_proj.weight has shape (12,11), expected (12,12)"}});
  const Config wide{12, 3, 7, {}};
  MultiHeadAttention other(options(wide));
  CHECK(mismatch_of(other, torch_state(weights, kUsual), true) ==
        Mismatch{{"k_proj_weight", "q_proj_weight", "v_proj_weight"}, {"in_proj_weight"}, {}});
  const Config no_bias{12, 3, {}, {}, false};
  MultiHeadAttention plain(options(no_bias));
  CHECK(mismatch_of(plain, torch_state(weights, kUsual), true) == Mismatch{{}, {"in_proj_bias", "out_proj.bias"}, {}});
  const Config no_out{12, 3, {}, {}, true, false};
  MultiHeadAttention bare(options(no_out));
  CHECK(mismatch_of(bare, torch_state(weights, kUsual), true) == Mismatch{{}, {"out_proj.bias", "out_proj.weight"}, {}});
}

TEST_CASE("a load that is not strict loads the names that fit and keeps the rest", "[layers][state]") {
  Generator random(10);
  const ReferenceWeights old_weights = draw_weights(random, kUsual), new_weights = draw_weights(random, kUsual);
  const Arrays old_state = torch_state(old_weights, kUsual), new_state = torch_state(new_weights, kUsual);
  for (const std::string name : {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", "nothing"}) {
    INFO("seed 10, " << name);
    MultiHeadAttention layer(options(kUsual));
    layer.load_state_dict(state_of(old_state));
    Arrays part, expected = old_state;
    part["something_else"] = Array({3});
    if (new_state.contains(name)) part[name] = expected[name] = new_state.at(name);
    layer.load_state_dict(state_of(part), false);
    CHECK(arrays_of(layer.state_dict()) == expected);
  }
  MultiHeadAttention layer(options(kUsual));
  layer.load_state_dict(state_of(old_state));
  ReferenceWeights mixed = old_weights;
  mixed.key = new_weights.key;
  mixed.value_bias = new_weights.value_bias;
  layer.load_state_dict(state_of({{"k_proj.weight", new_weights.key}, {"v_proj.bias", new_weights.value_bias}}), false);
  CHECK(arrays_of(layer.state_dict()) == torch_state(mixed, kUsual));
}

double largest(const std::vector<float>& values, std::size_t first, std::size_t count) {
  double most = 0;
  for (std::size_t i = first; i < first + count; ++i) most = std::max(most, std::abs(static_cast<double>(values[i])));
  return most;
}

double mean_square(const std::vector<float>& values, std::size_t first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum / static_cast<double>(count);
}

TEST_CASE("a new layer has the distribution of torch's constructor, with seed 0", "[layers][init]") {
  const MultiHeadAttention layer({.embed_dim = 64, .num_heads = 4});
  MultiHeadAttention again({.embed_dim = 64, .num_heads = 4});
  const Arrays state = arrays_of(layer.state_dict());
  CHECK(arrays_of(again.state_dict()) == state);
  again.initialize();
  CHECK(arrays_of(again.state_dict()) == state);
  // Xavier of (3E,E); out_proj is an nn.Linear.
  const double packed = std::sqrt(6.0 / (64 + 192)), linear = 1 / std::sqrt(64.0);
  const std::vector<float>& in = state.at("in_proj_weight").data;
  CHECK((largest(in, 0, in.size()) <= packed && largest(in, 0, in.size()) > 0.999 * packed));
  const std::vector<float>& out = state.at("out_proj.weight").data;
  CHECK((largest(out, 0, out.size()) <= linear && largest(out, 0, out.size()) > 0.995 * linear));
  CHECK(largest(state.at("in_proj_bias").data, 0, 192) == 0);
  CHECK(largest(state.at("out_proj.bias").data, 0, 64) == 0);

  const MultiHeadAttention separate({.embed_dim = 64, .num_heads = 4, .kdim = 32, .vdim = 96});
  const Arrays parts = arrays_of(separate.state_dict());
  for (const auto& [name, width] : {std::pair{"q_proj_weight", 64.0}, std::pair{"k_proj_weight", 32.0}, std::pair{"v_proj_weight", 96.0}}) {
    INFO(name);
    const double bound = std::sqrt(6 / (64 + width));
    const std::vector<float>& values = parts.at(name).data;
    CHECK((largest(values, 0, values.size()) <= bound * (1 + kEps) && largest(values, 0, values.size()) > 0.995 * bound));
  }
}

TEST_CASE("named schemes use the fans of each projection and zero biases", "[layers][init]") {
  struct Case {
    const char* name;
    InitScheme scheme;
    double (*variance)(double in, double out);
  };
  const Case cases[] = {{"xavier_uniform", InitScheme::xavier_uniform, [](double in, double out) { return 2 / (in + out); }},
                        {"xavier_normal", InitScheme::xavier_normal, [](double in, double out) { return 2 / (in + out); }},
                        {"kaiming_uniform", InitScheme::kaiming_uniform, [](double in, double) { return 2 / in; }},
                        {"kaiming_normal", InitScheme::kaiming_normal, [](double in, double) { return 2 / in; }},
                        {"normal", InitScheme::normal, [](double, double) { return 0.02 * 0.02; }}};
  for (const Case& c : cases)
    for (const bool packed : {true, false}) {
      const double kdim = packed ? 64 : 160;
      MultiHeadAttention layer({.embed_dim = 64, .num_heads = 4, .kdim = static_cast<std::int64_t>(kdim)});
      Generator random(1);
      Arrays before = arrays_of(layer.state_dict());
      for (auto& [name, array] : before) array = random.normal(array.dims);
      layer.load_state_dict(state_of(before));
      layer.initialize({.scheme = c.scheme, .seed = 5});
      const Arrays state = arrays_of(layer.state_dict());
      const auto check = [&](const std::string& name, std::size_t first, std::size_t count, double in) {
        INFO(c.name << ", " << name << " from " << first << ", fan_in " << in);
        // Five standard errors of a normal distribution's variance.
        CHECK(std::abs(mean_square(state.at(name).data, first, count) / c.variance(in, 64) - 1) < 5 * std::sqrt(2.0 / static_cast<double>(count)));
      };
      if (packed) {
        for (std::size_t part = 0; part < 3; ++part) check("in_proj_weight", part * 4096, 4096, 64);
      } else {
        check("q_proj_weight", 0, 4096, 64);
        check("k_proj_weight", 0, 64 * 160, 160);
        check("v_proj_weight", 0, 4096, 64);
      }
      check("out_proj.weight", 0, 4096, 64);
      CHECK(largest(state.at("in_proj_bias").data, 0, 192) == 0);
      CHECK(largest(state.at("out_proj.bias").data, 0, 64) == 0);
    }
}

TEST_CASE("initialization is reproducible from its seed, and all parameters differ", "[layers][init]") {
  MultiHeadAttention layer({.embed_dim = 16, .num_heads = 2, .kdim = 8});
  const auto draw = [&](std::uint64_t seed) {
    layer.initialize({.scheme = InitScheme::normal, .seed = seed});
    return arrays_of(layer.state_dict());
  };
  const Arrays one = draw(1), two = draw(2);
  CHECK(draw(1) == one);
  CHECK(one.at("q_proj_weight") != two.at("q_proj_weight"));
  CHECK(one.at("q_proj_weight") != one.at("v_proj_weight"));
  CHECK(one.at("q_proj_weight") != one.at("out_proj.weight"));
}

TEST_CASE("invalid options are CONFIG errors", "[layers][errors]") {
  struct Case {
    MultiHeadAttentionOptions options;
    ExpectedError expected;
  };
  const std::string range = "1 to 2147483647";
  const Case cases[] = {
      {{.embed_dim = 10, .num_heads = 3}, {ErrorCode::config, kOp, "embed_dim", {"is 10", "multiple of num_heads 3"}}},
      {{.embed_dim = 0, .num_heads = 1}, {ErrorCode::config, kOp, "embed_dim", {"is 0", range}}},
      {{.embed_dim = 8, .num_heads = 0}, {ErrorCode::config, kOp, "num_heads", {"is 0", range}}},
      {{.embed_dim = -8, .num_heads = 2}, {ErrorCode::config, kOp, "embed_dim", {"is -8", range}}},
      {{.embed_dim = 8, .num_heads = -2}, {ErrorCode::config, kOp, "num_heads", {"is -2", range}}},
      {{.embed_dim = std::int64_t{1} << 31, .num_heads = 1}, {ErrorCode::config, kOp, "embed_dim", {"is 2147483648", range}}},
      {{.embed_dim = 8, .num_heads = 2, .kdim = 0}, {ErrorCode::config, kOp, "kdim", {"is 0", range}}},
      {{.embed_dim = 8, .num_heads = 2, .vdim = -1}, {ErrorCode::config, kOp, "vdim", {"is -1", range}}},
      {{.embed_dim = 8, .num_heads = 4, .num_key_value_heads = 3},
       {ErrorCode::config, kOp, "num_heads", {"is 4", "multiple of num_key_value_heads 3"}}},
      {{.embed_dim = 8, .num_heads = 4, .num_key_value_heads = 0}, {ErrorCode::config, kOp, "num_key_value_heads", {"is 0", range}}},
      {{.embed_dim = 8, .num_heads = 4, .num_key_value_heads = 8}, {ErrorCode::config, kOp, "num_heads", {"is 4", "num_key_value_heads 8"}}},
      {{.embed_dim = 8, .num_heads = 2, .head_dim = 0}, {ErrorCode::config, kOp, "head_dim", {"is 0", range}}},
      {{.embed_dim = 8, .num_heads = 2, .value_head_dim = -1}, {ErrorCode::config, kOp, "value_head_dim", {"is -1", range}}},
      {{.embed_dim = 8, .num_heads = 0x7fffffff, .head_dim = 2}, {ErrorCode::config, kOp, "num_heads times head_dim", {"4294967294", range}}},
      {{.embed_dim = 8, .num_heads = 2, .scale = kNaN}, {ErrorCode::config, kOp, "scale", {"NaN", "finite"}}},
      {{.embed_dim = 8, .num_heads = 2, .scale = kInfinity}, {ErrorCode::config, kOp, "scale", {"infinite", "finite number"}}},
      {{.embed_dim = 0x7fffffff, .num_heads = 1}, {ErrorCode::memory, kOp, "", {}}},
  };
  for (const Case& c : cases) {
    INFO(c.options.embed_dim << ' ' << c.options.num_heads);
    check_error(c.expected, [&] { MultiHeadAttention layer(c.options); });
  }
}

TEST_CASE("every misuse of forward is a typed error with the expected value, and the next call works", "[layers][errors]") {
  Generator random(11);
  const Config config{12, 3, 7, 9};
  const MultiHeadAttention layer = layer_of(config, draw_weights(random, config));
  const AttentionCase base = draw_inputs(random, config, 2, 4, 5);
  const Array good = forward(layer, base).output;
  struct Case {
    const char* what;
    ExpectedError expected;
    std::function<void(AttentionCase&)> spoil;
  };
  const Case cases[] = {
      {"query width", {ErrorCode::shape, kOp, "query", {"(2,4,13)", "(B,L,12)"}}, [](auto& c) { c.query = Array({2, 4, 13}); }},
      {"key width", {ErrorCode::shape, kOp, "key", {"(2,5,12)", "(B,S,7)"}}, [](auto& c) { c.key = Array({2, 5, 12}); }},
      {"value width", {ErrorCode::shape, kOp, "value", {"(2,5,12)", "(B,S,9)"}}, [](auto& c) { c.value = Array({2, 5, 12}); }},
      {"key of rank 2", {ErrorCode::shape, kOp, "key", {"(5,7)", "(B,S,7)"}}, [](auto& c) { c.key = Array({5, 7}); }},
      {"unbatched query with batched key", {ErrorCode::shape, kOp, "key", {"(2,5,7)", "(S,7)"}}, [](auto& c) { c.query = Array({4, 12}); }},
      {"key of rank 4",
       {ErrorCode::shape, kOp, "key", {"(2,3,5,7)", "Reshape (B,H,L,D) to (B,L,H*D)"}},
       [](auto& c) { c.key = Array({2, 3, 5, 7}); }},
      {"value of rank 4", {ErrorCode::shape, kOp, "value", {"(2,3,5,3)", "Reshape"}}, [](auto& c) { c.value = Array({2, 3, 5, 3}); }},
      {"key batch", {ErrorCode::shape, kOp, "key", {"(3,5,7)", "a batch of 2"}}, [](auto& c) { c.key = Array({3, 5, 7}); }},
      {"value batch", {ErrorCode::shape, kOp, "value", {"(1,5,9)", "a batch of 2"}}, [](auto& c) { c.value = Array({1, 5, 9}); }},
      {"fewer values than keys", {ErrorCode::shape, kOp, "value", {"(2,4,9)", "5 rows"}}, [](auto& c) { c.value = Array({2, 4, 9}); }},
      {"mask of the wrong length",
       {ErrorCode::mask, kOp, "mask", {"has shape (4,6)", "(4,5)"}},
       [](auto& c) { c.mask = MaskInput{MaskKind::attend, Array({4, 6})}; }},
      {"torch's (B·H,L,S)",
       {ErrorCode::mask, kOp, "mask", {"has shape (6,4,5)", "to (B,H,L,S)"}},
       [](auto& c) { c.mask = MaskInput{MaskKind::block, Array({6, 4, 5})}; }},
      {"mask of another number of heads",
       {ErrorCode::mask, kOp, "mask", {"has shape (2,4,4,5)"}},
       [](auto& c) { c.mask = MaskInput{MaskKind::attend, Array({2, 4, 4, 5})}; }},
      {"NaN in a mask", {ErrorCode::mask, kOp, "mask", {"NaN"}}, [](auto& c) { c.mask = MaskInput{MaskKind::additive, Array({4, 5}, kNaN)}; }},
      {"key padding mask of the wrong length",
       {ErrorCode::mask, kOp, "key_padding_mask", {"has shape (2,4)", "(2,5)"}},
       [](auto& c) { c.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 4})}; }},
      {"+infinity in a key padding mask",
       {ErrorCode::mask, kOp, "key_padding_mask", {"+Infinity"}},
       [](auto& c) { c.key_padding_mask = MaskInput{MaskKind::additive, Array({2, 5}, kInfinity)}; }},
      {"scale", {ErrorCode::config, kOp, "scale", {"NaN"}}, [](auto& c) { c.scale = kNaN; }},
  };
  for (const Case& error : cases) {
    AttentionCase c = base;
    error.spoil(c);
    INFO(error.what);
    check_error(error.expected, [&] { forward(layer, c); });
    CHECK_THAT(forward(layer, base).output, HasBitsOf(good));
  }
}

TEST_CASE("key and value are required if their widths differ from the query's", "[layers][errors]") {
  const MultiHeadAttention layer({.embed_dim = 12, .num_heads = 3, .kdim = 7});
  check_error({ErrorCode::shape, kOp, "key", {"(2,4,12)", "(B,S,7)"}}, [&] { forward(layer, Array({2, 4, 12})); });
}

TEST_CASE("an invalid standard deviation is a CONFIG error and leaves the weights unchanged", "[layers][init][errors]") {
  MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const Arrays before = arrays_of(layer.state_dict());
  for (const double std : {-1e-9, -1.0, 1.1e37, static_cast<double>(kNaN), static_cast<double>(kInfinity)})
    check_error({ErrorCode::config, "initialize", "std", {"0 to 1e37"}}, [&] { layer.initialize({.scheme = InitScheme::normal, .std = std}); });
  CHECK(arrays_of(layer.state_dict()) == before);
}

}  // namespace layers_multi_head_attention_test
}  // namespace attn::test
