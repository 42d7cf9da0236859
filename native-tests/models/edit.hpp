#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/checkpoint.hpp"

namespace attn::test {

inline std::vector<std::uint8_t> bytes_of(const nlohmann::json& json) {
  const std::string text = json.dump();
  return {text.begin(), text.end()};
}

inline Checkpoint with_config(Checkpoint checkpoint, const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json config = nlohmann::json::parse(checkpoint.config.begin(), checkpoint.config.end());
  change(config);
  checkpoint.config = bytes_of(config);
  return checkpoint;
}
inline Checkpoint with_member(const Checkpoint& checkpoint, const std::string& name, const nlohmann::json& value) {
  return with_config(checkpoint, [&](nlohmann::json& config) { config[name] = value; });
}

struct FileTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;

  std::vector<float> values() const {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

inline std::vector<FileTensor> read_tensors(const std::vector<std::uint8_t>& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const auto data = file.begin() + 8 + static_cast<std::ptrdiff_t>(size);
  std::vector<std::pair<std::int64_t, FileTensor>> tensors;
  const nlohmann::json header = nlohmann::json::parse(file.begin() + 8, data);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::int64_t first = entry.at("data_offsets")[0], last = entry.at("data_offsets")[1];
    tensors.push_back({first, {name, entry.at("dtype"), entry.at("shape"), {data + first, data + last}}});
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<FileTensor> out;
  for (auto& [first, tensor] : tensors) out.push_back(std::move(tensor));
  return out;
}

inline std::vector<std::uint8_t> write_tensors(const std::vector<FileTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::vector<std::uint8_t> data;
  for (const FileTensor& tensor : tensors) {
    const std::size_t first = data.size();
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {first, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::vector<std::uint8_t> file(8);
  std::memcpy(file.data(), &size, sizeof size);
  file.insert(file.end(), text.begin(), text.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

inline Checkpoint with_tensors(Checkpoint checkpoint, const std::function<void(std::vector<FileTensor>&)>& change) {
  std::vector<FileTensor> tensors = read_tensors(checkpoint.weights);
  change(tensors);
  checkpoint.weights = write_tensors(tensors);
  return checkpoint;
}

inline FileTensor& named(std::vector<FileTensor>& tensors, const std::string& name) {
  for (FileTensor& tensor : tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

inline Batch some_ids(std::int64_t rows, std::int64_t length, std::int64_t most) {
  Batch batch;
  batch.shape = {rows, length};
  for (std::int64_t i = 0; i < rows * length; ++i) batch.ids.push_back(2 + (i * 37 + i / length) % (most - 2));
  return batch;
}

inline Array run(const Checkpoint& checkpoint, std::size_t piece = 1 << 20) {
  const auto model = load(checkpoint, piece);
  const ModelOutput output = forward(*model, some_ids(2, 9, model->config().vocab_size), false);
  Array all({static_cast<std::int64_t>(output.last_hidden_state.data.size() + output.logits.data.size())}, output.last_hidden_state.data);
  all.data.insert(all.data.end(), output.logits.data.begin(), output.logits.data.end());
  return all;
}

}  // namespace attn::test
