#include "attn/ops/activation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/parallel/thread_pool.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace ops_activation_test {

TEST_CASE("activation applies the function named, at every rank and size", "[ops]") {
  const double kPi = std::acos(-1.0);
  const std::array<double (*)(double, double), 9> functions{
      [](double x, double) { return std::max(x, 0.0); },
      [](double x, double) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); },
      [](double x, double pi) { return x / 2 * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x))); },
      [](double x, double) { return x / (1 + std::exp(-x)); },
      [](double x, double) { return std::tanh(x); },
      [](double x, double) { return 1 / (1 + std::exp(-x)); },
      [](double x, double) { return x; },
      [](double x, double) { return x * std::tanh(std::log1p(std::exp(x))); },
      [](double x, double) { return x / (1 + std::exp(-1.702 * x)); },
  };
  for (std::size_t f = 0; f < functions.size(); ++f) {
    INFO(kActivationNames[f] << ", seed " << f);
    Generator random(f);
    const auto check = [&]<std::size_t N>(const Shape& dims) {
      const Array x = random.normal(dims, 2);
      Estimate expected(x);
      for (std::size_t i = 0; i < x.data.size(); ++i) {
        expected.value[i] = functions[f](x.data[i], kPi);
        expected.error[i] = 1e-6 + 4 * kEps * std::abs(expected.value[i]);
      }
      CHECK_THAT(array_of(activation(tensor_of<N>(x), static_cast<Activation>(f))), IsCloseTo(expected));
    };
    check.operator()<0>({});
    check.operator()<1>({7});
    check.operator()<2>({50, 131});
    check.operator()<4>({2, 3, 1, 5});
  }
}

TEST_CASE("activation of an empty tensor is empty", "[ops]") {
  CHECK(to_shape(activation(detail::empty<3>({2, 0, 3}), Activation::gelu).shape()) == Shape{2, 0, 3});
}

TEST_CASE("activation gives the same bits on any number of threads", "[ops][threads]") {
  Generator random(1);
  const Tensor<2> x = tensor_of<2>(random.normal({300, 301}, 3));
  const Array alone = array_of(activation(x, Activation::gelu));
  set_num_threads(4);
  const Array shared = array_of(activation(x, Activation::gelu));
  set_num_threads(1);
  CHECK_THAT(shared, HasBitsOf(alone));
}

TEST_CASE("activation refuses results that do not fit into memory", "[ops][errors]") {
  const Tensor<2> x = detail::empty<2>({10, 100});
  set_memory_limit(3999);
  check_error({ErrorCode::memory, "activation", "", {"4000 bytes"}}, [&] { activation(x, Activation::relu); });
  set_memory_limit(std::uint64_t{1} << 63);
  CHECK_NOTHROW(activation(x, Activation::relu));
}

}  // namespace ops_activation_test
}  // namespace attn::test
