// ONNX's backend node tests (testdata/onnx.md).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>
#include <set>

#include "attn/attn.hpp"
#include "support/call.hpp"
#include "support/call_arrays.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace onnx_test {

using Arrays = std::map<std::string, Array>;

/// Unread inputs and attributes fail the test.
class OnnxCase {
 public:
  OnnxCase(const GoldenFile& file, const nlohmann::json& entry) : file_(&file), entry_(&entry) {
    for (const char* list : {"inputs", "attributes"})
      for (const auto& [name, value] : entry.at(list).items()) unread_.insert(name);
  }

  const nlohmann::json& entry() const { return *entry_; }
  const nlohmann::json& expected() const { return entry_->at("expected"); }
  const Array& stored(const std::string& name) const { return file_->tensors.at(entry_->at("name").get<std::string>() + '/' + name); }
  std::optional<Array> optional(const std::string& name) {
    unread_.erase(name);
    return entry_->at("inputs").contains(name) ? std::optional(stored(name)) : std::nullopt;
  }
  Array input(const std::string& name) { return optional(name).value(); }
  std::string type(const std::string& name) const { return entry_->at("inputs").at(name); }
  template <class T>
  std::optional<T> attribute(const std::string& name) {
    unread_.erase(name);
    const nlohmann::json& attributes = entry_->at("attributes");
    return attributes.contains(name) ? std::optional(attributes.at(name).get<T>()) : std::nullopt;
  }
  const std::set<std::string>& unread() const { return unread_; }

 private:
  const GoldenFile* file_;
  const nlohmann::json* entry_;
  std::set<std::string> unread_;
};

std::vector<Arrays> only(const std::string& name, const Array& result) {
  Arrays results;
  results.emplace(name, result);
  return {results};
}

using Index = std::int64_t;

Array part(const Array& x, std::size_t axis, Index from, Index to) {
  Shape dims = x.dims;
  std::size_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < dims.rank(); ++i) (i < axis ? outer : inner) *= static_cast<std::size_t>(dims[i]);
  inner /= static_cast<std::size_t>(dims[axis]);
  const std::size_t all = static_cast<std::size_t>(dims[axis]) * inner, first = static_cast<std::size_t>(from) * inner,
                    last = static_cast<std::size_t>(to) * inner;
  dims[axis] = to - from;
  Array result(dims, std::vector<float>());
  for (std::size_t o = 0; o < outer; ++o)
    result.data.insert(result.data.end(), x.data.begin() + static_cast<std::ptrdiff_t>(o * all + first),
                       x.data.begin() + static_cast<std::ptrdiff_t>(o * all + last));
  return result;
}

Array joined(const std::vector<Array>& parts, std::size_t axis) {
  Shape dims = parts.at(0).dims;
  dims[axis] = 0;
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(dims[i]);
  for (const Array& each : parts) dims[axis] += each.dims[axis];
  Array result(dims, std::vector<float>());
  for (std::size_t o = 0; o < outer; ++o)
    for (const Array& each : parts) {
      const auto size = static_cast<std::ptrdiff_t>(each.data.size() / outer), at = static_cast<std::ptrdiff_t>(o) * size;
      result.data.insert(result.data.end(), each.data.begin() + at, each.data.begin() + at + size);
    }
  return result;
}

Array swapped(const Array& x) {
  const Index B = x.dims[0], M = x.dims[1], N = x.dims[2], D = x.dims[3];
  Array y({B, N, M, D});
  std::size_t to = 0;
  for (Index b = 0; b < B; ++b)
    for (Index n = 0; n < N; ++n)
      for (Index m = 0; m < M; ++m)
        for (Index d = 0; d < D; ++d) y.data[to++] = x.data[static_cast<std::size_t>(((b * M + m) * N + n) * D + d)];
  return y;
}

Array by_head(const Array& x, const std::optional<Index>& heads) {
  if (x.dims.rank() == 4) return x;
  return swapped(reshaped(x, {x.dims[0], x.dims[1], heads.value(), x.dims[2] / heads.value()}));
}

Array merged(const Array& x) { return reshaped(swapped(x), {x.dims[0], x.dims[2], x.dims[1] * x.dims[3]}); }

struct Attending {
  Array query, key, value;
  std::optional<MaskInput> mask;
  std::vector<Index> lengths;  ///< nonpad_kv_seqlen: keys per row of the batch; empty: all
  std::optional<Array> past_key, past_value;
  AttentionOptions options;  ///< window and is_causal need positions
};

std::optional<MaskInput> mask_of_case(OnnxCase& c, Index S) {
  const std::optional<Array> given = c.optional("attn_mask");
  if (!given) return {};
  const MaskKind kind = c.type("attn_mask") == "bool" ? MaskKind::attend : MaskKind::additive;
  const Index width = given->dims.back(0);
  Shape dims;
  if (given->dims.rank() == 3) dims.push_back(1);
  for (std::size_t i = 0; i + 1 < given->dims.rank(); ++i) dims.push_back(given->dims[i]);
  dims.push_back(S);
  Array padded(dims, kind == MaskKind::attend ? 0 : -kInfinity);
  for (std::size_t i = 0; i < given->data.size(); ++i) {
    const auto row = static_cast<Index>(i) / width, j = static_cast<Index>(i) % width;
    padded.data[static_cast<std::size_t>(row * S + j)] = given->data[i];
  }
  return MaskInput{kind, padded};
}

/// Queries are aligned with the end of their keys.
MaskInput mask_of_places(const Attending& a) {
  const Index B = a.query.dims[0], L = a.query.dims[2], S = a.key.dims[2];
  Shape from{1, 1, 1, 1};
  if (a.mask)
    for (std::size_t i = 0; i < a.mask->data.dims.rank(); ++i) from[4 - a.mask->data.dims.rank() + i] = a.mask->data.dims[i];
  const MaskKind kind = a.mask ? a.mask->kind : MaskKind::attend;
  const Window window = a.options.window.value_or(Window{});
  Array mask({B, from[1], L, S});
  std::size_t to = 0;
  for (Index b = 0; b < B; ++b)
    for (Index h = 0; h < from[1]; ++h)
      for (Index i = 0; i < L; ++i)
        for (Index j = 0; j < S; ++j) {
          const Index distance = j - (i + a.lengths[static_cast<std::size_t>(b)] - L);
          const bool seen = (!a.options.is_causal || distance <= 0) && (window.left < 0 || -distance <= window.left) &&
                            (window.right < 0 || distance <= window.right);
          const auto place = [&](std::size_t axis, Index index) { return from[axis] == 1 ? 0 : index; };
          const Index at = ((place(0, b) * from[1] + place(1, h)) * from[2] + place(2, i)) * from[3] + place(3, j);
          const float value = a.mask ? a.mask->data.data[static_cast<std::size_t>(at)] : 1;
          mask.data[to++] = seen ? value : kind == MaskKind::additive ? -kInfinity : 0;
        }
  return {kind, mask};
}

Arrays call(const Attending& a, AttentionOptions options) {
  if (a.mask && !options.mask) options.mask = mask_of(*a.mask);
  if (a.past_key) options.past = KeyValueView(view<4>(*a.past_key), view<4>(*a.past_value));
  const auto result = scaled_dot_product_attention(view<4>(a.query), view<4>(a.key), view<4>(a.value), options);
  Arrays arrays{{"Y", array_of(result.output)}};
  if (result.trace) arrays.emplace("qk_matmul_output", array_of(result.trace->begin()->second));
  if (result.present) {
    arrays.emplace("present_key", array_of(result.present->key));
    arrays.emplace("present_value", array_of(result.present->value));
  }
  return arrays;
}

std::vector<Arrays> attend(const Attending& a) {
  if (a.lengths.empty()) return {call(a, a.options)};
  const Index B = a.query.dims[0], L = a.query.dims[2], S = a.key.dims[2];
  Array seen({B, S});
  for (Index b = 0; b < B; ++b) std::fill_n(seen.data.begin() + b * S, a.lengths[static_cast<std::size_t>(b)], 1.0F);
  AttentionOptions options = a.options;
  options.key_padding_mask = mask_of({MaskKind::attend, seen});
  if (std::all_of(a.lengths.begin(), a.lengths.end(), [&](Index length) { return length == a.lengths[0]; })) {
    options.query_offset = a.lengths[0] - L;
    return {call(a, options)};
  }
  if (!options.is_causal && !options.window) return {call(a, options)};
  // Positions differ in the batch.
  options.mask = mask_of(mask_of_places(a));
  options.is_causal = false;
  options.window.reset();
  std::vector<Arrays> ways{call(a, options), {}};
  std::map<std::string, std::vector<Array>> rows;
  for (Index b = 0; b < B; ++b) {
    Attending row = a;
    for (Array* each : {&row.query, &row.key, &row.value}) *each = part(*each, 0, b, b + 1);
    if (row.mask && row.mask->data.dims.rank() == 4 && row.mask->data.dims[0] > 1) row.mask->data = part(row.mask->data, 0, b, b + 1);
    row.lengths = {a.lengths[static_cast<std::size_t>(b)]};
    const std::vector<Arrays> only_way = attend(row);
    for (const auto& [name, array] : only_way.at(0)) rows[name].push_back(array);
  }
  for (const auto& [name, parts] : rows) ways[1].emplace(name, joined(parts, 0));
  return ways;
}

std::vector<Arrays> run_attention(OnnxCase& c) {
  // qk_matmul_output_mode. Mode 0 is before softcap, which attn does not trace.
  constexpr std::array kModes{TraceName::scores, TraceName::scores, TraceName::masked_scores, TraceName::probabilities};
  const auto heads = c.attribute<Index>("q_num_heads"), key_heads = c.attribute<Index>("kv_num_heads");
  const Array given = c.input("Q");
  Attending a;
  a.query = by_head(given, heads);
  a.key = by_head(c.input("K"), key_heads);
  a.value = by_head(c.input("V"), key_heads);
  a.past_key = c.optional("past_key");
  a.past_value = c.optional("past_value");
  a.mask = mask_of_case(c, a.key.dims[2] + (a.past_key ? a.past_key->dims[2] : 0));
  if (const auto lengths = c.optional("nonpad_kv_seqlen"))
    for (const float length : lengths->data) a.lengths.push_back(static_cast<Index>(length));
  a.options.is_causal = c.attribute<int>("is_causal").value_or(0) == 1;
  const auto left = c.attribute<Index>("left_window_size"), right = c.attribute<Index>("right_window_size");
  if (left || right) a.options.window = Window{left.value_or(-1), right.value_or(-1)};
  a.options.scale = c.attribute<float>("scale");
  a.options.softcap = c.attribute<float>("softcap");
  a.options.enable_gqa = a.query.dims[1] != a.key.dims[1];
  const std::size_t mode = c.attribute<std::size_t>("qk_matmul_output_mode").value_or(0);
  if (c.expected().contains("qk_matmul_output")) {
    if (mode == 0) CHECK_FALSE(a.options.softcap);
    a.options.trace = {kModes.at(mode)};
  }
  const int precision = c.attribute<int>("softmax_precision").value_or(1);
  CHECK((precision == 1 || precision == 11));
  std::vector<Arrays> ways = attend(a);
  if (given.dims.rank() == 3)
    for (Arrays& way : ways) way.at("Y") = merged(way.at("Y"));
  return ways;
}

std::vector<Arrays> run_rotary(OnnxCase& c) {
  const Array given = c.input("input"), x = by_head(given, c.attribute<Index>("num_heads")), positions = c.input("position_ids");
  const Index B = x.dims[0], L = x.dims[2], D = x.dims[3], width = c.attribute<Index>("rotary_embedding_dim").value_or(D);
  RotaryOptions options{.theta = c.entry().at("theta").get<double>(), .interleaved = c.attribute<int>("interleaved").value_or(0) == 1};
  const auto position = [&](Index b, Index i) { return static_cast<Index>(positions.data[static_cast<std::size_t>(b * L + i)]); };
  std::vector<Array> rows;
  for (Index b = 0; b < B; ++b) {
    std::vector<Array> parts;
    for (Index from = 0, to = 1; from < L; from = to++) {
      while (to < L && position(b, to) == position(b, to - 1) + 1) ++to;
      const Array rest = part(part(x, 0, b, b + 1), 2, from, to);
      options.offset = position(b, from);
      parts.push_back(joined({apply_rotary(part(rest, 3, 0, width), options), part(rest, 3, width, D)}, 3));
    }
    rows.push_back(joined(parts, 2));
  }
  const Array output = joined(rows, 0);
  return only("output", given.dims.rank() == 4 ? output : merged(output));
}

template <class Normalize>
std::vector<Arrays> normalized(OnnxCase& c, Normalize normalize) {
  const Array x = c.input("X");
  const auto rank = static_cast<Index>(x.dims.rank()), axis = c.attribute<Index>("axis").value_or(-1);
  Index width = 1;
  for (Index i = axis < 0 ? axis + rank : axis; i < rank; ++i) width *= x.dims[static_cast<std::size_t>(i)];
  const Array rows = reshaped(x, {static_cast<Index>(x.data.size()) / width, width}), weight = reshaped(c.input("W"), {width});
  return only("Y", reshaped(normalize(rows, weight, c.attribute<float>("epsilon").value_or(1e-5F)), x.dims));
}

const std::map<std::string, std::vector<Arrays> (*)(OnnxCase&)>& operators() {
  static const std::map<std::string, std::vector<Arrays> (*)(OnnxCase&)> kOperators{
      {"Attention", run_attention},
      {"RotaryEmbedding", run_rotary},
      {"LayerNormalization",
       [](OnnxCase& c) {
         return normalized(c, [&](const Array& x, const Array& weight, float eps) {
           const Array bias = reshaped(c.input("B"), weight.dims);
           return layer_norm(x, &weight, &bias, eps);
         });
       }},
      {"RMSNormalization",
       [](OnnxCase& c) { return normalized(c, [](const Array& x, const Array& weight, float eps) { return rms_norm(x, &weight, eps); }); }},
      {"Softmax", [](OnnxCase& c) { return only("y", softmax(c.input("x"), c.attribute<Index>("axis").value_or(-1))); }},
      {"Gelu",
       [](OnnxCase& c) {
         const bool by_tanh = c.attribute<std::string>("approximate") == "tanh";
         return only("y", activation(c.input("x"), by_tanh ? Activation::gelu_tanh : Activation::gelu));
       }},
      {"Swish", [](OnnxCase& c) {
         CHECK(c.attribute<float>("alpha").value_or(1) == 1);
         return only("y", activation(c.input("x"), Activation::silu));
       }}};
  return kOperators;
}

nlohmann::json list(const GoldenFile& file, const char* name) { return nlohmann::json::parse(file.metadata.at(name).get<std::string>()); }

TEST_CASE("every ONNX case of these operators is run or excluded with a reason", "[onnx]") {
  const GoldenFile file = read_golden(testdata("onnx.safetensors"));
  const nlohmann::json cases = list(file, "cases"), left_out = list(file, "left_out");
  std::set<std::string> names, ops;
  std::map<std::string, std::string> missing;
  std::size_t run = 0;
  for (const nlohmann::json& entry : left_out) {
    names.insert(entry.at("name").get<std::string>());
    missing.emplace(entry.at("name").get<std::string>(), entry.at("op").get<std::string>());
    CHECK_FALSE(entry.at("reason").get<std::string>().empty());
  }
  for (const nlohmann::json& entry : cases) {
    INFO(entry.at("name"));
    ops.insert(entry.at("op").get<std::string>());
    if (entry.contains("of")) {  // the expanded form of another case
      CHECK(missing.at(entry.at("of")) == entry.at("op").get<std::string>());
    } else {
      names.insert(entry.at("name").get<std::string>());
      ++run;
    }
  }
  CHECK(run == 132);
  CHECK(left_out.size() == 19);
  CHECK(names.size() == std::stoul(file.metadata.at("collected").get<std::string>()));
  CHECK(ops.size() == operators().size());
}

TEST_CASE("ONNX's backend node tests give ONNX's numbers", "[onnx]") {
  const GoldenFile file = read_golden(testdata("onnx.safetensors"));
  for (const nlohmann::json& entry : list(file, "cases")) {
    INFO(entry.dump());
    OnnxCase c(file, entry);
    const std::vector<Arrays> ways = operators().at(entry.at("op"))(c);
    CHECK(c.unread().empty());
    CHECK_FALSE(c.expected().empty());
    for (std::size_t way = 0; way < ways.size(); ++way) {
      INFO("way " << way);
      CHECK(ways[way].size() == c.expected().size());
      for (const auto& [name, error] : c.expected().items()) {
        INFO(name);
        const Array& expected = c.stored("expected." + name);
        CHECK_THAT(ways[way].at(name), is_within(golden_tolerance(error.get<double>(), expected), expected));
      }
    }
  }
}

}  // namespace onnx_test
}  // namespace attn::test
