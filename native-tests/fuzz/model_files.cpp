// config.json, header and data of model.safetensors, separated by zero bytes: loaded in pieces, used, saved as int8,
// loaded again.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "attn/models/model_loader.hpp"
#include "attn/models/model_writer.hpp"
#include "fuzz.hpp"
#include "mutate.hpp"

namespace {

void use(const attn::EncoderModel& model) {
  const std::int64_t most = std::min<std::int64_t>(model.config().max_length, 5);
  const std::vector<std::int64_t> ids(static_cast<std::size_t>(most), std::min<std::int64_t>(model.config().vocab_size - 1, 2));
  const attn::detail::ModelInputs inputs{{1, most}, ids, {}, nullptr};
  const attn::detail::ModelEmbedOptions options{.poolings = {attn::Pooling::mean, attn::Pooling::weightedmean}, .normalize = true};
  std::vector<float> y(static_cast<std::size_t>(attn::checked_size(model.check_embed("embed", inputs, options), "embed", "y")));
  model.embed(inputs, options, y.data());
  if (model.config().num_labels() == 0) return;
  y.resize(static_cast<std::size_t>(attn::checked_size(model.check_classify("classify", inputs), "classify", "y")));
  model.classify(inputs, y.data());
  for (const float p : y) attn::fuzz::require(std::isnan(p) || (p >= 0 && p <= 1), "probabilities lie between 0 and 1");
}

std::string written(const attn::EncoderModel& model) {
  std::ostringstream file;
  attn::detail::write_weights(model, attn::FileWeights::int8, file);
  return file.str();
}

std::span<const std::uint8_t> bytes_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

void store(const attn::EncoderModel& model, std::span<const std::uint8_t> config) {
  attn::detail::check_weights_as(model, attn::FileWeights::int8);
  const std::string file = written(model), its_config = attn::detail::config_as(config, model, attn::FileWeights::int8);
  attn::detail::ModelLoader loader({.config = bytes_of(its_config)});
  loader.write(bytes_of(file));
  attn::fuzz::require(written(*loader.finish()) == file, "int8 files are read to the same bits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = attn::fuzz::split({data, size}, 3);
  std::vector<std::uint8_t> file(8);
  const std::uint64_t header_size = parts[1].size();
  std::memcpy(file.data(), &header_size, 8);
  file.insert(file.end(), parts[1].begin(), parts[1].end());
  file.insert(file.end(), parts[2].begin(), parts[2].end());
  constexpr std::size_t kPieces[] = {1, 13, 512, 1 << 20};
  const std::size_t piece = kPieces[size % 4];
  attn::fuzz::succeeds([&] {
    const std::optional<bool> kinds[] = {std::nullopt, true, false};
    attn::detail::ModelLoader loader({.config = parts[0]}, kinds[size / 4 % 3]);
    for (std::size_t at = 0; at < file.size(); at += piece)
      loader.write(std::span<const std::uint8_t>(file).subspan(at, std::min(piece, file.size() - at)));
    const auto model = loader.finish();
    use(*model);
    store(*model, parts[0]);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  return attn::fuzz::mutate_parts(data, size, max_size, seed, 3, 2);
}
