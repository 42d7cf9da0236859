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

namespace attn::test {
namespace tensor_views_test {

constexpr std::size_t kWidth = 6;

/// x (2 or more rows,kWidth), w (kWidth,kWidth), v (kWidth).
template <class X, class W, class V>
std::vector<std::pair<std::string, std::function<AnyTensor()>>> calls(const X& x, const W& w, const V& v) {
  static const MultiHeadAttention attention({.embed_dim = kWidth, .num_heads = 2});
  static const TransformerEncoderLayer layer({.d_model = kWidth, .nhead = 2, .dim_feedforward = 8});
  static const TransformerEncoder encoder({.layer = {.d_model = kWidth, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2});
  static const TransformerClassifier classifier(
      {.encoder = {.layer = {.d_model = kWidth, .nhead = 2, .dim_feedforward = 8}, .num_layers = 1}, .num_classes = 3});
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

Tensor<3> block() {
  Tensor<3> values(std::array<std::size_t, 3>{4, kWidth, kWidth});
  for (std::size_t i = 0; i < values.size(); ++i) values.data()[i] = std::sin(static_cast<float>(i));
  return values;
}

TEST_CASE("a contiguous view starts at its own first element, in every function", "[tensor]") {
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
  SECTION("a view of raw memory") {
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
  SECTION("an empty view") { CHECK(softmax(view(m, range(2, 2))).size() == 0); }
}

TEST_CASE("views with gaps, other layouts and expressions give the results of their copies, in every function", "[tensor]") {
  using namespace xt;
  const Tensor<3> b = block();
  const Tensor<2> w = view(b, 1);
  const Tensor<1> v = view(b, 1, 1);
  const xtensor<float, 3, layout_type::column_major> columns = b;
  const Tensor<2> wide = concatenate(xtuple(w, w), 1);
  SECTION("transposed") { check_as_copied(transpose(w), w, v); }
  SECTION("a transposed view") { check_as_copied(transpose(view(b, 2)), transpose(view(b, 3)), v); }
  SECTION("columns") { check_as_copied(view(wide, all(), range(1, 1 + kWidth)), view(wide, all(), range(3, 3 + kWidth)), v); }
  SECTION("every second row") { check_as_copied(view(w, range(0, 6, 2)), w, v); }
  SECTION("backwards") { check_as_copied(view(w, range(5, 1, -1)), w, v); }
  SECTION("every second column") {
    check_as_copied(view(wide, all(), range(0, 12, 2)), view(wide, all(), range(1, 12, 2)), view(wide, 2, range(0, 12, 2)));
  }
  SECTION("one index of the last axis") { check_as_copied(view(columns, all(), all(), 1), transpose(w), col(w, 2)); }
  SECTION("a view of a column-major tensor") { check_as_copied(view(columns, 1), view(columns, 2), view(columns, 0, 1)); }
  SECTION("a column-major tensor") { check_as_copied(xtensor<float, 2, layout_type::column_major>(w), w, v); }
  SECTION("flipped") { check_as_copied(flip(w, 0), flip(w, 1), flip(v, 0)); }
  SECTION("an expression") { check_as_copied(w + 2.0F * w, 1.0F - w, v * v); }
}

TEST_CASE("batches with gaps between rows are not copied", "[tensor]") {
  using namespace xt;
  Tensor<3> wide(std::array<std::size_t, 3>{3, 7, 2 * kWidth});
  for (std::size_t i = 0; i < wide.size(); ++i) wide.data()[i] = std::cos(static_cast<float>(i));
  const auto x = view(wide, all(), range(1, 6), range(2, 2 + kWidth));
  const auto later = view(wide, range(0, 3, 2), range(6, 0, -1), range(6, 12));
  const MultiHeadAttention attention({.embed_dim = kWidth, .num_heads = 3});
  const TransformerEncoder encoder({.layer = {.d_model = kWidth, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2});
  const auto check = [&](const auto& part) {
    const Tensor<3> copy = part;
    CHECK(attention.forward(part).output == attention.forward(copy).output);
    CHECK(attention.forward(copy, part, part).output == attention.forward(copy).output);
    CHECK(encoder.forward(part, {.output_hidden_states = true}).hidden_states->front() == copy);
    CHECK(encoder.forward(part).output == encoder.forward(copy).output);
    CHECK(softmax(part, 1) == softmax(copy, 1));
    CHECK(softmax(part, 0) == softmax(copy, 0));
    CHECK(activation(part, Activation::gelu) == activation(copy, Activation::gelu));
    CHECK(apply_rotary(part) == apply_rotary(copy));
    CHECK(linear(part, view(wide, 0, all(), range(1, 1 + kWidth))) == linear(copy, Tensor<2>(view(wide, 0, all(), range(1, 1 + kWidth)))));
  };
  check(x);
  check(later);
  const auto heads = transpose(reshape_view(wide, std::array<std::size_t, 4>{3, 7, 4, 3}), {0, 2, 1, 3});
  const Tensor<4> copy = heads;
  CHECK(scaled_dot_product_attention(heads, heads, heads, {.trace = Trace::all()}).output == scaled_dot_product_attention(copy, copy, copy).output);
}

TEST_CASE("whole states, rows and tables may be views of memory", "[tensor]") {
  const std::vector<float> numbers = Generator(3).normal({2, 3, 4}).data;
  const TensorView x(numbers.data(), {2, 3, 4});
  const MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  const detail::AttentionPlan plan = layer.plan(x, x, x, {});
  std::vector<float> output(numbers.size());
  layer.run(plan, x, x, x, {}, {.output = output.data()});
  const auto adapted = xt::adapt(numbers, std::array<std::size_t, 3>{2, 3, 4});
  const Tensor<3> expected = layer.forward(adapted).output;
  CHECK(output == std::vector<float>(expected.begin(), expected.end()));

  const std::vector<float> table = Generator(4).normal({6, 8}).data;
  Embedding rows({.num_embeddings = 3, .embedding_dim = 8}), columns({.num_embeddings = 3, .embedding_dim = 4});
  const StateView strided{{"weight", TensorView(table.data(), {3, 8}, {16, 1})}};
  CHECK_THROWS_AS(rows.load_state(strided), Error);
  rows.load_state_dict(strided);
  CHECK(rows.row(2)[7] == table[4 * 8 + 7]);
  std::vector<float> saved(24);
  rows.save_state({{"weight", saved.data()}});
  CHECK(saved[8] == table[16]);
  CHECK_THROWS_AS(columns.load_state_dict(strided), Error);
}

TEST_CASE("masks, ids and states are copied from any kind of view", "[tensor]") {
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

}  // namespace tensor_views_test
}  // namespace attn::test
