#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "attn/attn.hpp"
#include "attn/ops/tree_sum.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif

namespace attn::test {
namespace ops_losses_test {

using Counts = std::map<std::string, int>;

struct AnyLoss {
  Array loss, gradient;
};
TensorView view_of(const Array& x) { return {x.data.data(), x.dims}; }

AnyLoss cross_entropy(const Array& logits, const std::vector<std::int64_t>& labels, const CrossEntropyOptions& options = {}) {
  detail::check_cross_entropy(view_of(logits), labels, options);
  AnyLoss result{Array({1}), Array(logits.dims, kNaN)};
  result.loss.data[0] = detail::cross_entropy(view_of(logits), labels, options, result.gradient.data.data());
  return result;
}
AnyLoss mse_loss(const Array& prediction, const Array& target, const MseLossOptions& options = {}) {
  detail::check_mse_loss(view_of(prediction), view_of(target));
  AnyLoss result{Array({1}), Array(prediction.dims, kNaN)};
  result.loss.data[0] = detail::mse_loss(view_of(prediction), view_of(target), options, result.gradient.data.data());
  return result;
}
AnyLoss binary_cross_entropy(const Array& logits, const Array& target, const BinaryCrossEntropyOptions& options = {}) {
  detail::check_binary_cross_entropy(view_of(logits), view_of(target), options);
  AnyLoss result{Array({1}), Array(logits.dims, kNaN)};
  result.loss.data[0] = detail::binary_cross_entropy(view_of(logits), view_of(target), options, result.gradient.data.data());
  return result;
}

std::optional<TensorCopy> given(const Array& x) {
  TensorCopy copy;
  static_cast<TensorView&>(copy) = view_of(x);
  return copy;
}

const std::vector<unsigned> kThreads{1, 2, 3};

void check_bits(const AnyLoss& got, const AnyLoss& expected) {
  CHECK_THAT(got.loss, HasBitsOf(expected.loss));
  CHECK_THAT(got.gradient, HasBitsOf(expected.gradient));
}

TEST_CASE("losses and their gradients agree with PyTorch", "[ops][losses][goldens]") {
  const GoldenFile file = read_golden(testdata("losses.safetensors"));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  Counts counts;
  for (const nlohmann::json& entry : cases) {
    const GoldenCase golden(file, entry);
    INFO("case " << golden.name() << ", options " << entry.at("options").dump());
    const Reduction reduction = golden.option("reduction", std::string("mean")) == "mean" ? Reduction::mean : Reduction::sum;
    const Array weight = golden.lists("inputs", "weight") ? golden.tensor("weight") : Array();
    const auto weights = weight.data.empty() ? std::nullopt : given(weight);
    AnyLoss got;
    if (golden.op() == "cross_entropy") {
      golden.check_names({}, {"labels", "labelSmoothing", "ignoreIndex", "reduction"});
      got = cross_entropy(golden.tensor("logits"), entry.at("options").at("labels").get<std::vector<std::int64_t>>(),
                          {.label_smoothing = golden.option("labelSmoothing", 0.0),
                           .ignore_index = golden.option("ignoreIndex", std::int64_t{-100}),
                           .weight = weights,
                           .reduction = reduction});
    } else if (golden.op() == "mse_loss") {
      golden.check_names({}, {"reduction"});
      got = mse_loss(golden.tensor("prediction"), golden.tensor("target"), {.reduction = reduction});
    } else {
      golden.check_names({}, {"reduction"});
      const Array positive = golden.lists("inputs", "posWeight") ? golden.tensor("posWeight") : Array();
      got = binary_cross_entropy(golden.tensor("logits"), golden.tensor("target"),
                                 {.weight = weights, .pos_weight = positive.data.empty() ? std::nullopt : given(positive), .reduction = reduction});
    }
    ++counts[golden.op()];
    CHECK(golden.difference("loss", got.loss) == "");
    CHECK(golden.difference("gradient", got.gradient) == "");
  }
  CHECK(counts == Counts{{"cross_entropy", 34}, {"mse_loss", 13}, {"binary_cross_entropy_with_logits", 16}});
}

TEST_CASE("losses accept tensors, also with gaps, and return tensors", "[ops][losses]") {
  const xt::xtensor<float, 2> logits{{1, 2, 3}, {0, 0, 0}, {5, 5, 5}, {0, 0, 0}};
  const xt::xtensor<int, 1> labels{2, 1};
  const xt::xtensor<float, 1> weight{1, 1, 1};
  const auto rows = xt::view(logits, xt::range(0, 4, 2), xt::all());
  const auto got = attn::cross_entropy(rows, labels, {.weight = weight});
  CHECK((got.gradient.shape() == std::array<std::size_t, 2>{2, 3}));
  CHECK(std::abs(got.loss - (0.40760596444 + 1.09861228867) / 2) < 1e-6);
  const xt::xtensor<float, 1> x{1, 2}, y{0, 4};
  CHECK(attn::mse_loss(x, y).loss == 2.5F);
  CHECK(attn::mse_loss(x, y, {.reduction = Reduction::sum}).gradient == xt::xtensor<float, 1>{2, -4});
  const xt::xtensor<float, 1> twice{2, 2};
  CHECK(std::abs(attn::binary_cross_entropy_with_logits(x, y * 0.25F, {.weight = twice}).loss - 1.4401897) < 1e-6);
}

TEST_CASE("a row whose label is ignored has no effect, whatever its logits are", "[ops][losses]") {
  Generator random(1);
  const Array logits = random.normal({5, 4});
  Array wild = logits;
  const std::vector<std::int64_t> labels{1, -100, 3, -100, 0};
  for (std::size_t c = 0; c < 4; ++c) wild.data[4 + c] = kNaN, wild.data[12 + c] = c % 2 == 0 ? kInfinity : -kInfinity;
  for (const double smoothing : {0.0, 0.25}) {
    const AnyLoss clean = cross_entropy(logits, labels, {.label_smoothing = smoothing});
    check_bits(cross_entropy(wild, labels, {.label_smoothing = smoothing}), clean);
    for (const std::size_t row : {1U, 3U})
      for (std::size_t c = 0; c < 4; ++c) CHECK(clean.gradient.data[row * 4 + c] == 0);
  }
  const AnyLoss sum = cross_entropy(logits, labels, {.reduction = Reduction::sum});
  Array longer({40, 4}, kNaN);
  std::copy(logits.data.begin(), logits.data.end(), longer.data.begin());
  std::vector<std::int64_t> more = labels;
  more.resize(40, -100);
  CHECK_THAT(cross_entropy(longer, more, {.reduction = Reduction::sum}).loss, HasBitsOf(sum.loss));
}

TEST_CASE("a gradient of cross_entropy sums to 0 in every row", "[ops][losses]") {
  Generator random(2);
  const Array logits = random.normal({50, 17}, 3);
  std::vector<std::int64_t> labels(50);
  for (std::int64_t& label : labels) label = random.below(17);
  const Array weight = random.normal({17});
  const AnyLoss got = cross_entropy(logits, labels, {.label_smoothing = 0.2, .weight = given(weight), .reduction = Reduction::sum});
  for (std::size_t row = 0; row < 50; ++row) {
    double sum = 0, size = 0;
    for (std::size_t c = 0; c < 17; ++c) sum += got.gradient.data[row * 17 + c], size += std::abs(got.gradient.data[row * 17 + c]);
    CHECK(std::abs(sum) <= 8 * kEps * size);
  }
}

TEST_CASE("losses have the same bits with any number of threads", "[ops][losses][threads]") {
  Generator random(3);
  const unsigned before = num_threads();
  for (const std::int64_t rows : {1, 7, 8, 9, 1000, 4097}) {
    INFO(rows << " rows");
    const Array x = random.normal({rows, 33}, 4), target = random.normal({rows, 33});
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
    for (std::int64_t& label : labels) label = random.coin(0.1) ? -100 : random.below(33);
    // The halves cancel in reverse order, which leaves rounding errors.
    Array mirrored({2 * rows, 33}), zeros({2 * rows, 33}), sign({2 * rows, 1});
    const std::size_t last = mirrored.data.size() - 1;
    for (std::size_t i = 0; i < x.data.size(); ++i) mirrored.data[i] = mirrored.data[last - i] = x.data[i];
    for (std::size_t row = 0; row < sign.data.size(); ++row) sign.data[row] = row < sign.data.size() / 2 ? 1.0F : -1.0F;
    const BinaryCrossEntropyOptions signs{.weight = given(sign), .reduction = Reduction::sum};
    std::vector<AnyLoss> first;
    for (const unsigned threads : kThreads) {
      set_num_threads(threads);
      const std::vector<AnyLoss> now{cross_entropy(x, labels, {.label_smoothing = 0.1}), mse_loss(x, target), binary_cross_entropy(x, target),
                                     binary_cross_entropy(mirrored, zeros, signs)};
      if (first.empty()) first = now;
      for (std::size_t i = 0; i < now.size(); ++i) check_bits(now[i], first[i]);
      if (rows == 4097) CHECK(now[3].loss.data[0] != 0);
    }
  }
  set_num_threads(before);
}

TEST_CASE("a tree sums its terms in a fixed order by index", "[ops][losses]") {
  Generator random(4);
  for (const std::size_t n : {0U, 1U, 8U, 9U, 16U, 17U, 100U, 1000U}) {
    std::vector<double> x(n);
    double sum = 0, size = 0;
    for (double& value : x) value = random.normal(), sum += value, size += std::abs(value);
    CHECK(std::abs(detail::tree_sum(x) - sum) <= 1e-14 * size);
    const double alone = detail::tree_sum(x);
    x.resize(n + 777, 0.0);
    CHECK(detail::tree_sum(x) == alone);
  }
  std::vector<double> x(17, 0.0);
  x[0] = 1, x[7] = 0x1p-53, x[8] = 0x1p-53, x[16] = 0x1p-53;
  CHECK(detail::tree_sum(x) == 1);
  x[9] = 0x1p-53, x[16] = 0;
  CHECK(detail::tree_sum(x) == 1 + 0x1p-52);
}

TEST_CASE("losses refuse invalid arguments before they write", "[ops][losses][errors]") {
  const Array x({3, 4}), row({4}), five({5}), none({3, 0}), scalar{Shape{}};
  const auto fails = [](ErrorCode code, const char* op, const char* argument, std::vector<std::string> words, auto&& call) {
    check_error({code, op, argument, std::move(words)}, call);
  };
  for (const std::int64_t label : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    fails(ErrorCode::out_of_range, "cross_entropy", "labels[1]", {"a class from 0 to 3", "ignore_index -100", std::to_string(label)},
          [&] { cross_entropy(x, {0, label, 7}); });
    try {
      cross_entropy(x, {0, label, 7});
    } catch (const Error& error) {
      CHECK(std::get<double>(error.detail().at("index")) == 1);
    }
  }
  fails(ErrorCode::out_of_range, "cross_entropy", "labels[0]", {"ignore_index -1"}, [&] { cross_entropy(x, {-100, 0, 0}, {.ignore_index = -1}); });
  fails(ErrorCode::shape, "cross_entropy", "labels", {"3, one for each row", "2 numbers"}, [&] { cross_entropy(x, {0, 1}); });
  fails(ErrorCode::shape, "cross_entropy", "weight", {"(4)", "(5)"}, [&] { cross_entropy(x, {0, 1, 2}, {.weight = given(five)}); });
  fails(ErrorCode::shape, "cross_entropy", "logits", {"at least one class"}, [&] { cross_entropy(none, {0, 0, 0}); });
  fails(ErrorCode::shape, "cross_entropy", "logits", {"at least one class"}, [&] { cross_entropy(scalar, {0}); });
  for (const double smoothing : {-0.1, 1.5, static_cast<double>(kNaN)})
    fails(ErrorCode::config, "cross_entropy", "label_smoothing", {"from 0 to 1"},
          [&] { cross_entropy(x, {0, 0, 0}, {.label_smoothing = smoothing}); });
  fails(ErrorCode::shape, "mse_loss", "target", {"(3,4)", "(4)"}, [&] { mse_loss(x, row); });
  fails(ErrorCode::shape, "binary_cross_entropy_with_logits", "target", {"(3,4)", "(4)"}, [&] { binary_cross_entropy(x, row); });
  fails(ErrorCode::shape, "binary_cross_entropy_with_logits", "weight", {"broadcasts to (3,4)", "(5)"},
        [&] { binary_cross_entropy(x, x, {.weight = given(five)}); });
  fails(ErrorCode::shape, "binary_cross_entropy_with_logits", "pos_weight", {"broadcasts to (3,4)", "(3,0)"},
        [&] { binary_cross_entropy(x, x, {.pos_weight = given(none)}); });
}

}  // namespace ops_losses_test
}  // namespace attn::test
