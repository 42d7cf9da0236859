#include "attn/models/model_loader.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "attn/io/safetensors.hpp"
#include "attn/layers/state_dict.hpp"
#include "attn/models/family.hpp"
#include "attn/tensor/sort.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kOp = "model.safetensors";

/// Throws MEMORY where the weights would be above the limit. One layer tells of all: a file may speak of very many.
void check_memory(const ModelConfig& config) {
  constexpr std::string_view kWhat = "the model";
  ModelConfig one = config;
  one.num_hidden_layers = 1;
  one.distances.clear();
  EncoderModel probe(std::move(one));
  MemoryEstimate memory(kOp);
  for (const auto& [name, parameter] : probe.parameters()) {
    const Shape& shape = parameter.shape();
    const std::int64_t copies = name.starts_with("encoder.layers.") ? config.num_hidden_layers : 1;
    memory.add(kWhat, shape.rank() == 2 ? Shape{copies, shape[0] + 64, shape[1] + 1} : Shape{copies, shape[0]});
  }
  if (!config.distances.empty()) memory.add(kWhat, {2, config.max_position_embeddings, config.hidden_size / config.num_attention_heads});
  if (config.dense) memory.add(kWhat, {config.dense->in_features + 1, config.dense->out_features + 64});
  memory.check(kWhat);
}

/// The weights of the map after the pooling.
Linear read_dense(std::span<const std::uint8_t> file, const DenseConfig& config) {
  const Linear dense(config.in_features, config.out_features, config.bias);
  struct Sink final : TensorSink {
    float* place(const std::string& name, const Shape& shape) override {
      AlignedFloats& values = data.emplace_back(static_cast<std::size_t>(checked_size(shape, "safetensors", name)));
      state.emplace(name, TensorView(values.data(), shape));
      return values.data();
    }
    StateView state;
    std::vector<AlignedFloats> data;
  } sink;
  parse_safetensors(file, sink);
  const StateView& state = sink.state;
  std::map<std::string, Shape> shapes;
  dense.add_shapes("linear.", nullptr, shapes);
  check_state_dict("2_Dense/model.safetensors", shapes, state, true);
  return dense.loaded("linear.", state);
}

}  // namespace

ModelLoader::ModelLoader(const ModelFiles& files) {
  ModelConfig config = read_model_config(files);
  check_memory(config);
  model_ = std::make_unique<EncoderModel>(std::move(config));
  if (model_->config().dense) model_->set_embedding_dense(read_dense(*files.dense_weights, *model_->config().dense));
  parameters_ = model_->parameters();
}

/// The family's table of names, spelled out for this model.
std::vector<ModelLoader::Target> ModelLoader::targets(const Parameters& parameters) const {
  const ModelConfig& config = model_->config();
  const TensorNames& names = config.family->names;
  std::vector<Target> all;
  bool in_base = true;
  const auto add = [&](const std::string& name, std::initializer_list<std::string> ours, std::string legacy = {}) {
    Target target{{name, {}}, in_base, std::move(legacy)};
    for (const std::string& parameter : ours) target.tensor.parts.push_back(parameters.at(parameter));
    all.push_back(std::move(target));
  };
  const auto add_linear = [&](const std::string& name, std::initializer_list<std::string> ours, bool bias) {
    std::vector<std::string> of_bias;
    Target weight{{name + ".weight", {}}, in_base, {}}, biases{{name + ".bias", {}}, in_base, {}};
    for (const std::string& parameter : ours) {
      weight.tensor.parts.push_back(parameters.at(parameter + ".weight"));
      biases.tensor.parts.push_back(parameters.at(parameter + ".bias"));
    }
    all.push_back(std::move(weight));
    if (bias) all.push_back(std::move(biases));
  };
  const auto add_norm = [&](const std::string& name, const std::string& ours, bool bias) {
    add(name + ".weight", {ours + ".weight"}, name + ".gamma");
    if (bias) add(name + ".bias", {ours + ".bias"}, name + ".beta");
  };

  const auto text_of = [](std::string_view name) { return std::string(name); };
  add(text_of(names.word_embeddings) + ".weight", {"word_embeddings.weight"});
  if (config.positions != PositionRows::none) add(text_of(names.position_embeddings) + ".weight", {"position_embeddings.weight"});
  if (config.type_vocab_size > 0) add(text_of(names.token_type_embeddings) + ".weight", {"token_type_embeddings.weight"});
  if (config.position_buckets > 0) add(text_of(names.position_bias) + ".weight", {"position_bias.weight"});
  add_norm(text_of(names.embedding_norm), "embedding_norm", config.norm_bias);
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = text_of(names.layers) + std::to_string(i) + ".", ours = "encoder.layers." + std::to_string(i) + ".";
    const std::string query = ours + "self_attn.q_proj", key = ours + "self_attn.k_proj", value = ours + "self_attn.v_proj";
    if (!names.query_key_value.empty()) {
      add_linear(layer + text_of(names.query_key_value), {query, key, value}, config.attention_bias);
    } else {
      add_linear(layer + text_of(names.query), {query}, config.attention_bias);
      add_linear(layer + text_of(names.key), {key}, config.attention_bias);
      add_linear(layer + text_of(names.value), {value}, config.attention_bias);
    }
    add_linear(layer + text_of(names.attention_output), {ours + "self_attn.out_proj"}, config.attention_bias);
    if (i > 0 || !config.norm_first) add_norm(layer + text_of(names.norm1), ours + "norm1", config.norm_bias);
    if (!names.gate_linear1.empty())
      add_linear(layer + text_of(names.gate_linear1), {ours + "linear_gate", ours + "linear1"}, config.mlp_bias);
    else
      add_linear(layer + text_of(names.linear1), {ours + "linear1"}, config.mlp_bias);
    add_linear(layer + text_of(names.linear2), {ours + "linear2"}, config.mlp_bias);
    add_norm(layer + text_of(names.norm2), ours + "norm2", config.norm_bias);
  }
  if (!names.final_norm.empty()) add_norm(text_of(names.final_norm), "encoder.norm", config.norm_bias);
  if (config.labels.empty()) return all;
  if (!names.pooler.empty()) add_linear(text_of(names.pooler), {"classifier_dense"}, true);
  in_base = false;
  if (!names.classifier_dense.empty()) add_linear(text_of(names.classifier_dense), {"classifier_dense"}, config.classifier_bias);
  if (!names.classifier_norm.empty()) add_norm(text_of(names.classifier_norm), "classifier_norm", config.norm_bias);
  add_linear(text_of(names.classifier), {"classifier"}, true);
  return all;
}

/// Finds each tensor's place, by the names that the file has.
void ModelLoader::match(std::vector<Target> targets) {
  const Family& family = *model_->config().family;
  const std::vector<SafetensorsEntry>& entries = stream_.entries();
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].type->is_float) by_name.emplace(entries[i].name, i);

  const std::string prefix(family.prefix);
  const bool prefixed = by_name.contains(prefix + targets.front().tensor.name);
  targets_ = std::move(targets);
  of_entry_.assign(entries.size(), nullptr);
  Mismatch mismatch;
  for (Target& target : targets_) {
    const std::string start = prefixed && target.in_base ? prefix : "";
    std::string name = start + target.tensor.name;
    if (!target.legacy.empty() && !by_name.contains(name) && by_name.contains(start + target.legacy)) name = start + target.legacy;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      mismatch.missing.push_back(name);
      continue;
    }
    target.tensor.name = name;
    const Shape expected = target.tensor.shape();
    const Shape& got = entries[found->second].shape;
    if (got != expected) mismatch.mis_shaped.push_back(text({name, " has shape ", got, ", expected ", expected}));
    of_entry_[found->second] = &target.tensor;
  }
  for (const auto& [name, index] : by_name) {
    const bool ignored =
        std::any_of(family.ignored.begin(), family.ignored.end(), [&, &key = name](std::string_view start) { return key.starts_with(start); });
    if (of_entry_[index] == nullptr && !ignored) mismatch.unexpected.push_back(std::string(name));
  }
  mismatch.check(kOp, "the file");
}

void ModelLoader::prepare() {
  match(targets(parameters_));
  model_->allocate();
  prepared_ = true;
}

void ModelLoader::write(std::span<const std::uint8_t> bytes) {
  stream_.give(bytes);
  if (stream_.has_header() && !prepared_) prepare();
  SafetensorsStream::Run run;
  while (stream_.next(run)) {
    if (const CheckpointTensor* tensor = of_entry_[run.entry]) set(*tensor, static_cast<std::size_t>(run.first), run.values);
  }
}

void ModelLoader::set(const CheckpointTensor& tensor, std::size_t first, std::span<const float> values) {
  const std::size_t width = tensor.row_size();
  while (!values.empty()) {
    const bool begun = !row_.empty() || values.size() < width;
    const std::size_t count = begun ? std::min(width - row_.size(), values.size()) : values.size() / width * width;
    const std::span<const float> next = values.first(count);
    if (begun) row_.insert(row_.end(), next.begin(), next.end());
    first += count;
    values = values.subspan(count);
    if (!begun) {
      tensor.set_rows((first - count) / width, next);
    } else if (row_.size() == width) {
      tensor.set_rows(first / width - 1, row_);
      row_.clear();
    }
  }
}

std::unique_ptr<EncoderModel> ModelLoader::finish() {
  stream_.finish();
  if (!prepared_) prepare();
  std::vector<CheckpointTensor> tensors;
  for (Target& target : targets_) tensors.push_back(std::move(target.tensor));
  sort_compactly(tensors, [](const CheckpointTensor& a, const CheckpointTensor& b) { return a.name < b.name; });
  model_->set_tensors(std::move(tensors));
  return std::move(model_);
}

}  // namespace attn::detail
