#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "attn/models/text_model.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace models_interventions_test {

constexpr std::int64_t kH = 4;

Encoding texts_of(const std::string& name) {
  const GoldenFile file = read_golden(testdata("models/" + name + ".safetensors"));
  const nlohmann::json entry = cases_of(file).at(0);
  const GoldenCase golden(file, entry);
  const Array ids = golden.tensor("input_ids"), mask = golden.tensor("attention_mask");
  Encoding encoding;
  encoding.input_ids = xt::cast<std::int32_t>(tensor_of<2>(ids));
  encoding.attention_mask = xt::cast<std::uint8_t>(tensor_of<2>(mask));
  return encoding;
}

struct Everything {
  std::vector<Array> results;

  explicit Everything(const TextModelOutput& output) {
    results.push_back(floats_of(output.last_hidden_state));
    if (output.logits) results.push_back(floats_of(*output.logits));
    for (const auto& state : output.hidden_states.value()) results.push_back(floats_of(state));
    for (const auto& weights : output.attentions.value()) results.push_back(floats_of(weights));
  }
  void check_bits(const Everything& expected) const {
    REQUIRE(results.size() == expected.results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(i);
      CHECK_THAT(results[i], HasBitsOf(expected.results[i]));
    }
  }
};

struct Subject {
  std::string name;
  TextModel model;
  Encoding encoding;
  TextModelOutput plain;
  std::int64_t layers, B, L, E;
  bool is_causal;

  explicit Subject(const std::string& checkpoint)
      : name(checkpoint),
        model(TextModel::load(testdata("models/" + checkpoint))),
        encoding(texts_of(checkpoint)),
        plain(forward({.trace = EncoderTraceOptions{}})),
        layers(std::ssize(*plain.attentions)),
        B(std::ssize(encoding.input_ids) / static_cast<std::int64_t>(encoding.input_ids.shape(1))),
        L(static_cast<std::int64_t>(encoding.input_ids.shape(1))),
        E(static_cast<std::int64_t>(plain.last_hidden_state.shape(2))),
        is_causal(model.task() == Task::text_generation) {}

  TextModelOutput forward(TextForwardOptions options) const {
    options.output_attentions = options.output_hidden_states = true;
    return model.forward(encoding, options);
  }
  Array traced(std::int64_t layer, TraceName what) const { return floats_of(plain.trace->at(layer).at(what)); }
  Array hidden_state(std::int64_t layer) const { return floats_of(plain.hidden_states->at(static_cast<std::size_t>(layer))); }
};

Array scaled(Array merged, const std::vector<float>& factors) {
  const std::size_t width = static_cast<std::size_t>(merged.dims[2]) / factors.size();
  for (std::size_t i = 0; i < merged.data.size(); ++i) merged.data[i] *= factors[i / width % factors.size()];
  return merged;
}

TEST_CASE("patching a layer with its own input or its own head results changes no bit", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const Everything expected(s.plain);
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    CAPTURE(layer);
    const Tensor<3> state = tensor_of<3>(s.hidden_state(layer)), merged = tensor_of<3>(s.traced(layer, TraceName::merged));
    Everything(s.forward({.patches = {LayerPatch{layer, state, {}}}})).check_bits(expected);
    Everything(s.forward({.patches = {LayerPatch{layer, {}, merged}}})).check_bits(expected);
    Everything(s.forward({.patches = {LayerPatch{layer, state, merged}}})).check_bits(expected);
    Everything(s.forward({.patches = {LayerPatch{layer, {}, {}}}})).check_bits(expected);
  }
}

TEST_CASE("patching a layer with its own queries, keys and values changes no bit, and foreign ones give their trace", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const Everything expected(s.plain);
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    CAPTURE(layer);
    LayerPatch own{.layer = layer}, other{.layer = layer};
    std::uint64_t seed = 1;
    for (const auto& [name, place] :
         {std::pair{TraceName::q_proj, &LayerPatch::q_proj}, {TraceName::k_proj, &LayerPatch::k_proj}, {TraceName::v_proj, &LayerPatch::v_proj}}) {
      own.*place = tensor_of<3>(s.traced(layer, name));
      other.*place = tensor_of<3>(Generator(seed++).normal(s.traced(layer, name).dims));
    }
    other.weights = tensor_of<4>(Generator(seed).normal(s.traced(layer, TraceName::weights).dims));
    Everything(s.forward({.patches = {own}})).check_bits(expected);
    const TextModelOutput output = s.forward({.patches = {other}, .trace = EncoderTraceOptions{}});
    const AttentionTrace& trace = output.trace->at(layer);
    for (const auto& [name, given] : {std::pair{TraceName::q_proj, &other.q_proj},
                                      {TraceName::k_proj, &other.k_proj},
                                      {TraceName::v_proj, &other.v_proj},
                                      {TraceName::weights, &other.weights}}) {
      const Array got = floats_of(trace.at(name));
      CHECK(std::equal(got.data.begin(), got.data.end(), (*given)->data));
    }
    CHECK(floats_of(output.last_hidden_state).data != s.hidden_state(s.layers).data);
  }
}

TEST_CASE("a patch affects later layers and no earlier ones", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const Array other = Generator(7).normal({s.B, s.L, s.E}), heads = Generator(7).normal(s.traced(0, TraceName::merged).dims);
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    CAPTURE(layer);
    const TextModelOutput state = s.forward({.patches = {LayerPatch{layer, tensor_of<3>(other), {}}}});
    const TextModelOutput merged = s.forward({.patches = {LayerPatch{layer, {}, tensor_of<3>(heads)}}, .trace = EncoderTraceOptions{}});
    for (std::int64_t i = 0; i <= s.layers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Array of_state = floats_of(state.hidden_states->at(at)), of_merged = floats_of(merged.hidden_states->at(at));
      if (i < layer) CHECK_THAT(of_state, HasBitsOf(s.hidden_state(i)));
      if (i == layer) CHECK_THAT(of_state, HasBitsOf(other));
      if (i > layer) CHECK(of_state.data != s.hidden_state(i).data);
      if (i <= layer) CHECK_THAT(of_merged, HasBitsOf(s.hidden_state(i)));
      if (i > layer) CHECK(of_merged.data != s.hidden_state(i).data);
    }
    const AttentionTrace& trace = merged.trace->at(layer);
    CHECK_THAT(floats_of(trace.at(TraceName::merged)), HasBitsOf(heads));
    CHECK_THAT(floats_of(trace.at(TraceName::context)), HasBitsOf(s.traced(layer, TraceName::context)));
    CHECK_THAT(floats_of(trace.at(TraceName::weights)), HasBitsOf(s.traced(layer, TraceName::weights)));
  }
}

TEST_CASE("several patches in one forward are those of forwards with one patch each", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const LayerPatch first{0, tensor_of<3>(Generator(7).normal({s.B, s.L, s.E})), {}};
  const LayerPatch heads{1, {}, tensor_of<3>(Generator(8).normal(s.traced(1, TraceName::merged).dims))};
  const TextModelOutput begun = s.forward({.patches = {first}});
  const TextModelOutput expected = s.forward({.patches = {LayerPatch{1, begun.hidden_states->at(1), heads.merged}}});
  for (const std::vector<LayerPatch>& patches : {std::vector{first, heads}, std::vector{heads, first}}) {
    const TextModelOutput both = s.forward({.patches = patches});
    CHECK_THAT(floats_of(both.last_hidden_state), HasBitsOf(floats_of(expected.last_hidden_state)));
    CHECK_THAT(floats_of(both.hidden_states->at(0)), HasBitsOf(floats_of(begun.hidden_states->at(0))));
    CHECK_THAT(floats_of(both.attentions->at(1)), HasBitsOf(floats_of(expected.attentions->at(1))));
  }
  const LayerPatch whole{1, begun.hidden_states->at(1), heads.merged};
  const std::vector<LayerPatch> parts{heads, LayerPatch{1, whole.hidden_state, {}}};
  Everything(s.forward({.patches = parts})).check_bits(Everything(s.forward({.patches = {whole}})));
}

TEST_CASE("NaN may be patched in, and affects only its own text", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const std::size_t text = static_cast<std::size_t>(s.L * s.E);
  for (const bool whole : {true, false}) {
    Array patch = whole ? s.hidden_state(1) : s.traced(1, TraceName::merged);
    std::fill_n(patch.data.begin(), patch.data.size() / static_cast<std::size_t>(s.B), kNaN);
    const TextModelOutput output = s.forward({.patches = {whole ? LayerPatch{1, tensor_of<3>(patch), {}} : LayerPatch{1, {}, tensor_of<3>(patch)}}});
    const Array got = floats_of(output.last_hidden_state), plain = s.hidden_state(s.layers);
    CHECK(std::all_of(got.data.begin(), got.data.begin() + static_cast<std::ptrdiff_t>(text), [](float x) { return std::isnan(x); }));
    for (std::int64_t b = 1; b < s.B; ++b) CHECK_THAT(slice(got, b), HasBitsOf(slice(plain, b)));
  }
}

TEST_CASE("a head mask multiplies the results of heads before W_O", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const auto masked = [&](const std::vector<Array>& rows) { return TextForwardOptions{.head_mask = tensor_of<2>(stack(rows))}; };
  const std::vector<Array> ones(static_cast<std::size_t>(s.layers), Array({kH}, 1));
  Everything(s.forward(masked(ones))).check_bits(Everything(s.plain));

  for (const std::vector<float>& factors : {std::vector<float>{1, 0, 1, 1}, {0.5F, -2, 0, 1.7F}})
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
      CAPTURE(factors, layer);
      std::vector<Array> rows = ones;
      rows[static_cast<std::size_t>(layer)].data = factors;
      TextForwardOptions options = masked(rows);
      options.trace = EncoderTraceOptions{};
      const TextModelOutput output = s.forward(options);
      const Array merged = scaled(s.traced(layer, TraceName::merged), factors);
      const Everything got(output);
      got.check_bits(Everything(s.forward({.patches = {LayerPatch{layer, {}, tensor_of<3>(merged)}}})));
      CHECK(got.results[0].data != floats_of(s.plain.last_hidden_state).data);
      CHECK_THAT(floats_of(output.trace->at(layer).at(TraceName::merged)), HasBitsOf(merged));
      CHECK_THAT(floats_of(output.trace->at(layer).at(TraceName::context)), HasBitsOf(s.traced(layer, TraceName::context)));

      const Array other = Generator(8).normal(merged.dims);
      options.patches = {LayerPatch{layer, {}, tensor_of<3>(other)}};
      Everything(s.forward(options)).check_bits(Everything(s.forward({.patches = {LayerPatch{layer, {}, tensor_of<3>(scaled(other, factors))}}})));
    }
}

TEST_CASE("is_causal equals a causal mask of any kind, and no result depends on later tokens", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  Array lower({s.L, s.L}), upper({s.L, s.L}, 1), added({s.L, s.L}, -kInfinity);
  for (std::int64_t i = 0; i < s.L; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const auto at = static_cast<std::size_t>(i * s.L + j);
      lower.data[at] = 1, upper.data[at] = 0, added.data[at] = 0;
    }
  const Everything causal(s.forward({.is_causal = true}));
  CHECK((causal.results[0].data == s.hidden_state(s.layers).data) == s.is_causal);
  for (const auto& [kind, values] : {std::pair{MaskKind::attend, lower}, {MaskKind::block, upper}, {MaskKind::additive, added}})
    Everything(s.forward({.mask = MaskView(kind, values.data.data(), values.dims)})).check_bits(causal);

  Array first({s.B, s.L, s.L}, 1);
  std::copy(lower.data.begin(), lower.data.end(), first.data.begin());
  const Array some = floats_of(s.forward({.mask = MaskView(MaskKind::attend, first.data.data(), first.dims)}).last_hidden_state);
  for (std::int64_t b = 0; b < s.B; ++b) CHECK_THAT(slice(some, b), HasBitsOf(slice(b == 0 ? causal.results[0] : s.hidden_state(s.layers), b)));

  Encoding changed = s.encoding;
  const std::int64_t last = std::count(changed.attention_mask.begin(), changed.attention_mask.begin() + s.L, 1) - 1;
  REQUIRE(last > 3);
  changed.input_ids(0, last) = 7;
  const Array got = floats_of(s.model.forward(changed, {.is_causal = true}).last_hidden_state);
  const auto before = [&](const Array& x) { return Array({last, s.E}, std::vector<float>(x.data.begin(), x.data.begin() + last * s.E)); };
  CHECK_THAT(before(got), HasBitsOf(before(causal.results[0])));
  CHECK(slice(got, 0).data != slice(causal.results[0], 0).data);
}

TEST_CASE("a mask may differ by head, and a query whose keys are all masked attends uniformly", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  Array mask({1, kH, s.L, s.L}, 1);
  std::fill_n(mask.data.begin() + 2 * s.L * s.L + s.L, s.L, 0.0F);
  const TextModelOutput output = s.forward({.mask = MaskView(MaskKind::attend, mask.data.data(), mask.dims)});
  const Array weights = floats_of(output.attentions->at(0)), plain = floats_of(s.plain.attentions->at(0));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < weights.data.size(); ++i) {
    const std::size_t L = static_cast<std::size_t>(s.L), query = i / L % L, head = i / L / L % kH;
    wrong += weights.data[i] != (head == 2 && query == 1 ? 1 / static_cast<float>(L) : plain.data[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a forward traces the requested layers as trace_layer does", "[models]") {
  const Subject s(GENERATE(from_range(checkpoints())));
  CAPTURE(s.name);
  const TextModelOutput output = s.model.forward(s.encoding, {.trace = EncoderTraceOptions{{{1}}, {TraceName::scores, TraceName::ff_hidden}}});
  CHECK_FALSE(output.attentions.has_value());
  CHECK_FALSE(s.model.forward(s.encoding).trace.has_value());
  REQUIRE(output.trace->size() == 1);
  CHECK(output.trace->at(1).size() == 2);
  REQUIRE(std::ssize(*s.plain.trace) == s.layers);
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const AttentionTrace expected = s.model.trace_layer(s.encoding, layer);
    CHECK(expected.size() == s.plain.trace->at(layer).size());
    for (const auto& [what, values] : expected) CHECK_THAT(s.traced(layer, what), HasBitsOf(floats_of(values)));
    if (layer == 1)
      for (const auto& [what, values] : output.trace->at(1)) CHECK_THAT(floats_of(values), HasBitsOf(floats_of(expected.at(what))));
  }
}

TEST_CASE("interventions that do not fit the model are refused with their name", "[models]") {
  const Subject s("tiny-bert");
  const auto check = [&](ErrorCode code, const char* argument, std::vector<std::string> words, const TextForwardOptions& options) {
    check_error({code, "forward", argument, std::move(words)}, [&] { s.model.forward(s.encoding, options); });
  };
  const auto zeros = [](const Shape& shape) { return tensor_of<3>(Array(shape)); };
  for (const Shape& shape : {Shape{1, 4}, {2, 3}, {4, 2}, {0, 4}})
    check(ErrorCode::shape, "head_mask", {"(2,4)", to_string(shape)}, {.head_mask = tensor_of<2>(Array(shape))});
  const Shape full{s.B, s.L, s.E};
  for (const Shape& shape : {Shape{s.B, s.L, s.E - 1}, {1, s.L, s.E}, {s.L, s.B, s.E}, {0, 0, 0}}) {
    check(ErrorCode::shape, "patch.hidden_state", {to_string(full), to_string(shape)}, {.patches = {LayerPatch{0, zeros(shape), {}}}});
    check(ErrorCode::shape, "patch.merged", {to_string(full), to_string(shape)}, {.patches = {LayerPatch{1, {}, zeros(shape)}}});
  }
  for (const std::int64_t layer : {-1, 2}) {
    check(ErrorCode::out_of_range, "patch.layer", {"from 0 to 1", std::to_string(layer)}, {.patches = {LayerPatch{layer, zeros(full), {}}}});
    check(ErrorCode::out_of_range, "patch.layer", {"from 0 to 1"}, {.patches = {LayerPatch{layer, {}, {}}}});
    check(ErrorCode::out_of_range, "patch[1].layer", {"from 0 to 1"}, {.patches = {LayerPatch{0, {}, {}}, LayerPatch{layer, {}, {}}}});
    check(ErrorCode::out_of_range, "trace.layers", {"from 0 to 1"}, {.trace = EncoderTraceOptions{{{layer}}}});
  }
  const LayerPatch state{0, zeros(full), {}}, merged{1, {}, zeros(full)};
  check(ErrorCode::argument, "patch[1].hidden_state", {"a second one of layer 0"}, {.patches = {state, state}});
  check(ErrorCode::argument, "patch[2].merged", {"a second one of layer 1"}, {.patches = {merged, state, merged}});
  const Array short_one({s.L, s.L - 1}, 1), with_nan({s.L}, kNaN);
  check(ErrorCode::mask, "mask", {to_string(short_one.dims)}, {.mask = MaskView(MaskKind::attend, short_one.data.data(), short_one.dims)});
  check(ErrorCode::mask, "mask", {"NaN"}, {.mask = MaskView(MaskKind::additive, with_nan.data.data(), with_nan.dims)});
  Everything(s.forward({})).check_bits(Everything(s.plain));
}

}  // namespace models_interventions_test
}  // namespace attn::test
