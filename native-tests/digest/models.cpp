#include "models.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "draw.hpp"
#include "support/testdata.hpp"

namespace digest {
namespace models_calls {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints[] = {"tiny-albert",
                                        "tiny-albert-mlm",
                                        "tiny-bert",
                                        "tiny-bert-choice",
                                        "tiny-bert-cls",
                                        "tiny-bert-legacy",
                                        "tiny-bert-mlm",
                                        "tiny-bert-multilabel",
                                        "tiny-bert-ner",
                                        "tiny-bert-qa",
                                        "tiny-camembert",
                                        "tiny-data2vec",
                                        "tiny-deberta",
                                        "tiny-deberta-choice",
                                        "tiny-deberta-mlm",
                                        "tiny-deberta-mlm-legacy",
                                        "tiny-deberta-ner",
                                        "tiny-deberta-qa",
                                        "tiny-distilbert",
                                        "tiny-distilbert-choice",
                                        "tiny-distilbert-mlm",
                                        "tiny-electra",
                                        "tiny-electra-choice",
                                        "tiny-electra-mlm",
                                        "tiny-ernie",
                                        "tiny-gte",
                                        "tiny-gte-2024",
                                        "tiny-gte-ner",
                                        "tiny-jina",
                                        "tiny-jina-mean",
                                        "tiny-modernbert",
                                        "tiny-modernbert-2024",
                                        "tiny-modernbert-mlm",
                                        "tiny-modernbert-qa",
                                        "tiny-mpnet",
                                        "tiny-mpnet-mean",
                                        "tiny-mpnet-mlm",
                                        "tiny-nomic",
                                        "tiny-nomic-2024",
                                        "tiny-nomic-mlm",
                                        "tiny-roberta",
                                        "tiny-roberta-choice",
                                        "tiny-roberta-mlm",
                                        "tiny-xlm-roberta",
                                        "tiny-xlm-roberta-ner",
                                        "tiny-gpt2",
                                        "tiny-llama",
                                        "tiny-llama-3",
                                        "tiny-mistral",
                                        "tiny-qwen2",
                                        "tiny-qwen3",
                                        "tiny-neox",
                                        "tiny-neox-serial",
                                        "tiny-llama-yarn",
                                        "tiny-gemma-2",
                                        "tiny-gemma-3"};

template <class T>
xt::xtensor<T, 2> integers(const attn::AnyTensor& x) {
  xt::xtensor<T, 2> out(std::array<std::size_t, 2>{x.shape(0), x.shape(1)});
  std::transform(x.begin(), x.end(), out.begin(), [](float value) { return static_cast<T>(value); });
  return out;
}

std::string hash_of(const attn::TextModel& model, const attn::Encoding& inputs) {
  const attn::TextModelOutput output = model.forward(inputs, {.output_attentions = true, .output_hidden_states = true});
  Hash hash;
  hash.add(values_of(output.last_hidden_state));
  for (const auto& state : *output.hidden_states) hash.add(values_of(state));
  for (const auto& weights : *output.attentions) hash.add(values_of(weights));
  if (output.logits) hash.add(values_of(*output.logits));
  for (std::size_t layer = 0; layer < output.attentions->size(); ++layer)
    for (const auto& [name, tensor] : model.trace_layer(inputs, static_cast<std::int64_t>(layer))) hash.add(values_of(tensor));
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash.value()));
  return text;
}

}  // namespace models_calls
using namespace models_calls;

std::vector<std::string> model_lines(attn::Weights weights) {
  std::vector<std::string> lines;
  for (const std::string name : kCheckpoints) {
    const fs::path folder = attn::test::testdata("models") / name;
    const attn::TextModel model = attn::TextModel::load(folder, {.weights = weights});
    const attn::StateDict golden = attn::read_safetensors(folder.string() + ".safetensors");
    for (const auto& [key, ids] : golden) {
      constexpr std::string_view kEnd = "/input_ids";
      if (!key.ends_with(kEnd)) continue;
      const std::string which = key.substr(0, key.size() - kEnd.size());
      attn::Encoding inputs;
      inputs.input_ids = integers<std::int32_t>(ids);
      inputs.attention_mask = integers<std::uint8_t>(golden.at(which + "/attention_mask"));
      if (const auto types = golden.find(which + "/token_type_ids"); types != golden.end())
        inputs.token_type_ids = integers<std::int32_t>(types->second);
      lines.push_back(hash_of(model, inputs) + ' ' + name + '/' + which);
    }
  }
  return lines;
}

}  // namespace digest
