#include "attn/layers/embedding_layer.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "parallel/runs.hpp"
#include "support/call.hpp"
#include "support/call_backward.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace layers_embedding_test {

constexpr const char* kOp = "Embedding";

Embedding table_of(const Array& weight) {
  Embedding table({.num_embeddings = weight.dims[0], .embedding_dim = weight.dims[1]});
  table.load_state_dict(state_of({{"weight", weight}}));
  return table;
}

TEST_CASE("an embedding gives the rows of its table for ids of any rank", "[layers]") {
  Generator random(1);
  for (const auto& [count, width] : {std::pair{1, 1}, std::pair{7, 5}, std::pair{65, 3}, std::pair{3, 129}}) {
    const Array weight = random.normal({count, width});
    const Embedding table = table_of(weight);
    for (const Shape& dims : {Shape{1}, Shape{6}, Shape{2, 3}, Shape{2, 1, 4}, Shape{1, 2, 2, 3}, Shape{0}, Shape{0, 5}, Shape{4, 0}}) {
      std::vector<std::int64_t> ids(size_of(dims));
      for (std::int64_t& id : ids) id = random.below(count);
      INFO("seed 1, table " << to_string(weight.dims) << ", ids " << to_string(dims));
      Array expected;
      expected.dims = dims;
      expected.dims.push_back(width);
      for (const std::int64_t id : ids)
        for (const float value : slice(weight, id).data) expected.data.push_back(value);
      CHECK_THAT(forward(table, ids, dims), HasBitsOf(expected));
    }
  }
}

TEST_CASE("ids may be integers of any width", "[layers]") {
  const Embedding table = table_of(Array({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Array expected({2, 2}, {5, 6, 1, 2});
  CHECK_THAT(array_of(table.forward(xt::xtensor<std::int32_t, 1>{2, 0})), HasBitsOf(expected));
  CHECK_THAT(array_of(table.forward(xt::xtensor<std::uint8_t, 1>{2, 0})), HasBitsOf(expected));
  CHECK_THAT(array_of(table.forward(xt::xtensor<std::int64_t, 1>{2, 0})), HasBitsOf(expected));
}

TEST_CASE("the padding row is zero after initialization, and can be loaded with other values", "[layers][init]") {
  for (const std::int64_t padding : {0, 2, 4})
    for (const InitScheme scheme : {InitScheme::torch, InitScheme::normal, InitScheme::xavier_uniform}) {
      Embedding table({.num_embeddings = 5, .embedding_dim = 3, .padding_idx = padding});
      table.initialize({.scheme = scheme, .seed = 3});
      INFO("row " << padding);
      for (std::int64_t id = 0; id < 5; ++id) {
        const Array row = forward(table, {id}, {1});
        CHECK((row == Array({1, 3})) == (id == padding));
      }
      const Array weight({5, 3}, 7);
      table.load_state_dict(state_of({{"weight", weight}}));
      CHECK(forward(table, {padding}, {1}) == Array({1, 3}, 7));
    }
}

TEST_CASE("a table that a head shares is initialized as any other", "[layers][init]") {
  const EmbeddingOptions options{.num_embeddings = 37, .embedding_dim = 11, .padding_idx = 3};
  for (const bool is_int8 : {false, true})
    for (const InitScheme scheme : {InitScheme::torch, InitScheme::xavier_uniform}) {
      Embedding shared(detail::Uninitialized{}, options, true), own(options);
      for (const auto& [name, tensor] : shared.state_tensors()) tensor.pieces.front().allocate();
      if (is_int8) shared.quantize();
      shared.initialize({.scheme = scheme, .seed = 5});
      own.initialize({.scheme = scheme, .seed = 5});
      CHECK(!shared.is_quantized());
      for (std::int64_t id = 0; id < options.num_embeddings; ++id) CHECK(shared.row(id) == own.row(id));
    }
}

TEST_CASE("on a hand-made table, king is nearest to queen, and man is to bart as woman is to lisa", "[reference]") {
  // royal, male, adult, simpson
  const Array weight({8, 4}, {1, 1, 1, 0, 1, -1, 1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, -1, 2, 0, -1, -1, 2, 0, 1, 1, 2, 0, -1, 1, 2});
  constexpr std::int64_t king = 0, queen = 1, man = 2, woman = 3, bart = 4, lisa = 5;
  const Embedding table = table_of(weight);
  CHECK(table.analogy(man, king, woman, 1).at(0).id == queen);
  CHECK(table.analogy(man, bart, woman, 1).at(0).id == lisa);
  CHECK(table.analogy(bart, lisa, king, 1).at(0).id == queen);
  // (1,1,1,0) and (1,-1,1,0): 1/3; (0,1,1,0) is nearer: 2/√6.
  CHECK(std::abs(table.similarity(king, queen) - 1.0 / 3) < kEps);
  const std::vector<Neighbor> near = table.nearest(king, 2);
  CHECK(near.at(0).id == man);
  CHECK(std::abs(near.at(0).similarity - 2 / std::sqrt(6.0)) < kEps);
  CHECK(near.at(1).id == 6);
}

std::vector<std::pair<double, std::int64_t>> expected_neighbors(const Array& weight, const std::vector<double>& target,
                                                                const std::vector<std::int64_t>& excluded) {
  std::vector<std::pair<double, std::int64_t>> all;
  for (std::int64_t id = 0; id < weight.dims[0]; ++id) {
    if (std::find(excluded.begin(), excluded.end(), id) != excluded.end()) continue;
    double dot = 0, own = 0, other = 0;
    const std::vector<float> row = slice(weight, id).data;
    for (std::size_t e = 0; e < row.size(); ++e)
      dot += row[e] * target[e], own += static_cast<double>(row[e]) * row[e], other += target[e] * target[e];
    all.emplace_back(own * other == 0 ? 0 : dot / std::sqrt(own * other), id);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  return all;
}

TEST_CASE("neighbours are those of the definition in float64, by decreasing cosine", "[layers]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Generator random(seed);
    const std::int64_t N = 3 + random.below(60), E = 1 + random.below(70);
    const Array weight = random.normal({N, E});
    const Embedding table = table_of(weight);
    INFO("seed " << seed << ", table " << to_string(weight.dims));
    const double tolerance = (3 * std::sqrt(static_cast<double>(E)) + 4) * kEps;
    const auto check = [&](const std::vector<Neighbor>& got, const std::vector<double>& target, const std::vector<std::int64_t>& excluded,
                           std::int64_t k, double allowed) {
      const auto expected = expected_neighbors(weight, target, excluded);
      REQUIRE(got.size() == std::min(expected.size(), static_cast<std::size_t>(k)));
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(std::abs(got[i].similarity - expected[i].first) <= allowed);  // equal similarities may swap ids
        CHECK(std::find(excluded.begin(), excluded.end(), got[i].id) == excluded.end());
        if (i > 0) CHECK(got[i].similarity <= got[i - 1].similarity);
      }
    };
    const auto row = [&](std::int64_t id) {
      const Array r = slice(weight, id);
      return std::vector<double>(r.data.begin(), r.data.end());
    };
    const std::int64_t id = random.below(N);
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, N / 2, N - 1, N, N + 5, std::int64_t{1} << 40}) {
      check(table.nearest(id, k), row(id), {id}, k, tolerance);
      const Array target = random.normal({E});
      check(table.nearest(tensor_of<1>(target), k), {target.data.begin(), target.data.end()}, {}, k, tolerance);
    }
    const std::vector<double> a = row(0), b = row(1), c = row(2);
    std::vector<double> sum(a.size());
    double length = 0, parts = 0;
    for (std::size_t e = 0; e < sum.size(); ++e) {
      sum[e] = b[e] - a[e] + c[e];
      length += sum[e] * sum[e];
      parts += std::abs(a[e]) + std::abs(b[e]) + std::abs(c[e]);
    }
    check(table.analogy(0, 1, 2, 5), sum, {0, 1, 2}, 5, tolerance + 4 * kEps * parts / std::sqrt(length));
    const std::int64_t other = random.below(N);
    CHECK(table.similarity(id, other) == table.similarity(other, id));
    CHECK(std::abs(table.similarity(id, id) - 1) <= tolerance);
  }
}

TEST_CASE("rows of zeros have cosine 0, NaN comes last, and of equal similarities the lower id is first", "[layers]") {
  const Embedding table = table_of(Array({6, 2}, {1, 0, 0, 0, 2, 0, kNaN, 1, -1, 0, 3, 0}));
  const std::vector<Neighbor> near = table.nearest(0, 10);
  REQUIRE(near.size() == 5);
  const std::int64_t ids[] = {2, 5, 1, 4, 3};
  const float similarities[] = {1, 1, 0, -1, kNaN};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(near[i].id == ids[i]);
    CHECK(canonical_bits(near[i].similarity) == canonical_bits(similarities[i]));
  }
  CHECK(table.similarity(1, 1) == 0);
  CHECK(table.nearest(1, 1).at(0).id == 0);
}

TEST_CASE("invalid options of an embedding are CONFIG or MEMORY errors", "[layers][errors]") {
  struct Case {
    EmbeddingOptions options;
    ExpectedError expected;
  };
  const Case cases[] = {
      {{.num_embeddings = 0, .embedding_dim = 4}, {ErrorCode::config, kOp, "num_embeddings", {"is 0", "1 to 2147483647"}}},
      {{.num_embeddings = -1, .embedding_dim = 4}, {ErrorCode::config, kOp, "num_embeddings", {"is -1"}}},
      {{.num_embeddings = 4, .embedding_dim = 0}, {ErrorCode::config, kOp, "embedding_dim", {"is 0"}}},
      {{.num_embeddings = 4, .embedding_dim = std::int64_t{1} << 31}, {ErrorCode::config, kOp, "embedding_dim", {"is 2147483648"}}},
      {{.num_embeddings = 4, .embedding_dim = 4, .padding_idx = 4}, {ErrorCode::config, kOp, "padding_idx", {"is 4", "0 to 3"}}},
      {{.num_embeddings = 4, .embedding_dim = 4, .padding_idx = -1}, {ErrorCode::config, kOp, "padding_idx", {"is -1", "0 to 3"}}},
      {{.num_embeddings = 0x7fffffff, .embedding_dim = 0x7fffffff}, {ErrorCode::memory, kOp, "", {}}},
  };
  set_memory_limit(std::uint64_t{1} << 34);
  for (const Case& c : cases) {
    INFO(c.options.num_embeddings << " by " << c.options.embedding_dim);
    check_error(c.expected, [&] { Embedding table(c.options); });
  }
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("an id that is not in the table is an OUT_OF_RANGE error with its position", "[layers][errors]") {
  Generator random(2);
  const Embedding table = table_of(random.normal({5, 3}));
  const Array good = forward(table, {4, 0}, {2});
  check_error({ErrorCode::out_of_range, kOp, "ids[3]", {"is 5", "0 to 4"}}, [&] { forward(table, {0, 1, 2, 5, -1, 3}, {2, 3}); });
  check_error({ErrorCode::out_of_range, kOp, "ids[0]", {"is -1", "0 to 4"}}, [&] { forward(table, {-1}, {1}); });
  check_error({ErrorCode::out_of_range, kOp, "ids[1]", {"is 9223372036854775807"}}, [&] { forward(table, {0, 0x7fffffffffffffff}, {2}); });
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 40})
    check_error({ErrorCode::out_of_range, kOp, "id", {"is " + std::to_string(id), "0 to 4"}}, [&] { table.row(id); });
  check_error({ErrorCode::out_of_range, "nearest", "target", {"is 5", "0 to 4"}}, [&] { table.nearest(5, 1); });
  check_error({ErrorCode::argument, "nearest", "k", {"is -1", "at least 0"}}, [&] { table.nearest(0, -1); });
  check_error({ErrorCode::shape, "nearest", "target", {"(4)", "(3)"}}, [&] { table.nearest(tensor_of<1>(Array({4})), 1); });
  check_error({ErrorCode::out_of_range, "similarity", "a", {"is -1"}}, [&] { table.similarity(-1, 0); });
  check_error({ErrorCode::out_of_range, "similarity", "b", {"is 5"}}, [&] { table.similarity(0, 5); });
  check_error({ErrorCode::out_of_range, "analogy", "a", {"is 5"}}, [&] { table.analogy(5, 0, 0, 1); });
  check_error({ErrorCode::out_of_range, "analogy", "b", {"is 6"}}, [&] { table.analogy(0, 6, 0, 1); });
  check_error({ErrorCode::out_of_range, "analogy", "c", {"is 7"}}, [&] { table.analogy(0, 0, 7, 1); });
  check_error({ErrorCode::argument, "analogy", "k", {"is -2"}}, [&] { table.analogy(0, 1, 2, -2); });
  CHECK_THAT(forward(table, {4, 0}, {2}), HasBitsOf(good));
}

TEST_CASE("rows over the memory limit are refused before they are copied", "[layers][errors]") {
  const Embedding table = table_of(Array({2, 100}, 1));
  set_memory_limit(3999);
  check_error({ErrorCode::memory, kOp, "", {"4000 bytes"}}, [&] { forward(table, std::vector<std::int64_t>(10, 1), {10}); });
  CHECK(forward(table, std::vector<std::int64_t>(9, 1), {9}) == Array({9, 100}, 1));
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("the gradient of a row is the sum over the positions of its id, in order, and the padding row has none", "[layers][backward]") {
  Generator random(6);
  Embedding table({.num_embeddings = 5, .embedding_dim = 37, .padding_idx = 2});
  const std::vector<std::int64_t> ids{4, 1, 2, 1, 0, 1, 2, 4};
  const auto keep = [&] { table.forward(xt::xtensor<std::int64_t, 2>{{4, 1, 2, 1}, {0, 1, 2, 4}}, {.for_backward = true}); };
  Array grad = random.normal({2, 4, 37});
  for (const std::int64_t place : {2, 6}) std::fill_n(grad.data.begin() + place * 37, 37, kNaN);
  Array expected({5, 37});
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t e = 0; e < 37 && ids[i] != 2; ++e) expected.data[static_cast<std::size_t>(ids[i]) * 37 + e] += grad.data[i * 37 + e];
  for (const unsigned threads : {1U, 2U, 3U}) {
    const Threads more(threads);
    table.zero_grad();
    keep();
    CHECK_THAT(backward(table, grad).at("state.weight"), HasBitsOf(expected));
  }
  check_error({ErrorCode::argument, kOp, "backward", {"a forward with for_backward"}}, [&] { backward(table, grad); });
  keep();
  check_error({ErrorCode::shape, kOp, "grad", {"(2,4,37)"}}, [&] { backward(table, random.normal({8, 37})); });
  table.quantize();
  check_error({ErrorCode::unsupported, kOp, "the layer", {"int8"}}, [&] { backward(table, grad); });
}

}  // namespace layers_embedding_test
}  // namespace attn::test
