#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/models/text_model.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_traces_test {

struct Heads {
  Array data;
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) const {
    return static_cast<double>(data.data[static_cast<std::size_t>(((b * data.dims[1] + h) * data.dims[2] + i) * data.dims[3] + d)]);
  }
};

constexpr std::int64_t kB = 2, kL = 23, kH = 4, kD = 8, kPadded = 5;  // kPadded: padding ids in row 1

Encoding ids(std::int64_t most, std::int32_t padding) {
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({kB, kL}, padding);
  encoding.attention_mask = xt::xtensor<std::uint8_t, 2>({kB, kL}, 0);
  for (std::int64_t b = 0; b < kB; ++b)
    for (std::int64_t i = 0; i < kL - b * kPadded; ++i) {
      encoding.input_ids(b, i) = static_cast<std::int32_t>(5 + (i * 31 + b * 7) % (most - 5));
      encoding.attention_mask(b, i) = 1;
    }
  return encoding;
}

using Bias = std::function<double(std::int64_t head, std::int64_t i, std::int64_t j)>;

void check_attention(const AttentionTrace& trace, std::int64_t window, const Bias& bias) {
  const auto heads = [&](TraceName name) { return Heads{floats_of(trace.at(name))}; };
  const Heads q = heads(TraceName::q), k = heads(TraceName::k), v = heads(TraceName::v), scores = heads(TraceName::scores),
              masked = heads(TraceName::masked_scores), probabilities = heads(TraceName::probabilities), weights = heads(TraceName::weights),
              context = heads(TraceName::context);
  REQUIRE(q.data.dims == Shape{kB, kH, kL, kD});
  REQUIRE(scores.data.dims == Shape{kB, kH, kL, kL});
  const Array merged = floats_of(trace.at(TraceName::merged));
  double of_scores = 0, of_weights = 0, of_context = 0;
  std::size_t blocked = 0, wrong = 0;
  for (std::int64_t b = 0; b < kB; ++b)
    for (std::int64_t h = 0; h < kH; ++h)
      for (std::int64_t i = 0; i < kL; ++i) {
        std::vector<bool> open(kL);
        double largest = -1e300, total = 0;
        for (std::int64_t j = 0; j < kL; ++j) {
          double product = 0, size = 1;
          for (std::int64_t d = 0; d < kD; ++d) product += q.at(b, h, i, d) * k.at(b, h, j, d), size += std::abs(q.at(b, h, i, d) * k.at(b, h, j, d));
          const double score = product / std::sqrt(static_cast<double>(kD)) + bias(h, i, j);
          of_scores = std::max(of_scores, std::abs(scores.at(b, h, i, j) - score) / (size + std::abs(score)));
          open[static_cast<std::size_t>(j)] = j < kL - b * kPadded && (window < 0 || std::abs(i - j) <= window);
          if (open[static_cast<std::size_t>(j)]) {
            wrong += masked.at(b, h, i, j) != scores.at(b, h, i, j);
            largest = std::max(largest, scores.at(b, h, i, j));
          } else {
            ++blocked;
            wrong += masked.at(b, h, i, j) != -std::numeric_limits<double>::infinity();
          }
        }
        const bool none = largest == -1e300;  // a padded query with a window of padding
        for (std::int64_t j = 0; j < kL; ++j)
          if (open[static_cast<std::size_t>(j)]) total += std::exp(masked.at(b, h, i, j) - largest);
        for (std::int64_t j = 0; j < kL; ++j) {
          const double expected = none ? 1.0 / kL : open[static_cast<std::size_t>(j)] ? std::exp(masked.at(b, h, i, j) - largest) / total : 0;
          of_weights = std::max(of_weights, std::abs(weights.at(b, h, i, j) - expected));
          wrong += !none && !open[static_cast<std::size_t>(j)] && weights.at(b, h, i, j) != 0;
        }
        for (std::int64_t d = 0; d < kD; ++d) {
          double sum = 0;
          for (std::int64_t j = 0; j < kL; ++j) sum += weights.at(b, h, i, j) * v.at(b, h, j, d);
          of_context = std::max(of_context, std::abs(context.at(b, h, i, d) - sum));
          const std::size_t at = static_cast<std::size_t>((b * kL + i) * kH * kD + h * kD + d);
          wrong += static_cast<double>(merged.data[at]) != context.at(b, h, i, d);
        }
      }
  CHECK(wrong == 0);
  CHECK(blocked >= static_cast<std::size_t>(kH * kL * kPadded));
  CHECK(probabilities.data == weights.data);
  CHECK(of_scores < 8 * kEps);
  CHECK(of_weights < 8 * kEps);
  CHECK(of_context < 32 * kEps);
}

Array split(const Array& x) {
  Array y({kB, kH, kL, kD});
  for (std::int64_t b = 0; b < kB; ++b)
    for (std::int64_t i = 0; i < kL; ++i)
      for (std::int64_t h = 0; h < kH; ++h)
        for (std::int64_t d = 0; d < kD; ++d)
          y.data[static_cast<std::size_t>(((b * kH + h) * kL + i) * kD + d)] = x.data[static_cast<std::size_t>((b * kL + i) * kH * kD + h * kD + d)];
  return y;
}

Array sum(const Array& x, const Array& y) {
  Array out = x;
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] += y.data[i];
  return out;
}

std::vector<float> values_of(const std::string& checkpoint, const std::string& tensor) {
  std::vector<FileTensor> tensors = read_tensors(bytes_of(testdata("models/" + checkpoint + "/model.safetensors")));
  return named(tensors, tensor).values();
}

TEST_CASE("in MPNet's layers, scores are q kᵀ · scale plus T5's bucketed bias", "[models]") {
  const TextModel model = TextModel::load(testdata("models/tiny-mpnet"));
  const std::vector<float> table = values_of("tiny-mpnet", "mpnet.encoder.relative_attention_bias.weight");
  REQUIRE(table.size() == 32 * kH);
  // T5: half of the buckets per sign, 8 exact, then logarithmic up to 128.
  const auto bucket = [](std::int64_t i, std::int64_t j) {
    const std::int64_t n = std::abs(j - i), start = j > i ? 16 : 0;
    if (n < 8) return start + n;
    const double log = std::log(static_cast<double>(n) / 8) / std::log(128.0 / 8) * 8;
    return start + std::min<std::int64_t>(15, 8 + static_cast<std::int64_t>(log + 1e-9));
  };
  const Encoding encoding = ids(300, 1);
  const TextModelOutput output = model.forward(encoding, {.output_hidden_states = true});
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    CAPTURE(layer);
    const AttentionTrace trace = model.trace_layer(encoding, layer);
    check_attention(trace, -1, [&](std::int64_t h, std::int64_t i, std::int64_t j) {
      return static_cast<double>(table[static_cast<std::size_t>(bucket(i, j) * kH + h)]);
    });
    for (const auto& [flat, heads] :
         {std::pair{TraceName::q_proj, TraceName::q}, {TraceName::k_proj, TraceName::k}, {TraceName::v_proj, TraceName::v}})
      CHECK_THAT(split(floats_of(trace.at(flat))), HasBitsOf(floats_of(trace.at(heads))));
    const auto at = static_cast<std::size_t>(layer);
    CHECK_THAT(floats_of(trace.at(TraceName::attn_residual)),
               HasBitsOf(sum(floats_of(output.hidden_states->at(at)), floats_of(trace.at(TraceName::output)))));
    CHECK_THAT(floats_of(trace.at(TraceName::ff_residual)),
               HasBitsOf(sum(floats_of(trace.at(TraceName::norm1)), floats_of(trace.at(TraceName::ff_output)))));
    CHECK_THAT(floats_of(trace.at(TraceName::norm2)), HasBitsOf(floats_of(output.hidden_states->at(at + 1))));
  }
}

TEST_CASE("in ModernBERT's layers, q and k are rotated, and local layers see 4 keys on each side", "[models]") {
  const TextModel model = TextModel::load(testdata("models/tiny-modernbert"));
  const Encoding encoding = ids(380, 0);
  const TextModelOutput output = model.forward(encoding, {.output_attentions = true, .output_hidden_states = true});
  for (std::int64_t layer = 0; layer < 4; ++layer) {
    CAPTURE(layer);
    const bool full = layer % 3 == 0;
    const AttentionTrace trace = model.trace_layer(encoding, layer);
    check_attention(trace, full ? -1 : 4, [](std::int64_t, std::int64_t, std::int64_t) { return 0.0; });
    CHECK_THAT(split(floats_of(trace.at(TraceName::v_proj))), HasBitsOf(floats_of(trace.at(TraceName::v))));
    for (const auto& [before, after] : {std::pair{TraceName::q_proj, TraceName::q}, {TraceName::k_proj, TraceName::k}}) {
      const Heads x{split(floats_of(trace.at(before)))}, turned{floats_of(trace.at(after))};
      double most = 0;
      for (std::int64_t b = 0; b < kB; ++b)
        for (std::int64_t h = 0; h < kH; ++h)
          for (std::int64_t i = 0; i < kL; ++i)
            for (std::int64_t d = 0; d < kD / 2; ++d) {
              const double angle = static_cast<double>(i) * std::pow(full ? 160'000.0 : 10'000.0, -2.0 * static_cast<double>(d) / kD);
              const double first = x.at(b, h, i, d), second = x.at(b, h, i, d + kD / 2), size = std::hypot(first, second);
              most = std::max(most, std::abs(turned.at(b, h, i, d) - (first * std::cos(angle) - second * std::sin(angle))) / size);
              most = std::max(most, std::abs(turned.at(b, h, i, d + kD / 2) - (second * std::cos(angle) + first * std::sin(angle))) / size);
            }
      CHECK(most < kL * kEps + 4 * kEps);  // angles are float32
    }
    const auto at = static_cast<std::size_t>(layer);
    const Array x = floats_of(output.hidden_states->at(at));
    CHECK_THAT(floats_of(trace.at(TraceName::weights)), HasBitsOf(floats_of(output.attentions->at(at))));
    CHECK_THAT(floats_of(trace.at(TraceName::attn_residual)), HasBitsOf(sum(x, floats_of(trace.at(TraceName::output)))));
    CHECK_THAT(floats_of(trace.at(TraceName::ff_residual)),
               HasBitsOf(sum(floats_of(trace.at(TraceName::attn_residual)), floats_of(trace.at(TraceName::ff_output)))));
    if (layer == 0) CHECK_THAT(floats_of(trace.at(TraceName::norm1)), HasBitsOf(x));  // normalized embeddings
    if (layer < 3) CHECK_THAT(floats_of(trace.at(TraceName::ff_residual)), HasBitsOf(floats_of(output.hidden_states->at(at + 1))));
  }
}

}  // namespace models_traces_test
}  // namespace attn::test
