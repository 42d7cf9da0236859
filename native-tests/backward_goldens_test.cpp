// torch.autograd: testdata/make/goldens/backward.py.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>
#include <set>

#include "support/call_backward.hpp"
#include "support/golden.hpp"

namespace attn::test {
namespace backward_goldens_test {

struct Cases {
  GoldenFile file;
  nlohmann::json entries;
  std::map<std::string, const nlohmann::json*> by_name;

  explicit Cases(const std::string& name) : file(read_golden(testdata(name))) {
    entries = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
    for (const nlohmann::json& entry : entries) by_name.emplace(entry.at("name"), &entry);
  }
};

const std::set<std::string> kAttentionOptions{"isCausal", "scale", "enableGqa", "fullyMasked", "softcap", "window", "queryOffset", "dropout", "seed"};

Gradients gradients_of(const GoldenCase& own, const GoldenCase& forward) {
  const std::string op = own.op();
  const Array grad = own.tensor("grad");
  const auto given = [&](const char* name) { return forward.lists("inputs", name) ? std::optional(forward.tensor(name)) : std::nullopt; };
  const std::optional<Array> weight = given("weight");
  const auto pointer = [](const std::optional<Array>& array) { return array ? &*array : nullptr; };
  if (op == "linear_backward") {
    own.check_names({"of", "rows"}, {});
    return linear_backward(grad, forward.tensor("x"), *weight);
  }
  if (op == "softmax_backward") {
    own.check_names({"of", "rows"}, {"dim"});
    const auto dim = own.option("dim", std::int64_t{-1});
    return {{"grad_x", softmax_backward(grad, softmax(forward.tensor("x"), dim), dim)}};
  }
  if (op == "layer_norm_backward" || op == "rms_norm_backward") {
    own.check_names({"of", "rows"}, {"eps"});
    if (op == "rms_norm_backward") return rms_norm_backward(grad, forward.tensor("x"), pointer(weight), own.option("eps", 0x1p-23F));
    std::optional<Array> ones = weight;
    if (const auto bias = given("bias"); bias && !ones) ones = Array(bias->dims, 1);
    return layer_norm_backward(grad, forward.tensor("x"), pointer(ones), own.option("eps", 1e-5F));
  }
  if (op == "activation_backward") {
    own.check_names({"of", "rows"}, {"name"});
    const auto* const found = std::find(kActivationNames.begin(), kActivationNames.end(), own.option("name", std::string()));
    REQUIRE(found != kActivationNames.end());
    return {{"grad_x", activation_backward(grad, forward.tensor("x"), static_cast<Activation>(found - kActivationNames.begin()))}};
  }
  if (op == "apply_rotary_backward") {
    own.check_names({"of", "rows"}, {"theta", "offset", "interleaved"});
    RotaryOptions options;
    options.theta = own.option("theta", options.theta);
    options.offset = own.option("offset", options.offset);
    options.interleaved = own.option("interleaved", options.interleaved);
    return {{"grad_x", apply_rotary_backward(grad, options)}};
  }
  own.check_names({"of", "rows", "mask", "keyPaddingMask"}, kAttentionOptions);
  std::uint32_t bits = 0;
  for (const auto& [what, error] : own.entry().at("expected").items())
    if (what.starts_with("trace.")) bits |= Trace{trace_name(what.substr(6))}.bits();
  AttentionOptions asked{.trace = Trace::from_bits(bits)};
  if (own.entry().at("options").contains("dropout")) asked.dropout = own.option("dropout", 0.0F);
  if (own.entry().at("options").contains("seed")) asked.seed = own.option("seed", std::uint64_t{0});
  if (op == "scaled_dot_product_attention_backward") return attention_backward(grad, forward.inputs(), asked);
  if (op == "general_attention_backward") return general_attention_backward(grad, forward.inputs(), *weight, asked);
  if (op != "additive_attention_backward") throw std::runtime_error("unknown op " + op);
  AdditiveArrays params{forward.tensor("queryWeight"), forward.tensor("keyWeight"), forward.tensor("scoreWeight")};
  if (const auto bias = given("bias")) params.bias = *bias;
  return additive_attention_backward(grad, forward.inputs(), params, asked);
}

std::map<std::string, std::size_t> check_gradients(const std::set<std::string>& ops) {
  static const Cases kBackward("backward.safetensors");
  static const std::map<std::string, Cases> kForwards = [] {
    std::map<std::string, Cases> files;
    for (const char* name : {"functional", "attention"}) files.emplace(name, std::string(name) + ".safetensors");
    return files;
  }();
  std::map<std::string, std::size_t> counts;
  for (const nlohmann::json& entry : kBackward.entries) {
    const GoldenCase own(kBackward.file, entry);
    if (!ops.contains(own.op())) continue;
    ++counts[own.op()];
    INFO("case " << own.name() << ", op " << own.op() << ", options " << entry.at("options").dump());
    const Cases& inputs = entry.contains("of") ? kForwards.at(entry.at("of")) : kBackward;
    const Gradients gradients = gradients_of(own, GoldenCase(inputs.file, *inputs.by_name.at(own.name())));
    for (const auto& [what, error] : entry.at("expected").items()) {
      INFO("gradient " << what);
      REQUIRE(gradients.contains(what));
      CHECK(own.difference(what, gradients.at(what)) == "");
    }
  }
  return counts;
}

TEST_CASE("gradients of stateless functions agree with torch.autograd", "[goldens][backward]") {
  const auto counts = check_gradients(
      {"linear_backward", "softmax_backward", "layer_norm_backward", "rms_norm_backward", "activation_backward", "apply_rotary_backward"});
  CHECK(counts.at("linear_backward") >= 14);
  CHECK(counts.at("softmax_backward") >= 30);
  CHECK(counts.at("layer_norm_backward") >= 20);
  CHECK(counts.at("rms_norm_backward") >= 14);
  CHECK(counts.at("activation_backward") >= 81);
  CHECK(counts.at("apply_rotary_backward") >= 17);
}

TEST_CASE("gradients of attention and of its intermediates agree with torch.autograd", "[goldens][backward]") {
  const auto counts = check_gradients({"scaled_dot_product_attention_backward"});
  CHECK(counts.at("scaled_dot_product_attention_backward") >= 135);
}

TEST_CASE("gradients of additive and general attention agree with torch.autograd", "[goldens][backward]") {
  const auto counts = check_gradients({"additive_attention_backward", "general_attention_backward"});
  CHECK(counts.at("additive_attention_backward") >= 30);
  CHECK(counts.at("general_attention_backward") >= 28);
}

}  // namespace backward_goldens_test
}  // namespace attn::test
