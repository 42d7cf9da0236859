#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "parallel/runs.hpp"
#include "support/call_backward.hpp"
#include "support/encoder_case.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace layers_encoder_backward_test {

void check_same(const Gradients& got, const Gradients& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, array] : expected) {
    INFO(name);
    CHECK_THAT(got.at(name), HasBitsOf(array));
  }
}

Array zeros_behind(Array x, std::int64_t b, std::int64_t from, float value = 0) {
  const std::int64_t L = x.dims[1], E = x.dims[2];
  std::fill(x.data.begin() + (b * L + from) * E, x.data.begin() + (b + 1) * L * E, value);
  return x;
}

template <class Layer, class Options>
Gradients golden_gradients(const Options& options, const GoldenCase& forward_case, const GoldenCase& own) {
  Layer layer(options);
  layer.load_state_dict(state_of(forward_case.state()));
  EncoderForwardOptions call = forward_case.encoder_call();
  EncoderBackwardOptions asked{.trace = call.trace};
  call.for_backward = true;
  forward(layer, forward_case.tensor("x"), call);
  return backward(layer, own.tensor("grad"), asked);
}

TEST_CASE("gradients of encoders, their parameters and intermediates agree with torch.autograd", "[goldens][backward][layers]") {
  const GoldenFile file = read_golden(testdata("encoder_backward.safetensors")), forwards = read_golden(testdata("transformer.safetensors"));
  const auto cases_of = [](const GoldenFile& from) { return nlohmann::json::parse(from.metadata.at("cases").get<std::string>()); };
  const nlohmann::json own_cases = cases_of(file), forward_cases = cases_of(forwards);
  std::size_t count = 0, traces = 0;
  for (const nlohmann::json& entry : own_cases) {
    const GoldenCase own(file, entry);
    INFO("case " << own.name());
    const bool has_forward = entry.contains("of");
    const auto found = std::find_if(forward_cases.begin(), forward_cases.end(), [&](const auto& one) { return one.at("name") == own.name(); });
    REQUIRE(has_forward == (found != forward_cases.end()));
    const GoldenCase golden = has_forward ? GoldenCase(forwards, *found) : own;
    const TransformerClassifierOptions options = golden.encoder();
    if (has_forward) REQUIRE(own.op() == golden.op() + "_backward");
    const Gradients gradients = own.op() == "transformer_encoder_layer_backward"
                                    ? golden_gradients<TransformerEncoderLayer>(options.encoder.layer, golden, own)
                                : own.op() == "transformer_encoder_backward" ? golden_gradients<TransformerEncoder>(options.encoder, golden, own)
                                                                             : golden_gradients<TransformerClassifier>(options, golden, own);
    for (const auto& [what, error] : entry.at("expected").items()) {
      INFO("gradient " << what);
      REQUIRE(gradients.contains(what));
      CHECK(own.difference(what, gradients.at(what)) == "");
      traces += what.starts_with("trace.") ? 1 : 0;
    }
    CHECK(gradients.size() == entry.at("expected").size());
    ++count;
  }
  CHECK(count >= 198);
  CHECK(traces >= 300);
}

TransformerClassifierOptions everything(bool norm_first) {
  return {.encoder = {.layer = {.d_model = 16,
                                .nhead = 4,
                                .dim_feedforward = 10,
                                .dropout = 0.2F,
                                .activation = Activation::gelu,
                                .norm_first = norm_first,
                                .norm = norm_first ? NormKind::rms_norm : NormKind::layer_norm,
                                .gated = true,
                                .num_key_value_heads = 2,
                                .rotary = RotaryOptions{.offset = 1, .interleaved = norm_first},
                                .window = Window{.left = 3, .right = 2},
                                .softcap = 2.0F},
                      .num_layers = 2,
                      .final_norm = true},
          .num_classes = 3,
          .pooling = norm_first ? Pooling::mean : Pooling::none};
}

TEST_CASE("with dropout, rotary, window and softcap, a classifier's gradient is the slope in any direction", "[backward][layers]") {
  for (const bool norm_first : {false, true}) {
    Generator random(norm_first ? 21 : 22);
    auto layer = drawn_layer<TransformerClassifier>(random, everything(norm_first));
    const Arrays state = arrays_of(layer.state_dict());
    const Array x = random.normal({2, 6, 16}), attend({2, 6}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
    const Array grad = norm_first ? random.normal({2, 3}) : random.normal({2, 6, 3});
    EncoderCase call;
    call.key_padding_mask = MaskInput{MaskKind::attend, attend};
    call.is_causal = !norm_first;
    const auto loss = [&](const Array& input, const Arrays& weights) {
      layer.load_state_dict(state_of(weights));
      layer.train({.seed = 7});
      const Array logits = forward(layer, input, call_of(call)).logits;
      double sum = 0;
      for (std::size_t i = 0; i < grad.data.size(); ++i) sum += static_cast<double>(logits.data[i]) * static_cast<double>(grad.data[i]);
      return sum;
    };
    loss(x, state);
    const Gradients gradients = backward(layer, grad);
    CHECK(gradients.size() == state.size() + 1);
    for (const auto& [name, gradient] : gradients) {
      INFO(name << ", norm first " << norm_first);
      constexpr float kStep = 1e-3F;
      const Array direction = random.normal(gradient.dims);
      double slope = 0, size = 0;
      for (std::size_t i = 0; i < gradient.data.size(); ++i) {
        const double part = static_cast<double>(direction.data[i]) * static_cast<double>(gradient.data[i]);
        slope += part;
        size += std::abs(part);
      }
      double values[2];
      for (int side = 0; side < 2; ++side) {
        Array moved = name == "grad_x" ? x : state.at(name.substr(6));
        for (std::size_t i = 0; i < moved.data.size(); ++i) moved.data[i] += (side == 0 ? kStep : -kStep) * direction.data[i];
        Arrays weights = state;
        if (name != "grad_x") weights.at(name.substr(6)) = moved;
        values[side] = loss(name == "grad_x" ? moved : x, weights);
      }
      // Rounding of the loss divided by the step, and the third derivative.
      CHECK(std::abs((values[0] - values[1]) / (2.0 * static_cast<double>(kStep)) - slope) < 1e-2 * (size + 1));
    }
  }
}

TEST_CASE("gradients of traces refer to values before dropout, as the forward does, and sum to those of biases", "[backward][layers]") {
  for (const bool norm_first : {false, true}) {
    Generator random(31);
    TransformerEncoderLayer layer({.d_model = 12, .nhead = 3, .dim_feedforward = 20, .dropout = 0.3F, .norm_first = norm_first});
    const Array x = random.normal({2, 9, 12}), grad = random.normal({2, 9, 12});
    layer.train({.seed = 3});
    forward(layer, x);
    const Gradients gradients = backward(layer, grad, {.trace = EncoderTraceOptions{.names = kWholeTrace}});
    CHECK(gradients.size() == 1 + kLayerTraceCount + layer.parameter_shapes().size());
    const auto sums = [&](const std::string& of, const std::string& bias) {
      INFO(of << ", norm first " << norm_first);
      const Array &rows = gradients.at("trace.0." + of), &sum = gradients.at("state." + bias);
      const std::size_t width = sum.data.size();
      for (std::size_t i = 0; i < width; ++i) {
        double expected = 0, size = 0;
        for (std::size_t at = i; at < rows.data.size(); at += width)
          expected += static_cast<double>(rows.data[at]), size += std::abs(static_cast<double>(rows.data[at]));
        CHECK(std::abs(static_cast<double>(sum.data[i]) - expected) <= 8 * kEps * size);
      }
    };
    sums("output", "self_attn.out_proj.bias");
    sums("ff_output", "linear2.bias");
    sums("norm1", "norm1.bias");
    sums("norm2", "norm2.bias");
    const Array& scores = gradients.at("trace.0.scores");
    for (std::size_t row = 0; row < scores.data.size(); row += 9) {
      double sum = 0, size = 0;
      for (std::size_t j = row; j < row + 9; ++j) sum += static_cast<double>(scores.data[j]), size += std::abs(static_cast<double>(scores.data[j]));
      CHECK(std::abs(sum) <= 16 * kEps * size + 1e-9);
    }
    for (const char* name : {"output", "ff_hidden", "ff_output"}) {
      const Array& dropped = gradients.at(std::string("trace.0.") + name);
      const auto zeros = std::count(dropped.data.begin(), dropped.data.end(), 0.0F);
      INFO(name);
      CHECK(zeros > static_cast<std::ptrdiff_t>(dropped.data.size() / 6));
    }
  }
}

TEST_CASE("gradients of an encoder are linear in the gradient of its output", "[backward][layers][properties]") {
  for (std::uint64_t seed = 500; seed < 540; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    if (c.fully_masked == FullyMasked::nan) c.fully_masked = FullyMasked::zero;
    c.options.layer_norm_eps = 0.5F;  // norms of almost equal numbers would have large gradients
    INFO(describe(c));
    Generator random(seed);
    auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
    const Array one = random.normal(c.x.dims), other = random.normal(c.x.dims);
    Array both = one;
    for (std::size_t i = 0; i < both.data.size(); ++i) both.data[i] = one.data[i] + 2 * other.data[i];
    EncoderForwardOptions call = call_of(c);
    call.for_backward = true;
    const auto run = [&](const Array& grad) {
      layer.zero_grad();
      forward(layer, c.x, call);
      return backward(layer, grad, {.trace = EncoderTraceOptions{}});
    };
    const Gradients of_one = run(one), of_other = run(other), of_both = run(both);
    Array twice = one;
    for (float& value : twice.data) value *= 2;
    for (const auto& [name, array] : run(twice)) {
      Array expected = of_one.at(name);
      for (float& value : expected.data) value *= 2;
      INFO(name << " of twice the gradient");
      CHECK_THAT(array, HasBitsOf(expected));
    }
    for (const auto& [name, array] : of_both) {
      INFO(name);
      double most = 1;
      for (std::size_t i = 0; i < array.data.size(); ++i)
        most = std::max({most, std::abs(static_cast<double>(of_one.at(name).data[i])), 2 * std::abs(static_cast<double>(of_other.at(name).data[i]))});
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < array.data.size(); ++i) {
        const double sum = static_cast<double>(of_one.at(name).data[i]) + 2 * static_cast<double>(of_other.at(name).data[i]);
        if (!(std::abs(static_cast<double>(array.data[i]) - sum) <= 1e-5 * most)) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("gradients of a classifier have the same bits on any number of threads", "[backward][layers][threads]") {
  for (const bool norm_first : {false, true}) {
    Generator random(1);
    TransformerClassifierOptions options = everything(norm_first);
    options.encoder.layer.d_model = 48;
    options.encoder.layer.dim_feedforward = 160;
    options.encoder.layer.dropout = 0.1F;
    TransformerClassifier layer(options);
    const Array x = random.normal({3, 150, 48}), grad = norm_first ? random.normal({3, 3}) : random.normal({3, 150, 3});
    const auto run = [&] {
      layer.zero_grad();
      layer.train({.seed = 3});
      forward(layer, x);
      return backward(layer, grad, {.trace = EncoderTraceOptions{}});
    };
    const Gradients alone = run();
    for (const unsigned threads : {2U, 3U}) {
      INFO(threads << " threads, norm first " << norm_first);
      const Threads more(threads);
      check_same(run(), alone);
    }
  }
}

TEST_CASE("gradients of x in a batch are those of each sequence alone", "[backward][layers]") {
  for (const bool norm_first : {false, true}) {
    Generator random(2);
    TransformerEncoder layer({.layer = {.d_model = 12, .nhead = 3, .dim_feedforward = 20, .activation = Activation::gelu, .norm_first = norm_first},
                              .num_layers = 2,
                              .final_norm = true});
    const Array x = random.normal({3, 70, 12}), grad = random.normal({3, 70, 12});
    forward(layer, x, {.is_causal = true, .for_backward = true});
    const Array together = backward(layer, grad).at("grad_x");
    for (std::int64_t b = 0; b < 3; ++b) {
      forward(layer, take(x, {b}), {.is_causal = true, .for_backward = true});
      CHECK_THAT(backward(layer, take(grad, {b})).at("grad_x"), HasBitsOf(take(together, {b})));
    }
  }
}

TEST_CASE("the contents of padding, even NaN, do not affect any gradient of a classifier", "[backward][layers]") {
  for (const Pooling pooling : {Pooling::mean, Pooling::max, Pooling::cls})
    for (const bool norm_first : {false, true})
      for (const bool gated : {false, true}) {
        INFO("pooling " << kPoolingNames[static_cast<std::size_t>(pooling)] << ", norm first " << norm_first << ", gated " << gated);
        Generator random(3);
        TransformerClassifier layer({.encoder = {.layer = {.d_model = 12,
                                                           .nhead = 3,
                                                           .dim_feedforward = 10,
                                                           .activation = Activation::silu,
                                                           .norm_first = norm_first,
                                                           .gated = gated},
                                                 .num_layers = 2,
                                                 .final_norm = true},
                                     .num_classes = 4,
                                     .pooling = pooling});
        Array x = random.normal({2, 9, 12});
        const Array grad = random.normal({2, 4});
        EncoderCase call;
        call.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0})};
        const auto run = [&] {
          layer.zero_grad();
          layer.train({.seed = 5});
          forward(layer, x, call_of(call));
          return backward(layer, grad);
        };
        const Gradients clean = run();
        for (std::size_t i = x.data.size() - 36; i < x.data.size(); ++i) x.data[i] = i % 3 == 0 ? kInfinity : kNaN;
        check_same(run(), clean);
        const Array& of_x = clean.at("grad_x");
        CHECK(std::all_of(of_x.data.end() - 36, of_x.data.end(), [](float value) { return value == 0; }));
        CHECK(std::any_of(of_x.data.begin(), of_x.data.end() - 36, [](float value) { return value != 0; }));
      }
}

TEST_CASE("a sequence of padding alone gets the gradient of the value that its policy pools", "[backward][layers]") {
  Generator random(4);
  for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
    TransformerClassifier layer(
        {.encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 1}, .num_classes = 3, .pooling = pooling});
    const Array x = random.normal({2, 5, 8}), grad = random.normal({2, 3});
    for (const FullyMasked policy : kPolicies) {
      INFO("policy " << to_string(policy));
      EncoderCase call;
      call.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 5}, {1, 1, 1, 0, 0, 0, 0, 0, 0, 0})};
      call.fully_masked = policy;
      EncoderForwardOptions options = call_of(call);
      options.for_backward = true;
      layer.zero_grad();
      forward(layer, x, options);
      const Gradients gradients = backward(layer, grad);
      const Array padded = take(gradients.at("grad_x"), {1});
      const auto is_zero = [](float value) { return value == 0; };
      if (policy != FullyMasked::uniform) CHECK(std::all_of(padded.data.begin(), padded.data.end(), is_zero));
      if (policy == FullyMasked::uniform) CHECK(!std::any_of(padded.data.begin(), padded.data.end(), is_zero));
      const Array& head = gradients.at("state.classifier.weight");
      CHECK(std::isnan(head.data[0]) == (policy == FullyMasked::nan));
      for (const auto& [name, gradient] : gradients) {
        INFO(name);
        if (name != "state.classifier.weight")
          CHECK(std::all_of(gradient.data.begin(), gradient.data.end(), [](float value) { return std::isfinite(value); }));
      }
    }
  }
}

TEST_CASE("storing values for backward does not change the bits of an encoder's forward, nor does train mode", "[backward][layers]") {
  for (const bool norm_first : {false, true}) {
    Generator random(6);
    TransformerClassifierOptions options = everything(norm_first);
    options.encoder.layer.dropout = 0;
    auto layer = drawn_layer<TransformerClassifier>(random, options);
    const Array x = random.normal({2, 6, 16});
    const Array grad = norm_first ? random.normal({2, 3}) : random.normal({2, 6, 3});
    EncoderForwardOptions plain;
    EncoderForwardOptions all{.output_attentions = true, .output_hidden_states = true, .trace = EncoderTraceOptions{.names = kWholeTrace}};
    const EncoderOutput expected = forward(layer, x, all);
    check_error({ErrorCode::argument, "TransformerClassifier", "backward", {"for_backward"}}, [&] { backward(layer, grad); });
    Gradients gradients;
    for (EncoderForwardOptions* const call : {&plain, &all}) {
      call->for_backward = true;
      const EncoderOutput got = forward(layer, x, *call);
      CHECK_THAT(got.logits, HasBitsOf(expected.logits));
      CHECK_THAT(got.output, HasBitsOf(expected.output));
      if (got.trace)
        for (const auto& [index, traces] : *got.trace)
          for (const auto& [name, array] : traces) CHECK_THAT(array, HasBitsOf(expected.trace->at(index).at(name)));
      for (std::size_t i = 0; got.hidden_states && i < got.hidden_states->size(); ++i)
        CHECK_THAT(got.hidden_states->at(i), HasBitsOf(expected.hidden_states->at(i)));
      layer.zero_grad();
      const Gradients found = backward(layer, grad);
      if (!gradients.empty()) check_same(found, gradients);
      gradients = found;
    }
    layer.zero_grad();
    layer.train();
    CHECK_THAT(forward(layer, x).logits, HasBitsOf(expected.logits));
    check_same(backward(layer, grad), gradients);
  }
}

TEST_CASE("gradients of two backwards of an encoder are added", "[backward][layers]") {
  Generator random(7);
  TransformerEncoder layer({.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 2});
  const Array x = random.normal({2, 5, 8}), grad = random.normal({2, 5, 8});
  const auto run = [&] {
    forward(layer, x, {.for_backward = true});
    return backward(layer, grad);
  };
  const Gradients once = run(), twice = run();
  for (const auto& [name, gradient] : once) {
    Array expected = gradient;
    if (name != "grad_x")
      for (float& value : expected.data) value *= 2;
    INFO(name);
    CHECK_THAT(twice.at(name), HasBitsOf(expected));
  }
}

template <class Layer>
void check_refusals(Layer layer, const char* op, const char* grad_name, const Shape& dims) {
  Generator random(5);
  const Array x = random.normal({2, 5, 8}), grad = random.normal(dims);
  const auto keep = [&] { forward(layer, x, {.for_backward = true}); };
  const ExpectedError none{ErrorCode::argument, op, "backward", {"a forward with for_backward"}};
  check_error(none, [&] { backward(layer, grad); });
  keep();
  check_error({ErrorCode::shape, op, grad_name, {to_string(dims)}}, [&] { backward(layer, random.normal({2, 4, 8})); });
  check_error({ErrorCode::out_of_range, op, "trace.layers", {}},
              [&] { backward(layer, grad, {.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{7}}}); });
  CHECK(layer.gradients().empty());
  const Gradients once = backward(layer, grad);
  check_error(none, [&] { backward(layer, grad); });
  for (const auto& [name, gradient] : arrays_of(layer.gradients())) CHECK(gradient == once.at("state." + name));

  keep();
  layer.load_state_dict(layer.state_dict());
  check_error(none, [&] { backward(layer, grad); });
  keep();
  layer.initialize();
  check_error(none, [&] { backward(layer, grad); });
  keep();
  backward(layer, grad);
  AdamW optimizer({layer});
  keep();
  optimizer.step();
  check_error(none, [&] { backward(layer, grad); });
  keep();
  layer.quantize();
  check_error({ErrorCode::unsupported, op, "the layer", {"int8"}}, [&] { backward(layer, grad); });
  check_error({ErrorCode::unsupported, op, "for_backward", {"int8"}}, keep);
  layer.train();
  forward(layer, x);
  CHECK(layer.gradients().empty());
}

TEST_CASE("an encoder's backward without a forward, twice, or after weights changed fails and changes nothing", "[backward][layers]") {
  const TransformerClassifierOptions o{
      .encoder = {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 2}, .num_classes = 3, .pooling = Pooling::mean};
  check_refusals(TransformerEncoderLayer(o.encoder.layer), "TransformerEncoderLayer", "grad", {2, 5, 8});
  check_refusals(TransformerEncoder(o.encoder), "TransformerEncoder", "grad", {2, 5, 8});
  check_refusals(TransformerClassifier(o), "TransformerClassifier", "grad_logits", {2, 3});
}

TEST_CASE("the masks of a forward may be destroyed before its backward", "[backward][layers]") {
  Generator random(8);
  TransformerEncoderLayer layer({.d_model = 8, .nhead = 2, .dim_feedforward = 12});
  const Array x = random.normal({2, 5, 8}), grad = zeros_behind(random.normal({2, 5, 8}), 1, 3);
  const auto run = [&](bool spoil) {
    layer.zero_grad();
    std::vector<std::uint8_t> attend{1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    const Array values({2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
    auto mask = std::make_unique<xt::xarray<bool>>(xt::ones<bool>({2, 5}));
    (*mask)(1, 3) = (*mask)(1, 4) = false;
    forward(layer, x, {.key_padding_mask = Mask::attend(*mask), .for_backward = true});
    if (spoil) mask->fill(false);
    return backward(layer, grad);
  };
  check_same(run(true), run(false));
}

}  // namespace layers_encoder_backward_test
}  // namespace attn::test
