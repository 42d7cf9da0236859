// Products above 32 bits, for 32-bit builds (docs/dev/builds.md).
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>

#include "attn/attn.hpp"
#include "attn/layers/linear_layer.hpp"
#include "support/call.hpp"
#include "support/call_backward.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace sizes_test {

constexpr std::int64_t kMany = 700'000, kPeriod = 7;

Array repeated(const Array& small, std::int64_t count = kMany) {
  Shape dims = small.dims;
  dims[0] = count;
  Array all(dims);
  for (std::size_t i = 0; i < all.data.size(); ++i) all.data[i] = small.data[i % small.data.size()];
  return all;
}

std::size_t wrong(const Array& all, const Array& small) {
  std::size_t count = all.data.empty() ? 1 : 0;
  for (std::size_t i = 0; i < all.data.size(); ++i)
    if (std::abs(all.data[i] - small.data[i % small.data.size()]) > 1e-4F) ++count;
  return count;
}

TEST_CASE("functions of many rows compute each row like a few rows", "[.sizes]") {
  Generator random(1);
  const Array small = random.normal({kPeriod, 4}), weight = random.normal({5, 4}), ones = random.normal({4}), grad = random.normal({kPeriod, 5});
  const Array all = repeated(small);
  CHECK(wrong(linear(all, weight), linear(small, weight)) == 0);
  CHECK(wrong(softmax(all), softmax(small)) == 0);
  CHECK(wrong(layer_norm(all, &ones, nullptr), layer_norm(small, &ones, nullptr)) == 0);
  CHECK(wrong(rms_norm(all, &ones), rms_norm(small, &ones)) == 0);
  CHECK(wrong(activation(all, Activation::gelu), activation(small, Activation::gelu)) == 0);
  CHECK(wrong(linear_backward(repeated(grad), all, weight).at("grad_x"), linear_backward(grad, small, weight).at("grad_x")) == 0);
  CHECK(wrong(layer_norm_backward(all, all, &ones).at("grad_x"), layer_norm_backward(small, small, &ones).at("grad_x")) == 0);
  CHECK(wrong(rms_norm_backward(all, all, &ones).at("grad_x"), rms_norm_backward(small, small, &ones).at("grad_x")) == 0);
  CHECK(wrong(softmax_backward(all, all), softmax_backward(small, small)) == 0);
  CHECK(softmax(all, 0).data.size() == all.data.size());
  CHECK(softmax(reshaped(all, {1, kMany * 4})).data.size() == all.data.size());
  CHECK(sinusoidal_positions(kMany, 4).data.size() == all.data.size());
  CHECK(apply_rotary(all).data.size() == all.data.size());
}

TEST_CASE("a linear map of many inputs or outputs", "[.sizes]") {
  Generator random(2);
  const Array x = random.normal({3, 4}), wide = repeated(random.normal({kPeriod, 4}));
  const Array y = linear(x, wide);
  CHECK(std::isfinite(y.data.back()));
  const Array long_x = reshaped(repeated(random.normal({kPeriod, 1}), 3 * kMany), {3, kMany}),
              weight = reshaped(repeated(random.normal({kPeriod, 1}), 5 * kMany), {5, kMany});
  CHECK(std::isfinite(linear(long_x, weight).data.back()));
  const Gradients gradients = linear_backward(Array({3, 5}, 1), long_x, weight);
  CHECK(std::isfinite(gradients.at("grad_x").data.back()));
  CHECK(linear_backward(Array({3, kMany}, 1), x, wide).at("grad_x").data.size() == 12);
}

TEST_CASE("an int8 linear map of many rows, inputs or outputs", "[.sizes]") {
  Generator random(3);
  for (const auto& [rows, in, out] : {std::tuple{kMany, std::int64_t{5}, std::int64_t{3}}, std::tuple{std::int64_t{3}, kMany, std::int64_t{5}},
                                      std::tuple{std::int64_t{3}, std::int64_t{5}, kMany}}) {
    INFO(rows << " rows, " << in << " inputs, " << out << " outputs");
    const Array x = repeated(random.normal({kPeriod}), rows * in), weight = repeated(random.normal({kPeriod}), out * in);
    detail::Linear layer(in, out, false);
    layer.packed() = PackedLinear(weight.data.data(), nullptr, out, in);
    for (const bool int8 : {false, true}) {
      const detail::Linear map = int8 ? layer.converted(true) : layer.converted(false);
      Array y({rows, out});
      detail::Workspace workspace;
      detail::Scratch scratch(&workspace);
      const detail::Linear::Output outputs[] = {{&map, y.data.data()}};
      detail::Linear::forward(outputs, detail::Rows(x.data.data(), static_cast<std::size_t>(rows), static_cast<std::size_t>(in)), scratch);
      double error = 0;
      for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1})
        for (const std::int64_t column : {std::int64_t{0}, out - 1}) {
          double sum = 0, most = 0;
          for (std::int64_t i = 0; i < in; ++i) {
            const double term = static_cast<double>(x.data[static_cast<std::size_t>(row * in + i)]) *
                                static_cast<double>(weight.data[static_cast<std::size_t>(column * in + i)]);
            sum += term;
            most += std::abs(term);
          }
          error = std::max(error, std::abs(static_cast<double>(y.data[static_cast<std::size_t>(row * out + column)]) - sum) / most);
        }
      CHECK(error < (int8 ? 0.05 : 1e-3));
    }
  }
}

AttentionCase attention_case(std::int64_t B, std::int64_t H, std::int64_t L, std::int64_t S, std::int64_t D) {
  Generator random(4);
  const auto draw = [&](std::int64_t rows, std::int64_t length) {
    return reshaped(repeated(random.normal({kPeriod}), rows * length * D), {B, H, length, D});
  };
  AttentionCase c;
  c.query = draw(B * H, L);
  c.key = draw(B * H, S);
  c.value = draw(B * H, S);
  return c;
}

TEST_CASE("attention of many sequences, heads, queries or keys", "[.sizes]") {
  for (const auto& c :
       {attention_case(kMany, 1, 1, 2, 2), attention_case(1, kMany, 1, 2, 2), attention_case(1, 1, kMany, 2, 2), attention_case(1, 1, 2, kMany, 2)})
    for (const bool need_weights : {false, true}) {
      INFO(describe(c));
      const Array output = attention(c, {.need_weights = need_weights}).output;
      CHECK(std::isfinite(output.data.back()));
      CHECK(attention_backward(output, c).at("grad_query").data.size() == c.query.data.size());
    }
}

TEST_CASE("attention of many queries to many keys", "[.sizes]") {
  AttentionCase c = attention_case(1, 1, 66'000, 66'000, 1);
  c.window = {1, 1};
  const Array output = attention(c).output;
  CHECK(std::isfinite(output.data.back()));
  CHECK(std::isfinite(attention_backward(output, c).at("grad_value").data.back()));
}

TEST_CASE("layers of many sequences, forward and backward", "[.sizes]") {
  Generator random(5);
  const Array small = random.normal({kPeriod, 2, 4}), all = repeated(small, kMany / 2);
  MultiHeadAttention attention({.embed_dim = 4, .num_heads = 2});
  CHECK(wrong(forward(attention, all).output, forward(attention, small).output) == 0);
  const Array seen = forward(attention, all, AttentionOptions{.for_backward = true}).output;
  CHECK(backward(attention, seen).size() > 1);
  TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 6});
  layer.eval();
  CHECK(wrong(forward(layer, all).output, forward(layer, small).output) == 0);
  const Array output = forward(layer, all, EncoderForwardOptions{.for_backward = true}).output;
  CHECK(backward(layer, output).size() > 1);
}

TEST_CASE("a table of many embeddings and many ids", "[.sizes]") {
  Embedding embedding({.num_embeddings = kMany, .embedding_dim = 4});
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kMany));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = kMany - 1 - static_cast<std::int64_t>(i);
  const Array rows = forward(embedding, ids, {kMany});
  const Array table = arrays_of(embedding.state_dict()).at("weight");
  CHECK(std::equal(rows.data.end() - 4, rows.data.end(), table.data.begin()));
}

}  // namespace sizes_test
}  // namespace attn::test
