#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "attn/models/text_model.hpp"
#include "models/checkpoint.hpp"
#include "support/tensors.hpp"

namespace attn::test {

/// Twice golden_tolerance, because at least six layers follow each other.
inline std::string difference(const GoldenCase& golden, const std::string& what, const Array& got) {
  const Array expected = golden.tensor("expected." + what);
  const double tolerance = 2 * golden_tolerance(golden.entry().at("expected").at(what), expected);
  if (got.dims != expected.dims) return what + " has shape " + to_string(got.dims) + ", expected " + to_string(expected.dims);
  double most = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    const double error = std::abs(static_cast<double>(got.data[i]) - static_cast<double>(expected.data[i]));
    if (!(error <= most)) most = error;
  }
  return most <= tolerance ? "" : what + " differs by " + std::to_string(most) + ", allowed " + std::to_string(tolerance);
}

/// "hiddenStates.1" -> "hiddenStates", "1"
inline std::pair<std::string, std::string> split_name(const std::string& what) {
  const std::size_t dot = what.find('.');
  return {what.substr(0, dot), dot == std::string::npos ? "" : what.substr(dot + 1)};
}

/// The result of a forward by its name in the goldens; empty if it is not one.
inline Array result_of(const ModelOutput& output, const std::string& what) {
  const auto [start, rest] = split_name(what);
  if (what == "lastHiddenState") return output.last_hidden_state;
  if (what == "logits") return output.logits;
  if (start == "hiddenStates") return output.hidden_states.at(std::stoul(rest));
  if (start == "attentions") return output.attentions.at(std::stoul(rest));
  return {};
}

inline Batch batch_of(const GoldenCase& golden) {
  Batch batch;
  const Array ids = golden.tensor("input_ids"), mask = golden.tensor("attention_mask");
  batch.shape = ids.dims;
  for (const float id : ids.data) batch.ids.push_back(static_cast<std::int64_t>(id));
  if (golden.lists("inputs", "token_type_ids"))
    for (const float type : golden.tensor("token_type_ids").data) batch.types.push_back(static_cast<std::int64_t>(type));
  batch.mask = Mask::attend(tensor_of<2>(mask));
  return batch;
}

inline TextForwardOptions forward_options(const nlohmann::json& entry) {
  TextForwardOptions options;
  const nlohmann::json given = entry.value("forward", nlohmann::json::object());
  for (const auto& [name, value] : given.items())
    if (name == "isCausal") {
      options.is_causal = value;
    } else if (name == "headMask") {
      std::vector<Array> rows;
      for (const std::vector<float> row : value) rows.emplace_back(Shape{std::ssize(row)}, row);
      options.head_mask = tensor_of<2>(stack(rows));
    } else {
      throw std::runtime_error("no option " + name);
    }
  return options;
}

inline std::vector<std::string> checkpoints() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testdata("models")))
    if (const auto& path = entry.path(); path.extension() == ".safetensors" && std::filesystem::exists(path.parent_path() / path.stem()))
      names.push_back(path.stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline nlohmann::json cases_of(const GoldenFile& file) { return nlohmann::json::parse(file.metadata.at("cases").get<std::string>()); }

template <class T>
Array floats_of(const T& tensor) {
  return {to_shape(tensor.shape()), std::vector<float>(tensor.begin(), tensor.end())};
}

}  // namespace attn::test
