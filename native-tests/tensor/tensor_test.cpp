#include "attn/tensor/tensor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attn/attn.hpp"
#include "attn/tensor/aligned.hpp"
#include "support/call.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace tensor_tensor_test {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 63;

struct Limit {
  explicit Limit(std::uint64_t bytes) { set_memory_limit(bytes); }
  ~Limit() { set_memory_limit(kNoLimit); }
};

TEST_CASE("a shape is printed as its dimensions", "[tensor]") {
  Shape shape{2, 8, 384};
  CHECK(shape.rank() == 3);
  CHECK(shape.back(0) == 384);
  CHECK(shape.back(2) == 2);
  CHECK(to_string(shape) == "(2,8,384)");
  CHECK(to_string(Shape{}) == "()");
  CHECK(shape == Shape{2, 8, 384});
  CHECK(shape != Shape{2, 8});
  CHECK(shape != Shape{2, 8, 385});
  shape[1] = 9;
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) == std::vector<std::int64_t>{2, 9, 384});
}

TEST_CASE("an error shortens a long value to its start and end, in whole characters", "[tensor]") {
  std::string name;
  for (int i = 0; i < 1'000'000; ++i) name += "é";
  ErrorDetail detail;
  detail.emplace("got", name);
  detail.emplace("missing", std::vector<std::string>(5000, name.substr(0, 2000)));
  const Error error(ErrorCode::mismatch, "op: " + name + ", expected another", std::move(detail));
  const std::string message = error.what();
  CHECK(message.size() < 2048);
  CHECK(message.starts_with("op: é"));
  CHECK(message.ends_with(", expected another"));
  const auto whole = [](const std::string& text) {
    const std::size_t gap = text.find(" … ");
    const auto even = [](std::string_view part) {
      return std::count(part.begin(), part.end(), '\xc3') == std::count(part.begin(), part.end(), '\xa9');
    };
    return gap != std::string::npos && even(std::string_view(text).substr(0, gap)) && even(std::string_view(text).substr(gap + 5));
  };
  CHECK(whole(message));
  const auto& got = std::get<std::string>(error.detail().at("got"));
  CHECK(got.size() <= 1000);
  CHECK(whole(got));
  const auto& missing = std::get<std::vector<std::string>>(error.detail().at("missing"));
  CHECK(missing.size() == 1000);
  CHECK(missing.back().size() <= 200);
  const Error brief(ErrorCode::shape, "op: x is 3, expected 4");
  CHECK(brief.what() == std::string("op: x is 3, expected 4"));
}

TEST_CASE("a number of elements is computed in 64 bits and refused if its bytes are not addressable", "[tensor]") {
  CHECK(checked_size({}, "op", "x") == 1);
  CHECK(checked_size({2, 3, 4}, "op", "x") == 24);
  CHECK(checked_size({0x7fffffff, 0x3fffffff}, "op", "x") == std::int64_t{0x7fffffff} * 0x3fffffff);
  CHECK(checked_size({std::int64_t{1} << 60}, "op", "x") == std::int64_t{1} << 60);
  const ExpectedError expected{ErrorCode::memory, "op", "x (2147483647,2147483647,2)", {"more bytes than can be addressed"}};
  check_error(expected, [] { checked_size({0x7fffffff, 0x7fffffff, 2}, "op", "x"); });
  check_error({ErrorCode::memory, "op", "", {}}, [] { checked_size({std::int64_t{1} << 62}, "op", "x"); });
  // 2³² · 2³² is 0 in 64 bits.
  check_error({ErrorCode::memory, "op", "", {}}, [] { checked_size({std::int64_t{1} << 32, std::int64_t{1} << 32}, "op", "x"); });
  check_error({ErrorCode::memory, "op", "", {}},
              [] { checked_size({0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}, "op", "x"); });
}

TEST_CASE("a dimension of zero makes a tensor empty, however large the others are", "[tensor]") {
  CHECK(checked_size({0}, "op", "x") == 0);
  CHECK(checked_size({0x7fffffff, 0x7fffffff, 0x7fffffff, 0}, "op", "x") == 0);
  CHECK(checked_size({0, 0x7fffffff, 0x7fffffff, 0x7fffffff}, "op", "x") == 0);
}

TEST_CASE("a memory estimate is the sum of its parts, compared once with the limit", "[tensor]") {
  const Limit limit(1000);
  MemoryEstimate fits("op");
  fits.add("a", {10, 10});
  fits.add("b", {150});
  CHECK_NOTHROW(fits.check());
  fits.add("c", {1});
  check_error({ErrorCode::memory, "op", "the result with its work space", {"1004 bytes", "at most 1000 bytes"}}, [&] { fits.check(); });
}

TEST_CASE("a memory estimate above 64 bits is refused", "[tensor]") {
  MemoryEstimate huge("op");
  for (int i = 0; i < 40; ++i) huge.add("x", {std::int64_t{1} << 60});
  check_error({ErrorCode::memory, "op", "", {}}, [&] { huge.check(); });
}

TEST_CASE("a call over the memory limit is refused in advance, and a small one still works", "[tensor]") {
  AttentionCase large;
  large.query = Array({64, 8}), large.key = Array({64, 8}), large.value = Array({64, 8});
  AttentionCase small;
  small.query = Array({2, 4}, 1), small.key = Array({2, 4}, 1), small.value = Array({2, 4}, 3);
  const MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const Array x({64, 8}), few({2, 8});
  const Array weight({64, 64});
  const Limit limit(16384);
  check_error({ErrorCode::memory, "scaled_dot_product_attention", "the result with its work space", {"16384"}},
              [&] { attention(large, {.need_weights = true}); });
  check_error({ErrorCode::memory, "MultiHeadAttention", "the result with its work space", {"16384"}},
              [&] { forward(layer, x, {.trace = Trace::all()}); });
  check_error({ErrorCode::memory, "linear", "the result with its work space", {"16384"}}, [&] { linear(weight, weight); });
  check_error({ErrorCode::memory, "softmax", "the result with its work space", {"16640"}}, [&] { softmax(Array({65, 64})); });
  check_error({ErrorCode::memory, "MultiHeadAttention", "the state", {"16384"}}, [] { MultiHeadAttention({.embed_dim = 128, .num_heads = 2}); });
  CHECK_THAT(attention(small).output, HasBitsOf(Array({2, 4}, 3)));
  CHECK(forward(layer, few).output.dims == Shape{2, 8});
  CHECK(softmax(Array({64, 64})).data[0] == 1.0F / 64);
}

TEST_CASE("the scores of long sequences count against the limit, though they are never in memory as a whole", "[tensor]") {
  const TensorView q{nullptr, {1, 1, 0x7fffffff, 64}};
  check_error({ErrorCode::memory, "scaled_dot_product_attention", "", {}},
              [&] { detail::plan_scaled_dot_product_attention(q, q, q, {.need_weights = true}); });
  check_error(
      {ErrorCode::memory, "scaled_dot_product_attention", "weighted_values (1,1,2147483647,2147483647,64)", {"more bytes than can be addressed"}},
      [&] { detail::plan_scaled_dot_product_attention(q, q, q, {.trace = {TraceName::weighted_values}}); });
  const Limit limit(std::uint64_t{1} << 40);
  check_error({ErrorCode::memory, "scaled_dot_product_attention", "the result with its work space", {}},
              [&] { detail::plan_scaled_dot_product_attention(q, q, q, {}); });
}

TEST_CASE("tensors of more than eight dimensions are an error, not an overflow", "[tensor]") {
  const AnyTensor deep(std::vector<std::size_t>(9, 1), 1.0F);
  check_error({ErrorCode::shape, "scaled_dot_product_attention", "key", {"a rank of at most 8", "rank 9"}},
              [&] { scaled_dot_product_attention(xt::xtensor<float, 2>::from_shape({1, 1}), deep, deep); });
  MultiHeadAttention layer({.embed_dim = 1, .num_heads = 1, .bias = false, .out_proj = false});
  CHECK_THROWS_AS(layer.load_state_dict({{"in_proj_weight", deep}}), Error);
  CHECK_THROWS_AS(Mask::attend(deep), Error);
  CHECK_THROWS_AS(Mask::block(deep + 1.0F), Error);
  CHECK_THROWS_AS(Mask::additive(AnyTensor(deep)), Error);
}

TEST_CASE("an error has a code, a message and details", "[tensor]") {
  const ExpectedError expected{ErrorCode::shape, "linear", "x", {"linear: x has shape (2,8,256), expected (..,384)"}};
  check_error(expected, [] { detail::fail(ErrorCode::shape, "linear", "x", {"(..,384)"}, {"(2,8,256)"}); });
  try {
    detail::fail(ErrorCode::shape, "linear", "x", {"(..,384)"}, {"(2,8,256)"});
  } catch (const Error& error) {
    CHECK(std::get<std::string>(error.detail().at("expected")) == "(..,384)");
    CHECK(std::get<std::string>(error.detail().at("got")) == "(2,8,256)");
  }
}

TEST_CASE("a remedy is its own sentence at the end of an error's message and the fact help", "[tensor]") {
  const auto check = [](const Error& error) {
    CHECK(std::string_view(error.what()) == "load: path is a file, expected a folder. Pass the folder of config.json.");
    CHECK(error.help() == "Pass the folder of config.json");
    CHECK(std::get<std::string>(error.detail().at("expected")) == "a folder");
    CHECK(std::get<std::string>(error.detail().at("help")) == error.help());
  };
  CHECK_NOTHROW([&] {
    try {
      detail::fail(ErrorCode::argument, "load", "path", {"a folder"}, {"a file"}, "Pass the folder of config.json");
    } catch (const Error& error) {
      check(error);
      check(Error(error));
    }
  }());
  CHECK(Error(ErrorCode::argument, "load: path is a file").help().empty());
}

TEST_CASE("error names and trace names are distinct and in order", "[tensor]") {
  CHECK(std::set(kErrorCodeNames.begin(), kErrorCodeNames.end()).size() == kErrorCodeNames.size());
  CHECK(to_string(ErrorCode::argument) == "ARGUMENT");
  CHECK(to_string(ErrorCode::out_of_range) == "OUT_OF_RANGE");
  CHECK(to_string(ErrorCode::memory) == "MEMORY");
  CHECK(to_string(ErrorCode::busy) == "BUSY");
  CHECK(std::set(kTraceNames.begin(), kTraceNames.end()).size() == kTraceNames.size());
  CHECK(to_string(TraceName::q_proj) == "q_proj");
  CHECK(to_string(TraceName::masked_scores) == "masked_scores");
  CHECK(to_string(TraceName::weighted_values) == "weighted_values");
  CHECK(to_string(TraceName::output) == "output");
  CHECK_FALSE(Trace::all().has(TraceName::weighted_values));
  CHECK(Trace::all().has(TraceName::output));
  CHECK_FALSE(Trace().any());
}

TEST_CASE("scratch and packed weights begin at a cache line", "[tensor]") {
  for (const std::size_t size : {0U, 1U, 17U, 1000U}) {
    const AlignedFloats floats(size);
    CHECK(floats.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(floats.data()) % 64 == 0);
  }
}

}  // namespace tensor_tensor_test
}  // namespace attn::test
