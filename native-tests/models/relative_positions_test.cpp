// Rows of DeBERTa's table of relative positions against transformers' make_log_bucket_position: testdata/relative_positions.json.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attn/models/model_config.hpp"
#include "support/testdata.hpp"

using namespace attn;
using namespace attn::test;

TEST_CASE("relative positions have transformers' buckets, of every distance up to 4096", "[models]") {
  std::ifstream file(testdata("relative_positions.json"));
  const nlohmann::json settings = nlohmann::json::parse(file);
  REQUIRE(settings.size() >= 10);
  for (const auto& each : settings) {
    detail::RelativeConfig config;
    config.buckets = each.at("position_buckets");
    config.max_distance = each.at("max_relative_positions");
    config.span = 5000;  // no bucket is cut
    CAPTURE(config.buckets, config.max_distance);
    const std::vector<std::int64_t> first = each.at("first"), bucket = each.at("bucket");
    std::int64_t wrong = 0;
    std::size_t at = 0;
    for (std::int64_t distance = 0; distance <= 4096; ++distance) {
      while (at + 1 < first.size() && first[at + 1] <= distance) ++at;
      wrong += config.row(distance) != 5000 + bucket[at];
      wrong += config.row(-distance) != 5000 - bucket[at];
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a table of relative positions ends on both sides", "[models]") {
  detail::RelativeConfig config;
  config.span = config.max_distance = 6;
  for (std::int64_t distance = -20; distance <= 20; ++distance) {
    CAPTURE(distance);
    CHECK(config.row(distance) == std::clamp<std::int64_t>(distance + 6, 0, 11));
  }
  config.buckets = config.span = 8;
  config.max_distance = 40;
  CHECK(config.row(0) == 8);
  CHECK(config.row(-4000) == 0);
  CHECK(config.row(4000) == 15);
  for (std::int64_t distance = -200; distance < 200; ++distance) CHECK(config.row(distance) <= config.row(distance + 1));
}
