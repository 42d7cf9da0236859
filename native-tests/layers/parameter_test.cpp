#include "attn/layers/parameter.hpp"

#include <catch2/catch_test_macros.hpp>

#include "attn/layers/linear_layer.hpp"
#include "support/array.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace layers_parameter_test {

std::span<const float> part(const std::vector<float>& values, std::size_t first, std::size_t size) {
  return std::span(values).subspan(first, std::min(size, values.size() - first));
}

TEST_CASE("a linear map whose rows are set in pieces equals one that is set at once", "[layers]") {
  Generator random(1);
  for (const std::int64_t out : {1, 7, 8, 9, 15, 16, 17, 31, 33, 70})
    for (const std::int64_t in : {1, 3, 8, 17}) {
      INFO(out << " by " << in);
      const Array weight = random.normal({out, in}), bias = random.normal({out}), x = random.normal({3, in});
      const detail::Rows x_rows(x.data.data(), 3, static_cast<std::size_t>(in));
      const PackedLinear whole(weight.data.data(), bias.data.data(), out, in);
      detail::Scratch scratch;
      Array expected({3, out});
      whole.forward(x_rows, expected.data.data(), scratch);
      for (const std::size_t piece : {1U, 5U, 64U}) {
        detail::Linear linear(in, out, true);
        detail::ParameterVisitor visitor;
        visitor.part("", linear);
        const detail::StateTensors tensors = visitor.take();
        const detail::StateTensor &weights = tensors.at("weight"), &biases = tensors.at("bias");
        CHECK(weights.size() == weight.data.size());
        CHECK(weights.row_size() == static_cast<std::size_t>(in));
        CHECK(biases.size() == bias.data.size());
        CHECK(biases.row_size() == 1);
        for (const auto& [name, tensor] : tensors) tensor.pieces.front().allocate();
        std::vector<float> got(weight.data.size(), kNaN), got_bias(bias.data.size(), kNaN);
        weights.get(got.data());
        biases.get(got_bias.data());
        CHECK(got == std::vector<float>(got.size(), 0.0F));
        CHECK(got_bias == std::vector<float>(got_bias.size(), 0.0F));
        const auto width = static_cast<std::size_t>(in), height = static_cast<std::size_t>(out);
        for (std::size_t i = 0; i < height; i += piece) biases.set_rows(i, part(bias.data, i, piece));
        for (std::size_t i = 0; i < height; i += piece) weights.set_rows(i, part(weight.data, i * width, piece * width));
        weights.get(got.data());
        biases.get(got_bias.data());
        CHECK(got == weight.data);
        CHECK(got_bias == bias.data);
        Array y({3, out}, kNaN);
        linear.forward(x_rows, y.data.data(), scratch);
        CHECK_THAT(y, HasBitsOf(expected));
      }
    }
}

TEST_CASE("an embedding whose rows are set in pieces equals one that is set at once", "[layers]") {
  Generator random(2);
  const Array table = random.normal({5, 7});
  std::vector<float> values;
  const detail::ParameterRef parameter{.shape = {5, 7}, .kind = detail::ParameterKind::table, .vector = &values};
  CHECK(parameter.row_size() == 7);
  parameter.allocate();
  CHECK(values == std::vector<float>(35, 0.0F));
  for (std::size_t i = 0; i < 5; i += 2) parameter.set_rows(i, part(table.data, 7 * i, 14));
  CHECK(values == table.data);
  parameter.set_rows(3, {});
  CHECK(values == table.data);
}

}  // namespace layers_parameter_test
}  // namespace attn::test
