#include <utility>

#include "attn/models/encoder_model.hpp"
#include "attn/models/family.hpp"

namespace attn {
void EncoderModel::set_head(std::vector<std::string> labels, std::uint64_t seed) {
  const std::int64_t E = config_.hidden_size, C = static_cast<std::int64_t>(labels.size());
  MemoryEstimate memory("the head");
  memory.add("its weights", {E + C + 64, E});
  memory.check("its weights");

  const std::string prefix(config_.family->prefix);
  detail::StateTensors tensors;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.pieces.front().name.starts_with("classifier")) continue;
    // Files of a base model may omit the prefix.
    tensors.emplace(name.starts_with(prefix) ? name : prefix + name, tensor);
  }

  config_.task = Task::text_classification;
  config_.labels = std::move(labels);
  config_.classification_function = config_.text_function =
      C == 1 ? detail::ClassificationFunction::sigmoid : detail::ClassificationFunction::softmax;
  is_head_new_ = true;
  head_ = detail::Head(config_);
  std::uint32_t stream = 0;
  const detail::StateTensors all = parameters();
  for (const auto& [name, tensor] : all) {
    if (!name.starts_with("classifier")) continue;
    detail::StateTensor own = tensor;
    own.pieces.front().stream = stream++;
    own.pieces.front().allocate();
    detail::initialize({{name, own}}, {.scheme = InitScheme::normal, .seed = seed, .std = 0.02});
  }
  detail::for_each_part_of_head(config_, [&](detail::HeadPart part, std::string_view of_file, const std::string& ours, bool bias) {
    const std::string name = (part == detail::HeadPart::pooler ? prefix : "") + std::string(of_file);
    tensors.emplace(name + ".weight", all.at(ours + ".weight"));
    if (bias) tensors.emplace(name + ".bias", all.at(ours + ".bias"));
  });
  set_tensors(std::move(tensors));
}

}  // namespace attn
