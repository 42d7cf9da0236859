#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "models/edit.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"

namespace attn::test {
namespace models_decoder_config_test {

std::string path_of(const std::string& name) { return testdata("models/" + name).string(); }

TEST_CASE("configurations of decoders that attn does not have are refused by name", "[models]") {
  const auto refuses = [](const std::string& name, const std::string& member, const nlohmann::json& value, const std::string& what,
                          ErrorCode code = ErrorCode::unsupported) {
    CAPTURE(name, member);
    refused(code, what, [&] { static_cast<void>(load(with_member(read_checkpoint(path_of(name)), member, value))); });
  };
  refuses("tiny-llama", "rope_parameters", {{"rope_type", "longrope"}, {"factor", 2}, {"rope_theta", 500}}, "longrope");
  refuses("tiny-llama", "rope_parameters", {{"rope_type", "yarn"}, {"factor", 2}, {"rope_theta", 1}}, "rope_theta", ErrorCode::config);
  refuses("tiny-llama", "rope_parameters", {{"rope_type", "yarn"}, {"factor", -1}}, "factor", ErrorCode::config);
  refuses("tiny-llama", "rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}, "partial_rotary_factor");
  for (const double share : {0.2, 0.9, 1.5}) refuses("tiny-neox", "rotary_pct", share, "partial_rotary_factor", ErrorCode::config);
  refuses("tiny-neox", "architectures", {"GPTNeoXForTokenClassification"}, "GPTNeoXForCausalLM");
  refuses("tiny-gemma-2", "use_bidirectional_attention", true, "use_bidirectional_attention");
  refuses("tiny-gemma-2", "attn_logit_softcapping", -1, "attn_logit_softcapping", ErrorCode::config);
  refuses("tiny-gemma-2", "query_pre_attn_scalar", 0, "query_pre_attn_scalar", ErrorCode::config);
  refuses("tiny-gemma-3", "sliding_window_pattern", 0, "sliding_window_pattern", ErrorCode::config);
  refuses("tiny-llama", "num_key_value_heads", 3, "num_key_value_heads", ErrorCode::config);
  refuses("tiny-llama", "head_dim", 5, "even", ErrorCode::config);
  refuses("tiny-llama", "architectures", {"LlamaForSequenceClassification"}, "LlamaForCausalLM");
  refuses("tiny-gpt2", "scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx");
  refuses("tiny-gpt2", "scale_attn_weights", false, "scale_attn_weights");
  refuses("tiny-gpt2", "add_cross_attention", true, "add_cross_attention");
  refuses("tiny-gpt2", "eos_token_id", 1.5, "eos_token_id", ErrorCode::config);
  refuses("tiny-llama", "rope_parameters", {{"rope_type", "ntk"}, {"factor", 2}}, "ntk");
  refuses("tiny-neox", "head_dim", 2, "head_dim");
  refuses("tiny-gemma-3", "rope_parameters",
          {{"full_attention", {{"rope_type", "default"}}}, {"sliding_attention", {{"type", "linear"}, {"factor", 2}}}}, "sliding_attention.type");
  for (const char* const name : {"tiny-gpt2", "tiny-neox", "tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3", "tiny-gemma-2", "tiny-gemma-3"})
    for (const nlohmann::json& value : {nlohmann::json(false), nlohmann::json(nullptr)}) refuses(name, "is_causal", value, "is_causal");
  refuses("tiny-qwen2", "layer_types", {"full_attention", "other"}, "other");
}

TEST_CASE("layer_types must have a known kind for each layer, in every family", "[models]") {
  using nlohmann::json;
  const std::string full = "full_attention", sliding = "sliding_attention";
  for (const std::string name :
       {"tiny-gpt2", "tiny-llama", "tiny-mistral", "tiny-qwen3", "tiny-neox", "tiny-gemma-2", "tiny-gemma-3", "tiny-modernbert"}) {
    CAPTURE(name);
    const auto with = [&](const json& value) { return with_member(read_checkpoint(path_of(name)), "layer_types", value); };
    for (const json& value : {json::array(), json::array({full}), json(std::vector<std::string>(9, full)), json(7)})
      refused(ErrorCode::config, "layer_types", [&] { static_cast<void>(load(with(value))); });
    const std::size_t layers = load(read_checkpoint(path_of(name)))->config().distances.size();
    std::vector<std::string> kinds(layers == 0 ? 2 : layers, full);
    CHECK_NOTHROW(load(with(kinds)));
    kinds[0] = "attention";  // an older name
    CHECK_NOTHROW(load(with(kinds)));
    kinds[1] = "other";
    refused(ErrorCode::unsupported, "other", [&] { static_cast<void>(load(with(kinds))); });
  }
  for (const std::string name : {"tiny-mistral", "tiny-qwen2", "tiny-qwen3", "tiny-gemma-2", "tiny-gemma-3"}) {
    CAPTURE(name);
    refused(ErrorCode::unsupported, "sliding_window", [&] {
      static_cast<void>(load(with_config(read_checkpoint(path_of(name)), [&](json& config) {
        config["layer_types"] = {full, sliding};
        config["sliding_window"] = nullptr;
      })));
    });
  }
  refused(ErrorCode::unsupported, "sliding_window",
          [&] { static_cast<void>(load(with_member(read_checkpoint(path_of("tiny-qwen2")), "use_sliding_window", false))); });
}

TEST_CASE("numbers that a kind of RoPE needs must be given", "[models]") {
  using nlohmann::json;
  const json kinds[] = {{{"rope_type", "linear"}, {"factor", 2}},
                        {{"rope_type", "dynamic"}, {"factor", 2}},
                        {{"rope_type", "yarn"}, {"factor", 2}},
                        {{"type", "linear"}, {"factor", 2}},
                        {{"rope_type", "llama3"}, {"factor", 2}, {"low_freq_factor", 1}, {"high_freq_factor", 4}}};
  for (const std::string name : {"tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-gemma-2", "tiny-neox"})
    for (const json& kind : kinds) {
      CAPTURE(name, kind.dump());
      const auto with = [&](const json& rope) { return with_member(read_checkpoint(path_of(name)), "rope_scaling", rope); };
      CHECK_NOTHROW(load(with(kind)));
      for (const auto& [member, value] : kind.items()) {
        if (!value.is_number()) continue;
        json without = kind;
        without.erase(member);
        refused(ErrorCode::config, member, [&] { static_cast<void>(load(with(without))); });
      }
    }
  json yarn{{"rope_type", "yarn"}, {"factor", nullptr}, {"original_max_position_embeddings", 16}};
  CHECK(load(with_member(read_checkpoint(path_of("tiny-llama")), "rope_scaling", yarn))->config().rope.factor == 4);
}

TEST_CASE("RoPE by kind of layer is refused by families that have the same in all layers", "[models]") {
  using nlohmann::json;
  const json nested{{"full_attention", {{"rope_type", "default"}, {"rope_theta", 50}}}};
  for (const std::string name : {"tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3", "tiny-gemma-2", "tiny-neox"})
    for (const char* const member : {"rope_parameters", "rope_scaling"}) {
      CAPTURE(name, member);
      refused(ErrorCode::unsupported, "full_attention",
              [&] { static_cast<void>(load(with_member(read_checkpoint(path_of(name)), member, nested))); });
    }
  refused(ErrorCode::unsupported, "partial_rotary_factor",
          [&] { static_cast<void>(load(with_member(read_checkpoint(path_of("tiny-llama")), "partial_rotary_factor", 0.5))); });
}

detail::ModelConfig gemma_3(const nlohmann::json& members) {
  return detail::read_model_config(with_config(read_checkpoint(path_of("tiny-gemma-3")), [&](nlohmann::json& config) {
                                     for (const char* const name : {"rope_parameters", "rope_scaling", "rope_theta", "rope_local_base_freq"})
                                       config.erase(name);
                                     config.update(members);
                                   }).files());
}

// transformers 5.23, Gemma3TextConfig.convert_rope_params_to_dict.
TEST_CASE("Gemma 3 reads RoPE by kind of layer only, as transformers", "[models]") {
  using nlohmann::json;
  const auto bases = [](const detail::ModelConfig& config) {
    return std::pair{config.distances.at(1).rope_theta, config.distances.at(0).rope_theta};
  };
  const json linear{{"rope_type", "linear"}, {"factor", 4}}, flat{{"rope_type", "linear"}, {"factor", 4}, {"rope_theta", 50}};
  const detail::ModelConfig none = gemma_3(json::object()), ignored = gemma_3({{"rope_parameters", flat}}), old = gemma_3({{"rope_scaling", linear}});
  CHECK(bases(none) == std::pair{1e6, 1e4});
  CHECK(bases(ignored) == std::pair{1e6, 1e4});
  CHECK(ignored.rope.factor == 1);
  REQUIRE(ignored.notes.size() == 3);
  CHECK(ignored.notes[0].find("rope_parameters.factor is not used") != std::string::npos);
  CHECK(bases(gemma_3({{"rope_parameters", flat}, {"rope_theta", 30}, {"rope_local_base_freq", 20}})) == std::pair{30.0, 20.0});
  CHECK(old.rope.factor == 4);
  CHECK(bases(old) == std::pair{1e6, 1e4});
  CHECK(old.distances.at(0).unscaled);
  CHECK_FALSE(old.distances.at(1).unscaled);
  const json nested{{"full_attention", {{"rope_type", "default"}, {"rope_theta", 50}}}, {"sliding_attention", {{"rope_theta", 20}}}};
  const detail::ModelConfig both = gemma_3({{"rope_parameters", nested}, {"rope_scaling", linear}});
  CHECK(bases(both) == std::pair{50.0, 20.0});
  CHECK(both.rope.factor == 4);
  const auto refuses = [](const json& members, const std::string& what, ErrorCode code = ErrorCode::unsupported) {
    CAPTURE(members.dump());
    refused(code, what, [&] { static_cast<void>(gemma_3(members)); });
  };
  refuses({{"rope_parameters", flat}, {"rope_scaling", linear}}, "rope_scaling");  // a KeyError in transformers
  refuses({{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}}, "rope_type");   // default RoPE in transformers
  refuses({{"rope_scaling", {{"rope_type", "linear"}}}}, "factor", ErrorCode::config);
  refuses({{"rope_parameters", {{"full_attention", linear}}}, {"rope_scaling", linear}}, "full_attention.rope_type");
}

// transformers 5.23, Gemma3TextModel, eager attention in float32.
TEST_CASE("Gemma 3 as an embedding model may attend to later tokens, in windows to half the keys on each side", "[models]") {
  const auto with = [](const char* architecture) {
    return with_config(read_checkpoint(path_of("tiny-gemma-3")), [&](nlohmann::json& config) {
      config["use_bidirectional_attention"] = true;
      config["architectures"] = {architecture};
    });
  };
  refused(ErrorCode::unsupported, "use_bidirectional_attention", [&] { static_cast<void>(load(with("Gemma3ForCausalLM"))); });
  const auto model = load(with("Gemma3TextModel"));
  CHECK(model->config().distances.at(0).window == 2);
  Batch batch{.shape = {1, 16}, .ids = {}, .types = {}, .mask = std::nullopt};
  for (std::int64_t i = 0; i < 16; ++i) batch.ids.push_back(5 + i * 31 % 300);
  const auto check = [&](std::size_t token, const std::vector<float>& expected) {
    const ModelOutput output = forward(*model, batch, false);
    const auto E = static_cast<std::size_t>(output.last_hidden_state.dims[2]);
    for (std::size_t e = 0; e < expected.size(); ++e) CHECK(std::abs(output.last_hidden_state.data[token * E + e] - expected[e]) < 2e-5F);
  };
  check(0, {1.872476F, -1.052192F, -0.666679F, -1.238088F, -1.233999F, 0.094668F, -0.128524F, 0.015769F});
  check(10, {0.476512F, -1.072639F, 0.497682F, 0.002471F, 0.402507F, 1.175555F, 0.899027F, -0.763827F});
  xt::xtensor<std::uint8_t, 2> tokens({1, 16}, 1);
  for (std::size_t i = 11; i < 16; ++i) tokens(0, i) = 0;
  batch.mask = Mask::attend(tokens);
  check(0, {1.914843F, -0.963003F, -0.65021F, -1.238795F, -1.235224F, -0.032948F, -0.1912F, 0.04059F});
  check(10, {0.405277F, -1.425292F, 0.412758F, 0.087718F, 1.025477F, 0.900813F, 0.578112F, -0.069733F});
}

TEST_CASE("truncate of YaRN is read where transformers reads it", "[models]") {
  using nlohmann::json;
  const json yarn{{"rope_type", "yarn"}, {"factor", 4}, {"rope_theta", 40}};
  const auto with = [&](const json& truncate) {
    json changed = yarn;
    changed["truncate"] = truncate;
    return changed;
  };
  for (const json& truncate : {json(false), json(nullptr)}) {
    CHECK_FALSE(load(with_member(read_checkpoint(path_of("tiny-llama")), "rope_parameters", with(truncate)))->config().rope.whole);
    // With RoPE by kind of layer, truncate is read outside of the kinds.
    const detail::ModelConfig inside = gemma_3({{"rope_parameters", {{"full_attention", with(truncate)}}}});
    CHECK(inside.rope.whole);
    CHECK(inside.notes.size() == 1);
    const detail::ModelConfig outside = gemma_3({{"rope_parameters", {{"truncate", truncate}, {"full_attention", yarn}}}});
    CHECK_FALSE(outside.rope.whole);
    CHECK(outside.notes.empty());
  }
  CHECK(gemma_3({{"rope_parameters", {{"full_attention", yarn}}}}).rope.whole);
}

TEST_CASE("GPT-2's sizes may have the names that transformers maps to its own", "[models]") {
  const Checkpoint checkpoint = read_checkpoint(path_of("tiny-gpt2"));
  const Checkpoint common = with_config(checkpoint, [](nlohmann::json& config) {
    for (const auto& [own, name] : {std::pair{"n_embd", "hidden_size"},
                                    {"n_head", "num_attention_heads"},
                                    {"n_layer", "num_hidden_layers"},
                                    {"n_positions", "max_position_embeddings"}}) {
      config[name] = config[own];
      config.erase(own);
    }
  });
  CHECK_THAT(run(common), HasBitsOf(run(checkpoint)));
  CHECK(load(common)->config().max_length == 64);
  // transformers sets common names last.
  CHECK_THAT(run(with_member(common, "n_head", 2)), HasBitsOf(run(checkpoint)));
  CHECK(load(with_member(checkpoint, "num_attention_heads", 2))->config().num_attention_heads == 2);
}

TEST_CASE("generation_config.json replaces the settings of generation in config.json, as in transformers", "[models]") {
  const Checkpoint checkpoint = with_config(read_checkpoint(path_of("tiny-gpt2")), [](nlohmann::json& config) {
    config["eos_token_id"] = 3;
    config["repetition_penalty"] = 1.5;
  });
  const auto read = [&](const std::string& generation) {
    detail::ModelFiles files = checkpoint.files();
    if (!generation.empty()) files.generation = std::span(reinterpret_cast<const std::uint8_t*>(generation.data()), generation.size());
    return detail::read_model_config(files);
  };
  const detail::ModelConfig without = read("");
  CHECK(without.eos_token_ids == std::vector<std::int64_t>{3});
  CHECK(without.notes == std::vector<std::string>{"generate: repetition_penalty of config.json is not used: pass it as an option"});
  for (const char* const generation : {"{}", R"({"eos_token_id": null})"}) {
    const detail::ModelConfig with = read(generation);
    CHECK(with.eos_token_ids.empty());
    REQUIRE(with.notes.size() == 1);
    CHECK(with.notes[0].find("eos_token_id of config.json is not used") != std::string::npos);
  }
}

}  // namespace models_decoder_config_test
}  // namespace attn::test
