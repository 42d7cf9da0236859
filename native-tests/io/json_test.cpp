#include "attn/io/json.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>

#include "support/matchers.hpp"

namespace attn::test {
namespace io_json_test {

using detail::Json;

Json parse(const std::string& text, std::size_t most = 1 << 20) {
  return detail::parse_json("x.json", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, most);
}
void refused(const std::string& text, const std::vector<std::string>& words, std::size_t most = 1 << 20) {
  INFO(text.substr(0, 100));
  check_error({ErrorCode::format, "x.json", "the file", words}, [&] { parse(text, most); });
}

TEST_CASE("a JSON file is parsed into a tree", "[io]") {
  const Json json = parse(R"( {"a": [1, -2.5, 1e3, "\u00e9\n\ud83d\ude00", true, false, null], "b": {"c": {}, "d": []}} )");
  REQUIRE(json.object() != nullptr);
  CHECK(json.object()->size() == 2);
  const Json::Array& a = *json.find("a")->array();
  REQUIRE(a.size() == 7);
  CHECK(*a[0].number() == 1);
  CHECK(*a[1].number() == -2.5);
  CHECK(*a[2].number() == 1000);
  CHECK(*a[3].string() == "é\n😀");
  CHECK(*a[4].boolean());
  CHECK_FALSE(*a[5].boolean());
  CHECK(a[6].is_null());
  CHECK(json.find("b")->find("c")->object()->empty());
  CHECK(json.find("b")->find("d")->array()->empty());
  CHECK(*parse("7").number() == 7);
  CHECK(*parse("\"x\"").string() == "x");
}

TEST_CASE("a value has exactly one type, and a wrong type is reported", "[io]") {
  const std::pair<const char*, const char*> kinds[] = {{"null", "null"},     {"true", "true or false"}, {"0", "a number"},
                                                       {"\"\"", "a string"}, {"[]", "an array"},        {"{}", "an object"}};
  for (const auto& [text, kind] : kinds) {
    const Json json = parse(text);
    CHECK(json.kind() == std::string(kind));
    const int count = json.is_null() + (json.boolean() != nullptr) + (json.number() != nullptr) + (json.string() != nullptr) +
                      (json.array() != nullptr) + (json.object() != nullptr);
    CHECK(count == 1);
    CHECK(json.find("a") == nullptr);
  }
  const Json json = parse(R"({"there": 1, "null": null})");
  CHECK(json.find("there") != nullptr);
  CHECK(json.find("null") == nullptr);
  CHECK(json.find("missing") == nullptr);
}

TEST_CASE("numbers of any size are read as the nearest double", "[io]") {
  CHECK(*parse("9007199254740991").number() == 9007199254740991.0);
  CHECK(*parse("18446744073709551615").number() == 18446744073709551616.0);
  CHECK(*parse("-9223372036854775808").number() == -9223372036854775808.0);
  CHECK(*parse("1000000000000000019884624838656").number() == 1e30);
  CHECK(*parse("1e-12").number() == 1e-12);
  CHECK(*parse("0.1").number() == 0.1);
  CHECK(std::signbit(*parse("-0.0").number()));
}

TEST_CASE("the last value counts if a name appears twice", "[io]") {
  CHECK(*parse(R"({"a": 1, "a": 2})").find("a")->number() == 2);
  CHECK(*parse(R"({"a": {"b": 1}, "a": [3]})").find("a")->array()->at(0).number() == 3);
  CHECK(parse(R"({"a": {"b": 1}, "a": {"c": 1}})").find("a")->find("b") == nullptr);
}

TEST_CASE("members of a JSON object are found by name whatever their order in the file", "[io]") {
  const int count = 1000;
  std::string text = "{";
  for (int i = 0; i < 2 * count; ++i)  // each name twice; 379 and 1000 are coprime
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i * 379 % count) + "\":" + std::to_string(i);
  Json json = parse(text + "}");
  Json::Object& members = *json.object();
  REQUIRE(members.size() == static_cast<std::size_t>(count));
  for (int i = count; i < 2 * count; ++i) CHECK(*json.find(std::to_string(i * 379 % count))->number() == i);
  CHECK(std::is_sorted(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; }));
  CHECK(members.find("-1") == nullptr);
  CHECK(members.find("9999") == nullptr);
  members["-1"] = Json(true);
  members["5"] = Json(false);
  CHECK(members.size() == static_cast<std::size_t>(count) + 1);
  CHECK(*json.find("-1")->boolean());
  CHECK_FALSE(*json.find("5")->boolean());
  members.erase("-1");
  members.erase("-1");
  CHECK(members.find("-1") == nullptr);
  CHECK(*json.find("0")->number() == count);
}

TEST_CASE("invalid JSON is a FORMAT error with its position", "[io]") {
  for (const char* text : {"",   " ",  "{",  "[1",      "[1,]",   "{\"a\":}", "{a:1}", "{'a':1}", "nul",        "NaN",    "Infinity",   "01",
                           "1.", ".5", "+1", "\"\\x\"", "\"\n\"", "{} {}",    "[] x",  "// a\n1", "{\"a\":1,}", "<html>", "\"\\ud800\""})
    refused(text, {"not valid JSON near byte"});
  refused("[1,2,x]", {"near byte 6"});
  refused(std::string("{\"a\":1}\0", 8), {"near byte 7"});
  refused(std::string("\0{}", 3), {"near byte 0"});
  refused("\xEF\xBB\xBF{}", {"near byte 0"});
  for (const char* bytes : {"\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF5\x80\x80\x80\"", "\"\xE2\x82\""})
    refused(bytes, {"not valid JSON"});
}

TEST_CASE("NaN and Infinity of Python's json are read as strings, and only outside strings", "[io]") {
  const auto parse_python = [](const std::string& text) {
    return detail::parse_python_json("x.json", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1 << 20);
  };
  const Json json = parse_python(R"({"a": NaN, "b": [Infinity, -Infinity], "c": "NaN\", NaN", "d": "-Infinity", "NaN": 1, "e": "\\\\"})");
  CHECK(*json.find("a")->string() == "NaN");
  CHECK(*json.find("b")->array()->at(0).string() == "Infinity");
  CHECK(*json.find("b")->array()->at(1).string() == "-Infinity");
  CHECK(*json.find("c")->string() == "NaN\", NaN");
  CHECK(*json.find("d")->string() == "-Infinity");
  CHECK(*json.find("NaN")->number() == 1);
  CHECK(*json.find("e")->string() == "\\\\");
  CHECK(*parse_python("NaN").string() == "NaN");
  for (const char* text : {"nan", "[-NaN]", "NaNs", "[NaN", "-Inf", "\"NaN", "\"NaN\\"})
    check_error({ErrorCode::format, "x.json", "the file", {"not valid JSON"}}, [&] { parse_python(text); });
}

TEST_CASE("too many levels or bytes are a FORMAT error", "[io]") {
  const auto nested = [](std::size_t n, char open, char close) { return std::string(n, open) + std::string(n, close); };
  CHECK_NOTHROW(parse(nested(64, '[', ']')));
  refused(nested(65, '[', ']'), {"nested deeper than 64 levels"});
  refused(std::string(10'000, '['), {"nested deeper than 64 levels"});
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  refused(objects, {"nested deeper than 64 levels"});
  CHECK_NOTHROW(parse("[" + nested(63, '[', ']') + "," + nested(63, '[', ']') + "]"));
  CHECK_NOTHROW(parse("[1] ", 4));
  refused("[1]  ", {"5 bytes, expected at most 4"}, 4);
}

}  // namespace io_json_test
}  // namespace attn::test
