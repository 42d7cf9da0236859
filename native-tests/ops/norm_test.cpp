#include "attn/ops/norm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "attn/parallel/thread_pool.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/reference_norm.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace ops_norm_test {

Estimate expected_norm(const Array& x, const Array& weight, const Array& bias, double eps, bool rms) {
  Estimate y(x.dims);
  const auto n = static_cast<std::size_t>(x.dims.back(0));
  for (std::size_t at = 0; at < x.data.size(); at += n) {
    const auto from = x.data.begin() + static_cast<std::ptrdiff_t>(at);
    const Estimate row = reference_norm({from, from + static_cast<std::ptrdiff_t>(n)}, weight.data, bias.data, eps, rms);
    std::copy(row.value.begin(), row.value.end(), y.value.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(row.error.begin(), row.error.end(), y.error.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return y;
}

template <std::size_t N>
void check_norms(const Array& x, Generator& random) {
  INFO("x " << to_string(x.dims));
  const Tensor<N> t = tensor_of<N>(x);
  const Array none, w = random.normal({x.dims.back(0)}), b = random.normal({x.dims.back(0)});
  const Tensor<1> weight = tensor_of<1>(w), bias = tensor_of<1>(b);
  CHECK_THAT(array_of(layer_norm(t)), IsCloseTo(expected_norm(x, none, none, 1e-5F, false)));
  CHECK_THAT(array_of(layer_norm(t, 1e-3F)), IsCloseTo(expected_norm(x, none, none, 1e-3F, false)));
  CHECK_THAT(array_of(layer_norm(t, weight)), IsCloseTo(expected_norm(x, w, none, 1e-5F, false)));
  CHECK_THAT(array_of(layer_norm(t, weight, 1e-3F)), IsCloseTo(expected_norm(x, w, none, 1e-3F, false)));
  CHECK_THAT(array_of(layer_norm(t, weight, bias)), IsCloseTo(expected_norm(x, w, b, 1e-5F, false)));
  CHECK_THAT(array_of(layer_norm(t, weight, bias, 1e-3F)), IsCloseTo(expected_norm(x, w, b, 1e-3F, false)));
  CHECK_THAT(array_of(rms_norm(t)), IsCloseTo(expected_norm(x, none, none, 0x1p-23F, true)));
  CHECK_THAT(array_of(rms_norm(t, 1e-3F)), IsCloseTo(expected_norm(x, none, none, 1e-3F, true)));
  CHECK_THAT(array_of(rms_norm(t, weight)), IsCloseTo(expected_norm(x, w, none, 0x1p-23F, true)));
  CHECK_THAT(array_of(rms_norm(t, weight, 1e-3F)), IsCloseTo(expected_norm(x, w, none, 1e-3F, true)));
}

TEST_CASE("layer_norm and rms_norm agree with the float64 reference for every rank and size", "[ops]") {
  Generator random(1);
  INFO("seed 1");
  check_norms<1>(random.normal({1}, 0.02F), random);
  check_norms<1>(random.normal({33}, 0.02F), random);
  check_norms<2>(random.normal({5, 8}, 0.02F), random);
  check_norms<3>(random.normal({2, 9, 100}, 0.02F), random);
  check_norms<4>(random.normal({2, 1, 3, 17}, 1e-3F), random);
  check_norms<2>(random.normal({2, 768}, 3), random);
}

TEST_CASE("layer_norm gives mean 0 and variance 1, and adding a constant to a row changes nothing", "[ops][properties]") {
  Generator random(2);
  Array x = random.normal({20, 64});
  const Array y = array_of(layer_norm(tensor_of<2>(x)));
  for (std::size_t row = 0; row < 20; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t i = row * 64; i < row * 64 + 64; ++i) sum += y.data[i], squares += static_cast<double>(y.data[i]) * y.data[i];
    INFO("seed 2, row " << row);
    CHECK(std::abs(sum / 64) <= 4 * kEps);
    CHECK(std::abs(squares / 64 - 1) <= 1e-4);  // 1e-5 is eps, relative to variances below 1
  }
  // Multiples of 2⁻¹⁰ stay exact with the offset.
  for (float& value : x.data) value = std::round(value * 1024) / 1024;
  Array shifted = x;
  for (float& value : shifted.data) value += 8192;
  CHECK_THAT(array_of(layer_norm(tensor_of<2>(shifted))), is_within(20 * kEps, array_of(layer_norm(tensor_of<2>(x)))));
}

TEST_CASE("norms of empty tensors are empty", "[ops]") {
  CHECK(to_shape(layer_norm(detail::empty<2>({0, 5})).shape()) == Shape{0, 5});
  CHECK(to_shape(layer_norm(detail::empty<2>({3, 0})).shape()) == Shape{3, 0});
  CHECK(to_shape(rms_norm(detail::empty<2>({3, 0}), detail::empty<1>({0})).shape()) == Shape{3, 0});
}

TEST_CASE("norms give the same bits on any number of threads, and rows are independent", "[ops][threads]") {
  Generator random(3);
  const Array x = random.normal({200, 133});
  const Array layer = array_of(layer_norm(tensor_of<2>(x))), rms = array_of(rms_norm(tensor_of<2>(x)));
  set_num_threads(4);
  const Array layer_shared = array_of(layer_norm(tensor_of<2>(x))), rms_shared = array_of(rms_norm(tensor_of<2>(x)));
  set_num_threads(1);
  CHECK_THAT(layer_shared, HasBitsOf(layer));
  CHECK_THAT(rms_shared, HasBitsOf(rms));
  CHECK_THAT(array_of(layer_norm(tensor_of<1>(slice(x, 77)))), HasBitsOf(slice(layer, 77)));
  CHECK_THAT(array_of(rms_norm(tensor_of<1>(slice(x, 77)))), HasBitsOf(slice(rms, 77)));
}

TEST_CASE("norms refuse invalid arguments", "[ops][errors]") {
  const Tensor<2> x = detail::empty<2>({2, 8});
  const Tensor<1> narrow = detail::empty<1>({7}), right = detail::empty<1>({8});
  const Tensor<2> deep = detail::empty<2>({1, 8});
  check_error({ErrorCode::shape, "layer_norm", "weight", {"(7)", "(8)"}}, [&] { layer_norm(x, narrow); });
  check_error({ErrorCode::shape, "layer_norm", "weight", {"(1,8)", "(8)"}}, [&] { layer_norm(x, deep); });
  check_error({ErrorCode::shape, "layer_norm", "bias", {"(7)", "(8)"}}, [&] { layer_norm(x, right, narrow); });
  check_error({ErrorCode::shape, "layer_norm", "x", {"()", "a rank of at least 1"}}, [&] { layer_norm(detail::empty<0>({})); });
  check_error({ErrorCode::shape, "rms_norm", "weight", {"(7)", "(8)"}}, [&] { rms_norm(x, narrow); });
  check_error({ErrorCode::shape, "rms_norm", "x", {"()", "a rank of at least 1"}}, [&] { rms_norm(detail::empty<0>({})); });
  for (const float eps : {0.0F, -1e-5F, kNaN, kInfinity}) {
    INFO("eps " << eps);
    check_error({ErrorCode::config, "layer_norm", "eps", {"finite", "above 0"}}, [&] { layer_norm(x, eps); });
    check_error({ErrorCode::config, "rms_norm", "eps", {"finite", "above 0"}}, [&] { rms_norm(x, right, eps); });
  }
}

}  // namespace ops_norm_test
}  // namespace attn::test
