#include "support/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "attn/io/safetensors.hpp"
#include "support/call.hpp"
#include "support/matchers.hpp"

namespace attn::test {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

GoldenFile read_golden(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = bytes_of(path);
  GoldenFile golden;
  golden.tensors = arrays_of(parse_safetensors(bytes));
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  golden.header = nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(size));
  golden.metadata = golden.header.at("__metadata__");
  return golden;
}

namespace {

/// Inputs too large to store: value i from a seed, as testdata/README.md describes.
std::uint32_t hash32(std::uint32_t seed, std::uint32_t i) {
  std::uint32_t h = seed * 0x9E3779B1U + i;
  h = (h ^ h >> 16) * 0x85EBCA6BU;
  h = (h ^ h >> 13) * 0xC2B2AE35U;
  return h ^ h >> 16;
}
double signed_unit(std::uint32_t seed, std::uint32_t i) { return (hash32(seed, i) >> 8) * 0x1p-23 - 1; }

Array generate(const nlohmann::json& described) {
  Shape dims;
  for (const std::int64_t dim : described.at("dims")) dims.push_back(dim);
  Array x(dims);
  const bool normal = described.at("kind") == "normal";
  const std::uint32_t seed = described.at("seed");
  for (std::uint32_t i = 0; i < x.data.size(); ++i) {
    double sum = 0;
    for (std::uint32_t k = 0; normal && k < 12; ++k) sum += signed_unit(seed, 12 * i + k);
    x.data[i] = static_cast<float>(normal ? sum / 2 : signed_unit(seed, i) * described.at("factor").get<double>());
  }
  return x;
}

}  // namespace

Array GoldenCase::tensor(const std::string& what) const {
  const auto found = file_->tensors.find(name() + '/' + what);
  if (found != file_->tensors.end()) return found->second;
  if (entry_->contains("generated") && entry_->at("generated").contains(what)) return generate(entry_->at("generated").at(what));
  throw std::runtime_error("golden file without " + name() + '/' + what);
}

bool GoldenCase::lists(const char* list, const std::string& what) const {
  if (!entry_->contains(list)) return false;
  const nlohmann::json& names = entry_->at(list);
  return std::find(names.begin(), names.end(), what) != names.end();
}

std::map<std::string, Array> GoldenCase::state() const {
  std::map<std::string, Array> state;
  for (const std::string parameter : entry_->at("state")) state.emplace(parameter, tensor("state." + parameter));
  return state;
}

std::optional<MaskInput> GoldenCase::mask(const char* key) const {
  if (!entry_->contains(key)) return {};
  const nlohmann::json& mask = entry_->at(key);
  const std::string kind = mask.at("kind");
  for (const MaskKind candidate : {MaskKind::attend, MaskKind::block, MaskKind::additive})
    if (kind == to_string(candidate)) return MaskInput{candidate, tensor(mask.at("tensor"))};
  throw std::runtime_error("golden mask of kind " + kind);
}

AttentionCase GoldenCase::call() const {
  AttentionCase c;
  c.mask = mask("mask");
  c.key_padding_mask = mask("keyPaddingMask");
  c.is_causal = option("isCausal", false);
  if (entry_->at("options").contains("scale")) c.scale = option("scale", 1.0F);
  c.enable_gqa = option("enableGqa", false);
  const std::string policy = option("fullyMasked", std::string("zero"));
  for (const FullyMasked candidate : {FullyMasked::zero, FullyMasked::nan, FullyMasked::uniform})
    if (policy == to_string(candidate)) c.fully_masked = candidate;
  return c;
}

AttentionCase GoldenCase::inputs() const {
  AttentionCase c = call();
  c.query = tensor("query");
  c.key = lists("inputs", "key") ? tensor("key") : c.query;
  c.value = lists("inputs", "value") ? tensor("value") : c.key;
  return c;
}

MultiHeadAttentionOptions GoldenCase::module() const {
  const nlohmann::json& given = entry_->at("module");
  MultiHeadAttentionOptions options{.embed_dim = given.at("embedDim"), .num_heads = given.at("numHeads")};
  for (const auto& [key, value] : given.items()) {
    if (key == "kdim")
      options.kdim = value.get<std::int64_t>();
    else if (key == "vdim")
      options.vdim = value.get<std::int64_t>();
    else if (key == "bias")
      options.bias = value;
    else if (key == "scale")
      options.scale = value.get<float>();
    else if (key == "outProj")
      options.out_proj = value;
    else if (key != "embedDim" && key != "numHeads")
      throw std::runtime_error("golden module with " + key);
  }
  return options;
}

std::string GoldenCase::difference(const std::string& what, Array got) const {
  const Array expected = tensor("expected." + what);
  const double tolerance = golden_tolerance(entry_->at("expected").at(what), expected);
  std::ostringstream text;
  text << what << ": ";
  if (entry_->contains("rows") && entry_->at("rows").contains(what)) {  // large: its dims, some rows and the sum are stored
    const nlohmann::json& stored = entry_->at("rows").at(what);
    Shape dims;
    for (const std::int64_t dim : stored.at("dims")) dims.push_back(dim);
    if (got.dims != dims) {
      text << "has dims " << to_string(got.dims) << ", expected " << to_string(dims);
      return text.str();
    }
    double sum = 0;
    for (const float value : got.data) sum += value;
    if (!(std::abs(sum - stored.at("sum").get<double>()) <= tolerance * static_cast<double>(got.data.size()))) {
      text << "adds up to " << sum << ", expected " << stored.at("sum");
      return text.str();
    }
    const std::int64_t width = dims.back(0);
    got.dims = {static_cast<std::int64_t>(got.data.size()) / width, width};
    got = take(got, stored.at("rows").get<std::vector<std::int64_t>>());
  }
  // Averaged weights keep a dimension of 1 for the heads; torch drops it.
  if (what == "weights" && option("averageWeights", false) && got.data.size() == expected.data.size()) got.dims = expected.dims;
  const IsCloseTo matcher = is_within(tolerance, expected);
  if (matcher.match(got)) return {};
  text << matcher.describe();
  return text.str();
}

double golden_tolerance(double torch_error, const Array& expected) {
  double largest = 1;
  for (const float value : expected.data)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return (2 * torch_error + 1e-6) * largest;
}

}  // namespace attn::test
