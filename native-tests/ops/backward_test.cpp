#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif

#include "support/call_backward.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace ops_backward_test {

template <class Call>
void check_threads(Call call) {
  const Gradients alone = call();
  for (const unsigned threads : {2U, 3U}) {
    INFO(threads << " threads");
    set_num_threads(threads);
    const Gradients shared = call();
    set_num_threads(1);
    for (const auto& [name, array] : alone) {
      INFO(name);
      CHECK_THAT(shared.at(name), HasBitsOf(array));
    }
  }
}

TEST_CASE("gradients have the same bits on any number of threads", "[ops][backward][threads]") {
  Generator random(1);
  const Array x = random.normal({3, 211, 130}), grad = random.normal({3, 211, 70}), weight = random.normal({70, 130});
  check_threads([&] { return linear_backward(grad, x, weight); });
  const Array same = random.normal({3, 211, 130}), scale = random.normal({130});
  check_threads([&] { return layer_norm_backward(same, x, &scale); });
  check_threads([&] { return rms_norm_backward(same, x, &scale); });
  for (std::size_t f = 0; f < kActivationNames.size(); ++f)
    check_threads([&] { return Gradients{{"grad_x", activation_backward(same, x, static_cast<Activation>(f))}}; });
  for (const std::int64_t dim : {0, 1, 2}) {
    const Array y = softmax(x, dim);
    check_threads([&] { return Gradients{{"grad_x", softmax_backward(same, y, dim)}}; });
  }
  check_threads([&] { return Gradients{{"grad_x", apply_rotary_backward(same)}}; });
}

TEST_CASE("the gradient of a row has the same bits at any index", "[ops][backward]") {
  Generator random(2);
  const std::vector<std::int64_t> order{4, 0, 3, 1, 2};
  const Array x = random.normal({5, 33}), grad = random.normal({5, 33}), weight = random.normal({33, 33}), scale = random.normal({33});
  const auto check = [&](const Array& one, const Array& other) { CHECK_THAT(other, HasBitsOf(take(one, order))); };
  const Array moved_x = take(x, order), moved = take(grad, order);
  check(linear_backward(grad, x, weight).at("grad_x"), linear_backward(moved, moved_x, weight).at("grad_x"));
  check(layer_norm_backward(grad, x, &scale).at("grad_x"), layer_norm_backward(moved, moved_x, &scale).at("grad_x"));
  check(rms_norm_backward(grad, x, &scale).at("grad_x"), rms_norm_backward(moved, moved_x, &scale).at("grad_x"));
  check(softmax_backward(grad, softmax(x)), softmax_backward(moved, softmax(moved_x)));
  check(activation_backward(grad, x, Activation::gelu), activation_backward(moved, moved_x, Activation::gelu));
}

TEST_CASE("sums over rows begin with the first rows, whatever follows", "[ops][backward]") {
  Generator random(3);
  for (const std::int64_t rows : {1, 63, 64, 65, 130, 300}) {
    INFO(rows << " rows");
    const Array x = random.normal({rows, 9}), grad = random.normal({rows, 5}), weight = random.normal({5, 9}), scale = random.normal({9}),
                wide = random.normal({rows, 9});
    const auto longer = [](Array array) {
      array.dims[0] += 200;
      array.data.resize(size_of(array.dims), 0.0F);
      return array;
    };
    const auto same = [&](const Gradients& one, const Gradients& other) {
      for (const char* name : {"grad_weight", "grad_bias"})
        if (one.contains(name)) CHECK_THAT(other.at(name), HasBitsOf(one.at(name)));
    };
    same(linear_backward(grad, x, weight), linear_backward(longer(grad), longer(x), weight));
    same(layer_norm_backward(wide, x, &scale), layer_norm_backward(longer(wide), longer(x), &scale));
    same(rms_norm_backward(wide, x, &scale), rms_norm_backward(longer(wide), longer(x), &scale));
  }
}

TEST_CASE("many rows are summed in a tree, not sequentially", "[ops][backward]") {
  // Sequential rounding errors would show long before 2²⁵.
  constexpr std::int64_t kRows = 100000;
  Generator random(4);
  Array grad({kRows, 1}), x({kRows, 1}, 1);
  double exact = 0;
  for (float& value : grad.data) exact += value = random.uniform(0, 1);
  const Array bias = linear_backward(grad, x, Array({1, 1}, 1)).at("grad_bias");
  CHECK(std::abs(bias.data[0] - exact) <= 8 * kEps * exact);
}

TEST_CASE("gradients are linear in the output gradient", "[ops][backward]") {
  Generator random(5);
  const Array x = random.normal({4, 17}), scale = random.normal({17}), weight = random.normal({17, 17});
  const Array a = random.normal({4, 17}), b = random.normal({4, 17});
  Array sum = a;
  for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += 2 * b.data[i];
  const auto check = [&](const auto& call) {
    const Gradients one = call(a), other = call(b), both = call(sum);
    for (const auto& [name, array] : both) {
      INFO(name);
      Array expected = one.at(name);
      double largest = 1;
      for (std::size_t i = 0; i < expected.data.size(); ++i) {
        expected.data[i] += 2 * other.at(name).data[i];
        largest = std::max(largest, std::abs(static_cast<double>(expected.data[i])));
      }
      CHECK_THAT(array, is_within(32 * kEps * largest, expected));
    }
  };
  check([&](const Array& grad) { return linear_backward(grad, x, weight); });
  check([&](const Array& grad) { return layer_norm_backward(grad, x, &scale); });
  check([&](const Array& grad) { return rms_norm_backward(grad, x, &scale); });
  check([&](const Array& grad) { return Gradients{{"grad_x", softmax_backward(grad, softmax(x))}}; });
  check([&](const Array& grad) { return Gradients{{"grad_x", activation_backward(grad, x, Activation::mish)}}; });
}

TEST_CASE("the gradients of a softmax and of a layer norm's input sum to 0", "[ops][backward]") {
  Generator random(6);
  for (const std::int64_t width : {1, 2, 7, 64, 129}) {
    const Array x = random.normal({5, width}), grad = random.normal({5, width});
    for (const Array& found : {softmax_backward(grad, softmax(x)), layer_norm_backward(grad, x, nullptr).at("grad_x")})
      for (std::int64_t row = 0; row < 5; ++row) {
        double sum = 0, size = 0;
        for (const float value : slice(found, row).data) sum += value, size += std::abs(value);
        CHECK(std::abs(sum) <= 8 * kEps * (size + 1) * std::sqrt(static_cast<double>(width)));
      }
  }
}

TEST_CASE("the backward of a rotation reverses it", "[ops][backward]") {
  Generator random(7);
  const Array x = random.normal({2, 3, 9, 8});
  for (const bool interleaved : {false, true}) {
    const RotaryOptions options{.offset = 11, .interleaved = interleaved};
    CHECK_THAT(apply_rotary_backward(apply_rotary(x, options), options), is_within(4 * kEps * 6, x));
  }
}

TEST_CASE("derivatives of activations have their limits at infinity, and NaN at NaN", "[ops][backward]") {
  const Array x({6}, {kInfinity, -kInfinity, 3e38F, -3e38F, 1e20F, -1e20F}), ones({6}, 1);
  for (std::size_t f = 0; f < kActivationNames.size(); ++f) {
    INFO(kActivationNames[f]);
    const auto name = static_cast<Activation>(f);
    const bool flat = name == Activation::tanh || name == Activation::sigmoid;
    const float above = flat ? 0 : 1, below = name == Activation::identity ? 1 : 0;
    CHECK_THAT(activation_backward(ones, x, name), is_within(0, Array({6}, {above, below, above, below, above, below})));
    const float at_nan = activation_backward(Array({1}, 1), Array({1}, kNaN), name).data[0];
    CHECK(std::isnan(at_nan) == (name != Activation::relu && name != Activation::identity));
  }
}

TEST_CASE("gradients refuse invalid arguments", "[ops][backward][errors]") {
  const Array x({2, 3, 5}), weight({7, 5}), grad({2, 3, 7}), scale({5});
  check_error({ErrorCode::shape, "linear_backward", "weight", {"(7)", "(out,in)"}}, [&] { linear_backward(grad, x, Array({7})); });
  check_error({ErrorCode::shape, "linear_backward", "x", {"(2,3,4)", "(..,5)"}}, [&] { linear_backward(grad, Array({2, 3, 4}), weight); });
  for (const Shape& dims : {Shape{2, 3, 5}, Shape{2, 4, 7}, Shape{6, 7}})
    check_error({ErrorCode::shape, "linear_backward", "grad", {to_string(dims), "(2,3,7)"}}, [&] { linear_backward(Array(dims), x, weight); });
  check_error({ErrorCode::shape, "layer_norm_backward", "grad", {"(2,3,7)", "(2,3,5)"}}, [&] { layer_norm_backward(grad, x, nullptr); });
  check_error({ErrorCode::shape, "layer_norm_backward", "weight", {"(7,5)", "(5)"}}, [&] { layer_norm_backward(x, x, &weight); });
  check_error({ErrorCode::config, "layer_norm_backward", "eps", {"0"}}, [&] { layer_norm_backward(x, x, &scale, 0); });
  check_error({ErrorCode::shape, "rms_norm_backward", "grad", {"(2,3,7)", "(2,3,5)"}}, [&] { rms_norm_backward(grad, x, nullptr); });
  check_error({ErrorCode::config, "rms_norm_backward", "eps", {"nan"}}, [&] { rms_norm_backward(x, x, &scale, kNaN); });
  check_error({ErrorCode::shape, "softmax_backward", "grad", {"(2,3,7)", "(2,3,5)"}}, [&] { softmax_backward(grad, x); });
  check_error({ErrorCode::out_of_range, "softmax_backward", "dim", {"3"}}, [&] { softmax_backward(x, x, 3); });
  check_error({ErrorCode::shape, "activation_backward", "grad", {"(2,3,7)", "(2,3,5)"}}, [&] { activation_backward(grad, x, Activation::relu); });
  check_error({ErrorCode::shape, "apply_rotary_backward", "grad", {"even"}}, [&] { apply_rotary_backward(x); });
  check_error({ErrorCode::config, "apply_rotary_backward", "theta", {"0"}}, [&] { apply_rotary_backward(Array({2, 4}), {.theta = 0}); });
}

TEST_CASE("gradients refuse results that do not fit into memory", "[ops][backward][errors]") {
  const Array x({10, 100}), weight({100, 100}), scale({100});
  set_memory_limit(3999);
  for (const auto& [op, call] : std::map<std::string, std::function<void()>>{
           {"linear_backward", [&] { linear_backward(x, x, weight); }},
           {"layer_norm_backward", [&] { layer_norm_backward(x, x, &scale); }},
           {"rms_norm_backward", [&] { rms_norm_backward(x, x, &scale); }},
           {"softmax_backward", [&] { softmax_backward(x, x); }},
           {"activation_backward", [&] { activation_backward(x, x, Activation::relu); }},
           {"apply_rotary_backward", [&] { apply_rotary_backward(x); }},
       })
    check_error({ErrorCode::memory, op, "", {"bytes"}}, call);
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("gradients accept views with gaps, and empty tensors", "[ops][backward]") {
  Generator random(8);
  const Tensor<3> x = tensor_of<3>(random.normal({4, 6, 8}));
  const auto part = xt::view(x, xt::range(1, 3), xt::range(0, 6, 2), xt::range(2, 7));
  const Tensor<3> copy = part;
  const Tensor<2> weight = xt::view(x, 0, xt::all(), xt::range(0, 5));
  const Tensor<3> grad = xt::view(x, xt::range(2, 4), xt::range(0, 3), xt::range(0, 6));
  const auto one = attn::linear_backward(grad, part, weight), other = attn::linear_backward(grad, copy, weight);
  CHECK(one.grad_x == other.grad_x);
  CHECK(one.grad_weight == other.grad_weight);
  CHECK(one.grad_bias == other.grad_bias);
  CHECK(attn::activation_backward(part, part, Activation::gelu) == attn::activation_backward(copy, copy, Activation::gelu));
  CHECK(attn::softmax_backward(part, part, 1) == attn::softmax_backward(copy, copy, 1));

  const Gradients none = linear_backward(Array({0, 3}), Array({0, 5}), Array({3, 5}, 1));
  CHECK_THAT(none.at("grad_weight"), HasBitsOf(Array({3, 5})));
  CHECK_THAT(none.at("grad_bias"), HasBitsOf(Array({3})));
  CHECK(linear_backward(Array({2, 0}), Array({2, 5}), Array({0, 5})).at("grad_x") == Array({2, 5}));
  CHECK(linear_backward(Array({2, 3}), Array({2, 0}), Array({3, 0})).at("grad_bias") == Array({3}));
  const Array scale({5}, 1);
  CHECK_THAT(layer_norm_backward(Array({0, 5}), Array({0, 5}), &scale).at("grad_weight"), HasBitsOf(Array({5})));
  CHECK(softmax_backward(Array({0, 5}), Array({0, 5})).dims == Shape{0, 5});
}

}  // namespace ops_backward_test
}  // namespace attn::test
