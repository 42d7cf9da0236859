// Caches longer than a panel and a block of keys; results: decoders_test.cpp.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>

#include "attn/kernels/kernels.hpp"
#include "models/edit.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_key_value_cache_test {

using Ids = std::vector<std::int64_t>;

Ids ids_of(std::size_t count, std::int64_t seed) {
  Ids ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(5 + (static_cast<std::int64_t>(i) * 31 + seed * 7) % 300);
  return ids;
}

/// (1,L,V) of ids [first, end).
Array logits_of(const EncoderModel& model, const Ids& ids, std::size_t first, std::size_t end, KeyValueCache* cache) {
  const std::span<const std::int64_t> part = std::span(ids).subspan(first, end - first);
  const detail::ModelInputs inputs{.shape = {1, std::ssize(part)}, .input_ids = part};
  const detail::ModelPlan plan = model.plan("forward", inputs, {.cache = cache});
  Array hidden(plan.encoder.output), logits(plan.logits);
  model.run(plan, inputs, {hidden.data.data(), {}, {}}, logits.data.data());
  return logits;
}

Array rows_of(const Array& x, std::size_t first, std::size_t end) {
  const std::int64_t width = x.dims[2];
  const auto at = [&](std::size_t row) { return x.data.begin() + static_cast<std::ptrdiff_t>(row) * width; };
  return Array({1, static_cast<std::int64_t>(end - first), width}, std::vector<float>(at(first), at(end)));
}

std::unique_ptr<EncoderModel> long_model(const std::string& name, std::int64_t window) {
  return load(with_config(read_checkpoint(testdata("models/" + name)), [&](nlohmann::json& config) {
    config["max_position_embeddings"] = 1100;
    if (window > 0) config["sliding_window"] = window;
  }));
}

TEST_CASE("tokens one by one give the bits of a single forward in every panel and block of keys", "[models]") {
  const auto [name, window] = GENERATE(table<std::string, std::int64_t>(
      {{"tiny-llama", 0}, {"tiny-gemma-2", 5}, {"tiny-gemma-2", 100}, {"tiny-gemma-3", 64}, {"tiny-mistral", 65}, {"tiny-neox", 0}}));
  CAPTURE(name, window);
  const std::unique_ptr<EncoderModel> model = long_model(name, window);
  constexpr std::size_t kTokens = 1050, kSlow = 70, kNearBlock = 1020;
  const Ids ids = ids_of(kTokens, 0);
  const Array whole = logits_of(*model, ids, 0, kTokens, nullptr);
  KeyValueCache cache = model->make_cache(1, kTokens);
  std::size_t first = 0;
  while (first < kTokens) {
    const std::size_t end = first == kSlow ? kNearBlock : first + 1;
    CAPTURE(first);
    REQUIRE_THAT(logits_of(*model, ids, first, end, &cache), HasBitsOf(rows_of(whole, first, end)));
    first = end;
  }
}

TEST_CASE("a cache that is cut anywhere in a panel continues with other tokens", "[models]") {
  const std::unique_ptr<EncoderModel> model = long_model("tiny-llama", 0);
  const std::size_t nr = kernels::best().nr, most = 4 * nr;
  const Ids ids = ids_of(most, 0), others = ids_of(most, 3);
  KeyValueCache cache = model->make_cache(1, static_cast<std::int64_t>(most));
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, nr - 1, nr, nr + 1, 2 * nr - 1, 2 * nr, 2 * nr + 1}) {
    CAPTURE(cut);
    cache.truncate(0);
    logits_of(*model, ids, 0, most, &cache);
    cache.truncate(static_cast<std::int64_t>(cut));
    Ids mixed(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
    mixed.insert(mixed.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(nr + 2));
    const Array whole = logits_of(*model, mixed, 0, mixed.size(), nullptr);
    for (std::size_t i = cut; i < mixed.size(); ++i) REQUIRE_THAT(logits_of(*model, mixed, i, i + 1, &cache), HasBitsOf(rows_of(whole, i, i + 1)));
  }
}

/// Values times 2^exponent, divided in W_O; near 0 in the first layer for tokens from `small` on.
std::unique_ptr<EncoderModel> model_with_large_values(int exponent, std::size_t small) {
  const auto scale = [](FileTensor& tensor, int by, std::size_t first = 0) {
    std::vector<float> values = tensor.values();
    for (std::size_t i = first; i < values.size(); ++i) values[i] = std::ldexp(values[i], by);
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  };
  return load(with_tensors(read_checkpoint(testdata("models/tiny-llama")), [&](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name.find("v_proj.weight") != std::string::npos) scale(tensor, exponent);
      if (tensor.name.find("o_proj.weight") != std::string::npos) scale(tensor, -exponent);
      // Far below RMS norm's eps.
      if (tensor.name.find("embed_tokens") != std::string::npos) scale(tensor, -60, small * static_cast<std::size_t>(tensor.shape[1]));
    }
  }));
}

TEST_CASE("values near the largest float give the same bits with a cache, also after others were cut off", "[models]") {
  const int exponent = GENERATE(0, 97, 126, 127, 128, 129);
  CAPTURE(exponent);
  constexpr std::int64_t kSmall = 305, kTokens = 40;
  const std::unique_ptr<EncoderModel> model = model_with_large_values(exponent, kSmall);
  const Ids large = ids_of(kTokens, 1), small(30, kSmall);
  for (const std::int64_t kept : {0, 3, 17}) {
    CAPTURE(kept);
    KeyValueCache cache = model->make_cache(1, kTokens);
    const auto check = [&](const Ids& ids) {
      const Array whole = logits_of(*model, ids, 0, ids.size(), nullptr);
      for (auto i = static_cast<std::size_t>(cache.length()); i < ids.size(); ++i)
        REQUIRE_THAT(logits_of(*model, ids, i, i + 1, &cache), HasBitsOf(rows_of(whole, i, i + 1)));
    };
    check(small);
    cache.truncate(kept);
    Ids mixed(small.begin(), small.begin() + kept);
    mixed.insert(mixed.end(), large.begin(), large.end() - kept);
    check(mixed);
    cache.truncate(kept);
    check(small);
  }
}

}  // namespace models_key_value_cache_test
}  // namespace attn::test
