#include <algorithm>
#include <utility>

#include "attn/models/encoder_model.hpp"
#include "attn/models/family.hpp"
#include "attn/ops/init.hpp"
#include "attn/tensor/sort.hpp"

namespace attn {
namespace {

constexpr double kStd = 0.02;

/// Numbers of a new head's parameter.
void draw(const std::string& name, const detail::Parameter& parameter, std::uint64_t seed, std::uint32_t place) {
  std::vector<float> values(parameter.size());
  if (parameter.shape().rank() == 2)
    Random(seed, place).normal(values.data(), values.size(), kStd);
  else if (name == "classifier_norm.weight")
    std::fill(values.begin(), values.end(), 1.0F);
  parameter.allocate();
  parameter.set_rows(0, values);
}

}  // namespace

void EncoderModel::set_head(std::vector<std::string> labels, std::uint64_t seed) {
  const std::int64_t E = config_.hidden_size, C = static_cast<std::int64_t>(labels.size());
  MemoryEstimate memory("the head");
  memory.add("its weights", {E + C + 64, E});
  memory.check("its weights");

  const std::string prefix(config_.family->prefix);
  const detail::Parameters before = parameters();
  const auto is_of_head = [&](const detail::CheckpointTensor& tensor) {
    return std::any_of(before.begin(), before.end(),
                       [&](const auto& entry) { return entry.first.starts_with("classifier") && entry.second == tensor.parts.front(); });
  };
  std::vector<detail::CheckpointTensor> tensors;
  for (const detail::CheckpointTensor& tensor : tensors_) {
    if (is_of_head(tensor)) continue;
    tensors.push_back(tensor);
    // The base model's files may leave it out, those of a model with a head have it.
    if (std::string& name = tensors.back().name; !name.starts_with(prefix)) name.insert(0, prefix);
  }

  config_.task = Task::text_classification;
  config_.labels = std::move(labels);
  config_.classification_function = config_.text_function =
      C == 1 ? detail::ClassificationFunction::sigmoid : detail::ClassificationFunction::softmax;
  is_head_new_ = true;
  head_ = detail::Head(config_);
  std::uint32_t place = 0;
  const detail::Parameters all = parameters();
  for (const auto& [name, parameter] : all)
    if (name.starts_with("classifier")) draw(name, parameter, seed, place++);
  detail::for_each_part_of_head(config_, [&](detail::HeadPart part, std::string_view of_file, const std::string& ours, bool bias) {
    const std::string name = (part == detail::HeadPart::pooler ? prefix : "") + std::string(of_file);
    tensors.push_back({name + ".weight", {all.at(ours + ".weight")}, part != detail::HeadPart::norm});
    if (bias) tensors.push_back({name + ".bias", {all.at(ours + ".bias")}});
  });
  detail::sort_compactly(tensors, [](const detail::CheckpointTensor& a, const detail::CheckpointTensor& b) { return a.name < b.name; });
  set_tensors(std::move(tensors));
}

}  // namespace attn
