#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attn/attn.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>
#endif

// What users pass that is no container: parts of their tensors, by xtensor's views. Each public function gives what it gives of a copy,
// or says SHAPE.
namespace attn::test {
namespace {

constexpr std::size_t kWidth = 6;

/// Every function that takes tensors, by name: x (2 or more rows, kWidth), w (kWidth,kWidth), v (kWidth).
template <class X, class W, class V>
std::vector<std::pair<std::string, std::function<AnyTensor()>>> calls(const X& x, const W& w, const V& v) {
  static const MultiHeadAttention attention({.embed_dim = kWidth, .num_heads = 2});
  static const TransformerEncoderLayer layer({.d_model = kWidth, .nhead = 2, .dim_feedforward = 8});
  static const TransformerEncoder encoder({.d_model = kWidth, .nhead = 2, .dim_feedforward = 8, .num_layers = 2});
  static const TransformerClassifier classifier({.d_model = kWidth, .nhead = 2, .dim_feedforward = 8, .num_layers = 1, .num_classes = 3});
  static const AdditiveAttentionParams params{AnyTensor(std::vector<std::size_t>{3, kWidth}, 0.5F),
                                              AnyTensor(std::vector<std::size_t>{3, kWidth}, -0.25F),
                                              AnyTensor(std::vector<std::size_t>{3}, 2.0F),
                                              {}};
  return {
      {"scaled_dot_product_attention query", [&] { return AnyTensor(scaled_dot_product_attention(x, w, w).output); }},
      {"scaled_dot_product_attention key", [&] { return AnyTensor(scaled_dot_product_attention(w, x, x).output); }},
      {"additive_attention", [&] { return AnyTensor(additive_attention(x, x, x, params).output); }},
      {"general_attention", [&] { return AnyTensor(general_attention(x, x, x, w).output); }},
      {"linear", [&] { return AnyTensor(linear(x, w)); }},
      {"linear with bias", [&] { return AnyTensor(linear(x, w, v)); }},
      {"softmax", [&] { return AnyTensor(softmax(x)); }},
      {"activation", [&] { return AnyTensor(activation(x, Activation::tanh)); }},
      {"layer_norm", [&] { return AnyTensor(layer_norm(x)); }},
      {"layer_norm with weight", [&] { return AnyTensor(layer_norm(x, v)); }},
      {"layer_norm with weight and bias", [&] { return AnyTensor(layer_norm(x, v, v)); }},
      {"rms_norm", [&] { return AnyTensor(rms_norm(x)); }},
      {"rms_norm with weight", [&] { return AnyTensor(rms_norm(x, v)); }},
      {"apply_rotary", [&] { return AnyTensor(apply_rotary(x)); }},
      {"MultiHeadAttention", [&] { return AnyTensor(attention.forward(x).output); }},
      {"MultiHeadAttention key", [&] { return AnyTensor(attention.forward(w, x, x).output); }},
      {"TransformerEncoderLayer", [&] { return AnyTensor(layer.forward(x).output); }},
      {"TransformerEncoder", [&] { return AnyTensor(encoder.forward(x).output); }},
      {"TransformerClassifier", [&] { return AnyTensor(classifier.forward(x).logits); }},
  };
}

template <class X, class W, class V>
void check_as_copied(const X& x, const W& w, const V& v) {
  const Tensor<2> x_copy = x, w_copy = w;
  const Tensor<1> v_copy = v;
  const auto viewed = calls(x, w, v), copied = calls(x_copy, w_copy, v_copy);
  for (std::size_t i = 0; i < viewed.size(); ++i) {
    INFO(viewed[i].first);
    CHECK(viewed[i].second() == copied[i].second());
  }
}

template <class X>
void check_refused(const char* kind, const X& x, const Tensor<2>& w, const Tensor<1>& v) {
  for (const auto& [name, call] : calls(x, w, v)) {
    INFO(kind << ", " << name);
    try {
      call();
      FAIL_CHECK("computed");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::shape);
      CHECK(std::string(error.what()).find("strided, expected row-major and without gaps") != std::string::npos);
    }
  }
}

/// (4,kWidth,kWidth), all numbers different.
Tensor<3> block() {
  Tensor<3> values(std::array<std::size_t, 3>{4, kWidth, kWidth});
  for (std::size_t i = 0; i < values.size(); ++i) values.data()[i] = std::sin(static_cast<float>(i));
  return values;
}

TEST_CASE("a view that is a block of its tensor counts from where it begins, in every function", "[tensor]") {
  using namespace xt;
  const Tensor<3> b = block();
  const Tensor<2> m = view(b, 1);
  const auto w = view(b, 2, all(), all());
  const auto v = view(b, 3, 1);
  SECTION("a matrix of a batch") { check_as_copied(view(b, 1, all(), all()), w, v); }
  SECTION("a matrix of a batch, axes left out") { check_as_copied(view(b, 3), w, v); }
  SECTION("a row") { check_as_copied(view(b, 1), w, row(m, 1)); }
  SECTION("rows of a matrix") { check_as_copied(view(m, range(1, 3)), w, v); }
  SECTION("a view of a view") {
    const auto part = view(b, range(1, 4));
    check_as_copied(view(part, 2, range(2, 5)), view(part, 1), view(part, 0, 4));
  }
  SECTION("a view of memory of one's own") {
    const auto adapted = adapt(b.data() + kWidth, 2 * kWidth * kWidth, no_ownership(), std::array<std::size_t, 3>{2, kWidth, kWidth});
    check_as_copied(view(adapted, 1), view(adapted, 0), view(adapted, 1, 2));
  }
  SECTION("a new axis") {
    const auto with_axis = view(b, 1, newaxis(), all(), all());
    const Tensor<3> copy = with_axis;
    CHECK(scaled_dot_product_attention(with_axis, with_axis, with_axis).output == scaled_dot_product_attention(copy, copy, copy).output);
  }
  SECTION("a strided view, as key and value") {
    const auto strided = strided_view(b, {2, ellipsis()});
    CHECK(scaled_dot_product_attention(m, strided, strided).output == scaled_dot_product_attention(m, Tensor<2>(strided), Tensor<2>(strided)).output);
  }
  SECTION("nothing") { CHECK(softmax(view(m, range(2, 2))).size() == 0); }
}

TEST_CASE("a view that is no row-major block is refused by every function", "[tensor]") {
  using namespace xt;
  const Tensor<3> b = block();
  const Tensor<2> w = view(b, 1);
  const Tensor<1> v = view(b, 1, 1);
  const xtensor<float, 3, layout_type::column_major> columns = b;
  const Tensor<2> wide = concatenate(xtuple(w, w), 1);
  check_refused("transposed", transpose(w), w, v);
  check_refused("a transposed view", transpose(view(b, 1, range(1, 4), all())), w, v);
  check_refused("columns", view(wide, all(), range(1, 1 + kWidth)), w, v);
  check_refused("every second row", view(w, range(0, 6, 2)), w, v);
  check_refused("backwards", view(w, range(5, 1, -1)), w, v);
  check_refused("one index of the last axis", view(columns, all(), all(), 1), w, v);
  check_refused("a view of a column-major tensor", view(columns, 1), w, v);
  check_refused("a column-major tensor", xtensor<float, 2, layout_type::column_major>(w), w, v);
  check_refused("flipped", flip(w, 0), w, v);
}

TEST_CASE("weights that are views count from where they begin or are refused", "[tensor]") {
  using namespace xt;
  const Tensor<3> b = block();
  const Tensor<2> x = view(b, 1);
  const auto column = col(x, 1);
  CHECK_THROWS_AS(linear(x, transpose(x)), Error);
  CHECK_THROWS_AS(linear(x, x, column), Error);
  CHECK_THROWS_AS(layer_norm(x, column), Error);
  CHECK_THROWS_AS(layer_norm(x, row(x, 1), column), Error);
  CHECK_THROWS_AS(rms_norm(x, column), Error);
  CHECK_THROWS_AS(general_attention(x, x, x, transpose(x)), Error);
}

TEST_CASE("masks, ids and states are copied, from views of any kind", "[tensor]") {
  using namespace xt;
  const Tensor<3> b = block();
  const Tensor<2> x = view(b, 1);
  const auto attend = [&](const Mask& mask) { return scaled_dot_product_attention(x, x, x, {.mask = mask}).output; };
  const auto check = [&](const auto& mask) {
    const Tensor<2> copy = mask;
    CHECK(attend(Mask::additive(mask)) == attend(Mask::additive(copy)));
    const xtensor<int, 2> flags = cast<int>(copy > 0.0F);
    CHECK(attend(Mask::attend(mask > 0.0F)) == attend(Mask::attend(flags)));
    CHECK(attend(Mask::block(mask > 0.0F)) == attend(Mask::block(flags)));
  };
  const xtensor<float, 3, layout_type::column_major> columns = b;
  check(view(b, 2));
  check(transpose(view(b, 2)));
  check(view(columns, 2));
  check(xtensor<float, 2, layout_type::column_major>(view(b, 2)));

  const Embedding table({.num_embeddings = 9, .embedding_dim = 2});
  const xtensor<std::int64_t, 2> ids{{1, 2, 3}, {4, 5, 6}, {7, 8, 0}};
  const xtensor<std::int64_t, 2, layout_type::column_major> id_columns = ids;
  const auto check_ids = [&](const auto& part) {
    const auto copy = eval(part);
    const xtensor<std::int64_t, kRankOf<std::remove_cvref_t<decltype(part)>>> rows = copy;
    CHECK(table.forward(part) == table.forward(rows));
  };
  check_ids(row(ids, 1));
  check_ids(col(ids, 1));
  check_ids(transpose(ids));
  check_ids(id_columns);
  check_ids(view(id_columns, range(1, 3)));

  Embedding loaded({.num_embeddings = 6, .embedding_dim = 6});
  for (const AnyTensor& weight : {AnyTensor(transpose(view(b, 2))), AnyTensor(view(b, 2)), AnyTensor(view(columns, 2))}) {
    loaded.load_state_dict({{"weight", weight}});
    CHECK(loaded.forward(xtensor<int, 1>{3})(0, 4) == weight(3, 4));
  }
}

}  // namespace
}  // namespace attn::test
