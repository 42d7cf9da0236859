#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn/models/model_loader.hpp"
#include "support/golden.hpp"

namespace attn::test {

struct Checkpoint {
  std::vector<std::uint8_t> config, modules, pooling, sentence_bert_config, tokenizer_config, weights;
  std::vector<std::uint8_t> prompts = {}, dense = {}, dense_weights = {};

  detail::ModelFiles files() const {
    const auto file = [](const std::vector<std::uint8_t>& bytes) {
      return bytes.empty() ? detail::ModelFiles::File() : detail::ModelFiles::File(bytes);
    };
    return {config,
            file(modules),
            file(pooling),
            file(sentence_bert_config),
            file(tokenizer_config),
            file(prompts),
            {{file(dense), file(dense_weights)}}};
  }
};

inline Checkpoint read_checkpoint(const std::filesystem::path& folder) {
  const auto optional = [&](const char* name) {
    return std::filesystem::exists(folder / name) ? bytes_of(folder / name) : std::vector<std::uint8_t>{};
  };
  return {bytes_of(folder / "config.json"),      optional("modules.json"),          optional("1_Pooling/config.json"),
          optional("sentence_bert_config.json"), optional("tokenizer_config.json"), bytes_of(folder / "model.safetensors")};
}

inline std::unique_ptr<EncoderModel> load(const Checkpoint& checkpoint, std::size_t piece = 1 << 20) {
  detail::ModelLoader loader(checkpoint.files());
  const std::span<const std::uint8_t> bytes = checkpoint.weights;
  for (std::size_t i = 0; i < bytes.size(); i += piece) loader.write(bytes.subspan(i, std::min(piece, bytes.size() - i)));
  return loader.finish();
}

struct Batch {
  Shape shape;
  std::vector<std::int64_t> ids, types;
  std::optional<Mask> mask;

  detail::ModelInputs inputs() const { return {shape, ids, types, mask ? &*mask : nullptr}; }
};

struct ModelOutput {
  Array last_hidden_state, logits;
  std::vector<Array> attentions, hidden_states;
};

inline ModelOutput forward(const EncoderModel& model, const detail::ModelInputs& inputs, bool everything = true,
                           detail::ModelForwardOptions options = {}) {
  options.output_attentions = options.output_hidden_states = everything;
  const detail::ModelPlan plan = model.plan("forward", inputs, options);
  ModelOutput output{Array(plan.encoder.output), Array(plan.logits), {}, {}};
  detail::EncoderBuffers buffers{output.last_hidden_state.data.data(), {}, {}};
  if (everything) {
    for (std::int64_t layer = 0; layer < plan.encoder.layers; ++layer) output.attentions.emplace_back(plan.encoder.attention.weights);
    for (std::int64_t layer = 0; layer <= plan.encoder.layers; ++layer) output.hidden_states.emplace_back(plan.encoder.output);
    for (Array& attention : output.attentions) buffers.layers.push_back({attention.data.data(), {}});
    for (Array& state : output.hidden_states) buffers.hidden_states.push_back(state.data.data());
  }
  model.run(plan, inputs, buffers, plan.logits.rank() > 0 ? output.logits.data.data() : nullptr);
  return output;
}

inline ModelOutput forward(const EncoderModel& model, const Batch& batch, bool everything = true, const detail::ModelForwardOptions& options = {}) {
  return forward(model, batch.inputs(), everything, options);
}

}  // namespace attn::test
