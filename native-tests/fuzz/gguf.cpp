#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "attn/io/gguf/reader.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/models/model_loader.hpp"
#include "fuzz.hpp"
#include "mutate.hpp"

namespace {

/// More than seeds need. Deeper models are only estimated: layers are built alike.
constexpr std::uint64_t kModelLimit = std::uint64_t{1} << 20;
constexpr std::int64_t kMostLayers = 4;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attn::set_memory_limit(kModelLimit);
  std::istringstream file(std::string(data, data + size));
  std::optional<attn::detail::gguf::Reader> reader;
  attn::fuzz::succeeds([&] { reader.emplace(file, size); });
  if (!reader) return 0;
  attn::fuzz::succeeds([&] {
    const auto tokenizer = reader->read("tokenizer.json"), config = reader->read("tokenizer_config.json");
    if (tokenizer) attn::Tokenizer::parse(*tokenizer, *config).encode_texts(std::vector<std::string>{"ab a"});
  });
  std::uint64_t written = 0;
  reader->write_weights([&](attn::fuzz::Bytes piece) { written += piece.size(); });
  attn::fuzz::require(written <= 16 * size + 65536, "weights take at most eight times the bytes of the file, and their header");
  attn::fuzz::succeeds([&] {
    const auto config = reader->read("config.json"), generation = reader->read("generation_config.json");
    attn::fuzz::require(config && generation, "every file has settings");
    const attn::detail::ModelFiles files{.config = *config, .generation = *generation};
    if (attn::detail::read_model_config(files).num_hidden_layers > kMostLayers) attn::set_memory_limit(1);
    attn::detail::ModelLoader loader(files);
    reader->write_weights([&](attn::fuzz::Bytes piece) { loader.write(piece); });
    loader.finish();
  });
  return 0;
}

/// Overwrites numbers: another length would make the rest unreadable.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  attn::fuzz::Random random(seed);
  if (size < 16 || random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  constexpr std::array<std::uint64_t, 14> kNumbers{
      0, 1, 2, 3, 4, 8, 12, 31, 32, 255, 1U << 16, 0x7fffffff, std::uint64_t{1} << 61, ~std::uint64_t{0}};
  const std::uint64_t number = kNumbers[random() % kNumbers.size()];
  const std::size_t widths[] = {1, 4, 8}, width = widths[random() % 3];
  std::memcpy(data + random() % (size - width + 1), &number, width);
  return size;
}
