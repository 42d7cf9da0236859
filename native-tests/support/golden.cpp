#include "support/golden.hpp"

#include <algorithm>
#include <array>
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

/// Generated inputs: testdata/README.md.
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

namespace {

template <class T>
void assign(const nlohmann::json& given, const char* key, T& value) {
  if (given.contains(key)) value = given.at(key).get<T>();
}
template <class T>
void assign(const nlohmann::json& given, const char* key, std::optional<T>& value) {
  if (given.contains(key)) value = given.at(key).get<T>();
}
template <class E, std::size_t N>
void assign(const nlohmann::json& given, const char* key, const std::array<std::string_view, N>& names, E& value) {
  if (!given.contains(key)) return;
  const auto found = std::find(names.begin(), names.end(), given.at(key).get<std::string>());
  if (found == names.end()) throw std::runtime_error("golden file with " + given.at(key).dump() + " as " + key);
  value = static_cast<E>(found - names.begin());
}

constexpr std::array<std::string_view, 3> kPolicies{"zero", "nan", "uniform"};

}  // namespace

AttentionCase GoldenCase::call() const {
  AttentionCase c;
  c.mask = mask("mask");
  c.key_padding_mask = mask("keyPaddingMask");
  c.is_causal = option("isCausal", false);
  if (entry_->at("options").contains("scale")) c.scale = option("scale", 1.0F);
  c.enable_gqa = option("enableGqa", false);
  assign(entry_->at("options"), "fullyMasked", kPolicies, c.fully_masked);
  c.softcap = option("softcap", 0.0F);
  c.query_offset = option("queryOffset", std::int64_t{0});
  if (const auto window = option("window", std::vector<std::int64_t>{}); !window.empty()) c.window = {window.at(0), window.at(1)};
  return c;
}

AttentionCase GoldenCase::inputs() const {
  AttentionCase c = call();
  c.query = tensor("query");
  c.key = lists("inputs", "key") ? tensor("key") : c.query;
  c.value = lists("inputs", "value") ? tensor("value") : c.key;
  return c;
}

void GoldenCase::check_names(const std::set<std::string>& entries, const std::set<std::string>& options, const std::set<std::string>& module) const {
  const std::set<std::string> always{"name", "op", "options", "inputs", "expected"};
  const auto check = [&](const nlohmann::json& object, const std::set<std::string>& known, const char* what) {
    for (const auto& [key, value] : object.items())
      if (!known.contains(key) && !(&object == entry_ && always.contains(key))) throw std::runtime_error("golden " + name() + " has " + what + key);
  };
  check(*entry_, entries, "the unknown entry ");
  check(entry_->at("options"), options, "the unknown option ");
  if (entry_->contains("module")) check(entry_->at("module"), module, "the unknown constructor option ");
  if (entry_->contains("rows"))
    for (const auto& [result, rows] : entry_->at("rows").items())
      if (!entry_->at("expected").contains(result)) throw std::runtime_error("golden " + name() + " has rows of " + result);
}

MultiHeadAttentionOptions GoldenCase::module() const {
  const nlohmann::json& given = entry_->at("module");
  MultiHeadAttentionOptions options;
  assign(given, "embedDim", options.embed_dim);
  assign(given, "numHeads", options.num_heads);
  assign(given, "numKeyValueHeads", options.num_key_value_heads);
  assign(given, "kdim", options.kdim);
  assign(given, "vdim", options.vdim);
  assign(given, "headDim", options.head_dim);
  assign(given, "valueHeadDim", options.value_head_dim);
  assign(given, "bias", options.bias);
  assign(given, "addBiasKv", options.add_bias_kv);
  assign(given, "addZeroAttn", options.add_zero_attn);
  assign(given, "scale", options.scale);
  assign(given, "outProj", options.out_proj);
  return options;
}

TransformerClassifierOptions GoldenCase::encoder() const {
  const nlohmann::json& given = entry_->at("module");
  TransformerClassifierOptions classifier;
  TransformerEncoderOptions& stack = classifier.encoder;
  TransformerEncoderLayerOptions& layer = stack.layer;
  assign(given, "dModel", layer.d_model);
  assign(given, "nhead", layer.nhead);
  assign(given, "dimFeedforward", layer.dim_feedforward);
  assign(given, "dropout", layer.dropout);
  assign(given, "activation", kActivationNames, layer.activation);
  assign(given, "layerNormEps", layer.layer_norm_eps);
  assign(given, "normFirst", layer.norm_first);
  assign(given, "bias", layer.bias);
  assign(given, "norm", kNormKindNames, layer.norm);
  assign(given, "gated", layer.gated);
  assign(given, "numKeyValueHeads", layer.num_key_value_heads);
  if (given.contains("rotary")) {
    const nlohmann::json& rotary = given.at("rotary");
    RotaryOptions& asked = layer.rotary.emplace();
    assign(rotary, "theta", asked.theta);
    assign(rotary, "offset", asked.offset);
    assign(rotary, "interleaved", asked.interleaved);
  }
  if (given.contains("window")) {
    const auto sides = given.at("window").get<std::vector<std::int64_t>>();
    layer.window = {sides.at(0), sides.at(1)};
  }
  assign(given, "softcap", layer.softcap);
  assign(given, "numLayers", stack.num_layers);
  assign(given, "finalNorm", stack.final_norm);
  assign(given, "numClasses", classifier.num_classes);
  assign(given, "pooling", kPoolingNames, classifier.pooling);
  return classifier;
}

EncoderForwardOptions GoldenCase::encoder_call() const {
  const nlohmann::json& given = entry_->at("options");
  EncoderForwardOptions options;
  if (const auto found = mask("mask")) options.mask = mask_of(*found);
  if (const auto found = mask("keyPaddingMask")) options.key_padding_mask = mask_of(*found);
  assign(given, "isCausal", options.is_causal);
  assign(given, "fullyMasked", kPolicies, options.fully_masked);
  assign(given, "outputAttentions", options.output_attentions);
  assign(given, "outputHiddenStates", options.output_hidden_states);
  if (given.contains("trace")) {
    const nlohmann::json& trace = given.at("trace");
    for (const auto& [key, value] : trace.items())
      if (key != "layers" && key != "names") throw std::runtime_error("golden " + name() + " has a trace with " + key);
    EncoderTraceOptions& asked = options.trace.emplace();
    assign(trace, "layers", asked.layers);
    if (trace.contains("names")) {
      std::uint32_t bits = 0;
      for (const std::string traced : trace.at("names")) bits |= Trace{trace_name(traced)}.bits();
      asked.names = Trace::from_bits(bits);
    }
  }
  return options;
}

EmbeddingOptions GoldenCase::embedding(const nlohmann::json& given) const {
  EmbeddingOptions options;
  assign(given, "numEmbeddings", options.num_embeddings);
  assign(given, "embeddingDim", options.embedding_dim);
  assign(given, "paddingIdx", options.padding_idx);
  return options;
}

TraceName trace_name(const std::string& name) {
  for (std::size_t i = 0; i < kTraceNames.size(); ++i)
    if (name == kTraceNames[i]) return static_cast<TraceName>(i);
  throw std::runtime_error("no trace is called " + name);
}

std::string GoldenCase::difference(const std::string& what, Array got) const {
  const Array expected = tensor("expected." + what);
  const double tolerance = golden_tolerance(entry_->at("expected").at(what), expected);
  std::ostringstream text;
  text << what << ": ";
  if (entry_->contains("rows") && entry_->at("rows").contains(what)) {
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
  // torch drops the head dimension of averaged weights.
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
