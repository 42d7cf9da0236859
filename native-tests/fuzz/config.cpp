// Separated by zero bytes, empty if missing: config.json, modules.json, 1_Pooling/config.json,
// sentence_bert_config.json, tokenizer_config.json, config_sentence_transformers.json, and config.json and
// model.safetensors of 2_Dense, which a second Dense would share.
#include "attn/models/model_loader.hpp"
#include "attn/tensor/shape.hpp"
#include "fuzz.hpp"
#include "mutate.hpp"

namespace {

/// Twice the memory of the seeds. Deeper models are only estimated: layers are built alike.
constexpr std::uint64_t kModelLimit = std::uint64_t{1} << 20;
constexpr std::int64_t kMostLayers = 4;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using attn::fuzz::require;
  attn::set_memory_limit(kModelLimit);
  const auto parts = attn::fuzz::split({data, size}, 8);
  const auto file = [&](std::size_t i) { return parts[i].empty() ? attn::detail::ModelFiles::File() : attn::detail::ModelFiles::File(parts[i]); };
  const attn::detail::ModelFiles files{
      parts[0], file(1), file(2), file(3), file(4), file(5), std::vector(2, attn::detail::ModelFiles::Dense{file(6), file(7)})};
  attn::fuzz::succeeds([&] {
    const attn::detail::ModelConfig config = attn::detail::read_model_config(files);
    require(config.hidden_size > 0 && (config.head_dim > 0 || config.hidden_size % config.num_attention_heads == 0), "heads divide the hidden size");
    require(config.vocab_size > 0 && config.num_hidden_layers > 0 && config.intermediate_size > 0, "sizes are positive");
    require(config.default_length > 0 && config.default_length <= config.max_length, "the default length is one that the model takes");
    if (config.num_hidden_layers > kMostLayers) attn::set_memory_limit(1);
    attn::detail::ModelLoader loader(files);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  return attn::fuzz::mutate_parts(data, size, max_size, seed, 8, 7);
}
