// Weights that come piece by piece lie where weights lie that come at once.
#include "attn/layers/parameter.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/array.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace {

std::span<const float> part(const std::vector<float>& values, std::size_t first, std::size_t size) {
  return std::span(values).subspan(first, std::min(size, values.size() - first));
}

TEST_CASE("a linear map whose numbers come in pieces is the one made at once", "[layers]") {
  Generator random(1);
  // Around the widths of panels.
  for (const std::int64_t out : {1, 7, 8, 9, 15, 16, 17, 31, 33, 70})
    for (const std::int64_t in : {1, 3, 8, 17}) {
      INFO(out << " by " << in);
      const Array weight = random.normal({out, in}), bias = random.normal({out}), x = random.normal({3, in});
      const PackedLinear whole(weight.data.data(), bias.data.data(), out, in);
      Array expected({3, out});
      whole.forward(x.data.data(), 3, expected.data.data());
      for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{64}, weight.data.size()}) {
        PackedLinear linear;
        const detail::Parameter weights({out, in}, &linear), biases({out}, &linear);
        CHECK(weights.size() == weight.data.size());
        CHECK(biases.size() == bias.data.size());
        biases.allocate();  // the weight brings the bias
        weights.allocate();
        std::vector<float> got(weight.data.size(), kNaN), got_bias(bias.data.size(), kNaN);
        linear.unpack(got.data(), got_bias.data());
        CHECK(got == std::vector<float>(got.size(), 0.0F));
        CHECK(got_bias == std::vector<float>(got_bias.size(), 0.0F));
        for (std::size_t i = 0; i < bias.data.size(); i += piece) biases.set(i, part(bias.data, i, piece));
        for (std::size_t i = 0; i < weight.data.size(); i += piece) weights.set(i, part(weight.data, i, piece));
        linear.unpack(got.data(), got_bias.data());
        CHECK(got == weight.data);
        CHECK(got_bias == bias.data);
        Array y({3, out}, kNaN);
        linear.forward(x.data.data(), 3, y.data.data());
        CHECK_THAT(y, HasBitsOf(expected));
      }
    }
}

TEST_CASE("a vector whose numbers come in pieces", "[layers]") {
  Generator random(2);
  const Array table = random.normal({5, 7});
  std::vector<float> values;
  const detail::Parameter parameter({5, 7}, &values);
  CHECK(parameter.shape() == Shape{5, 7});
  parameter.allocate();
  CHECK(values == std::vector<float>(35, 0.0F));
  for (std::size_t i = 0; i < 35; i += 4) parameter.set(i, part(table.data, i, 4));
  CHECK(values == table.data);
  parameter.set(3, {});
  CHECK(values == table.data);
}

}  // namespace
}  // namespace attn::test
