#include "attn/io/safetensors.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "support/call.hpp"
#include "support/float_environment.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace io_safetensors_test {

using Bytes = std::vector<std::uint8_t>;

Bytes file(const std::string& header, std::size_t data_size, std::uint64_t header_size) {
  Bytes bytes(8);
  std::memcpy(bytes.data(), &header_size, 8);
  bytes.insert(bytes.end(), header.begin(), header.end());
  for (std::size_t i = 0; i < data_size; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}
Bytes file(const std::string& header, std::size_t data_size = 0) { return file(header, data_size, header.size()); }

template <class T>
Bytes file_of(const std::string& dtype, const std::vector<T>& values) {
  const std::size_t size = values.size() * sizeof(T);
  Bytes bytes = file("{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + std::to_string(values.size()) + "],\"data_offsets\":[0," +
                     std::to_string(size) + "]}}");
  const std::size_t start = bytes.size();
  bytes.resize(start + size);
  std::memcpy(bytes.data() + start, values.data(), size);
  return bytes;
}

std::map<std::string, Array> parse(const Bytes& bytes) { return arrays_of(parse_safetensors(bytes)); }

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

/// Values that Python read; NaN and infinities are strings.
void check_against_json(const std::string& name) {
  const auto tensors = parse(bytes_of(testdata(name + ".safetensors")));
  const Bytes text = bytes_of(testdata(name + ".json"));
  const nlohmann::json described = nlohmann::json::parse(text.begin(), text.end()).at("tensors");
  CHECK(tensors.size() == described.size());
  for (const nlohmann::json& entry : described) {
    INFO(name << ", tensor " << entry.at("name") << " of dtype " << entry.at("dtype"));
    Array expected;
    for (const std::int64_t dim : entry.at("dims")) expected.dims.push_back(dim);
    for (const nlohmann::json& value : entry.at("data"))
      expected.data.push_back(value == "NaN" ? kNaN : value == "Infinity" ? kInfinity : value == "-Infinity" ? -kInfinity : value.get<float>());
    REQUIRE(tensors.contains(entry.at("name")));
    CHECK_THAT(tensors.at(entry.at("name")), HasBitsOf(expected));
  }
}

TEST_CASE("a file written by the safetensors package is read with every name, shape and bit", "[io]") { check_against_json("safetensors_python"); }

TEST_CASE("a valid file that no common writer produces is read", "[io]") { check_against_json("safetensors_unaligned"); }

double half_value(std::uint32_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(half >> 10 & 31), fraction = static_cast<int>(half & 1023);
  if (exponent == 31) return fraction == 0 ? sign * kInfinity : kNaN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST_CASE("all 65536 values of F16 and of BF16 are read exactly", "[io]") {
  std::vector<std::uint16_t> all(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) all[i] = static_cast<std::uint16_t>(i);
  Array halves({65536}), brains({65536});
  for (std::uint32_t i = 0; i < 65536; ++i) {
    halves.data[i] = static_cast<float>(half_value(i));
    const std::uint32_t bits = i << 16;
    std::memcpy(&brains.data[i], &bits, 4);
  }
  CHECK_THAT(parse(file_of("F16", all)).at("a"), HasBitsOf(halves));
  CHECK_THAT(parse(file_of("BF16", all)).at("a"), HasBitsOf(brains));
}

TEST_CASE("F32 keeps its bits and F64 is rounded to the nearest float", "[io]") {
  const std::vector<float> singles{0.0F, -0.0F, 1.5F, 1e-45F, 3.4e38F, kInfinity, -kInfinity, kNaN};
  CHECK_THAT(parse(file_of("F32", singles)).at("a"), HasBitsOf(Array({8}, singles)));
  const std::vector<double> doubles{0.1, -0.1, 1e300, -1e300, 1e-300, 16777217.0, static_cast<double>(kNaN)};
  CHECK_THAT(parse(file_of("F64", doubles)).at("a"), HasBitsOf(Array({7}, {0.1F, -0.1F, kInfinity, -kInfinity, 0, 16777216.0F, kNaN})));
}

TEST_CASE("F64 and F16 are read with the same bits in the floating-point environment of another library", "[io]") {
  std::vector<double> doubles;
  for (int i = 1; i < 100; ++i) doubles.insert(doubles.end(), {0.1 * i, -0.1 * i, 1e-42 * i});
  std::vector<std::uint16_t> halves(2048);  // half are subnormal
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("attn-" + std::to_string(std::random_device()()) + ".safetensors");
  for (const Bytes& bytes : {file_of("F64", doubles), file_of("F16", halves)}) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const Array expected = parse(bytes).at("a");
    const auto [parsed, read] = [&] {
      const ForeignEnvironment environment;
      return std::pair(parse_safetensors(bytes), read_safetensors(path));
    }();
    CHECK_THAT(arrays_of(parsed).at("a"), HasBitsOf(expected));
    CHECK_THAT(arrays_of(read).at("a"), HasBitsOf(expected));
  }
  std::filesystem::remove(path);
}

TEST_CASE("integer and bool tensors are checked and skipped", "[io]") {
  const std::pair<const char*, int> types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2}, {"I16", 2},
                                               {"U32", 4},  {"I32", 4}, {"U64", 8}, {"I64", 8}};
  for (const auto& [dtype, size] : types) {
    INFO(dtype);
    const std::string end = std::to_string(3 * size);
    const Bytes good = file('{' + entry("ids", dtype, "[3]", "[0," + end + "]") + ',' +
                                entry("w", "F32", "[1]", "[" + end + ',' + std::to_string(3 * size + 4) + "]") + '}',
                            static_cast<std::size_t>(3 * size + 4));
    const auto tensors = parse(good);
    CHECK(tensors.size() == 1);
    CHECK(tensors.contains("w"));
    check_error({ErrorCode::format, "safetensors", "", {"ids", "bytes"}},
                [&, type = dtype] { parse(file('{' + entry("ids", type, "[3]", "[0,1]") + '}', 1)); });
  }
}

TEST_CASE("everything that the format allows is read", "[io]") {
  struct Case {
    const char* what;
    Bytes bytes;
    std::map<std::string, Shape> shapes;
  };
  const Case cases[] = {
      {"no tensors", file("{}"), {}},
      {"white space around", file(" \n\t{ } \r\n  "), {}},
      {"metadata", file("{\"__metadata__\":{\"format\":\"pt\",\"a\":\"b\"}}"), {}},
      {"metadata that are null", file("{\"__metadata__\":null}"), {}},
      {"rank 0", file('{' + entry("x", "F32", "[]", "[0,4]") + '}', 4), {{"x", {}}}},
      {"no elements", file('{' + entry("x", "F32", "[3,0,2]", "[0,0]") + '}'), {{"x", {3, 0, 2}}}},
      {"rank 8", file('{' + entry("x", "F32", "[1,1,1,1,1,1,1,1]", "[0,4]") + '}', 4), {{"x", {1, 1, 1, 1, 1, 1, 1, 1}}}},
      {"entries in any order, not aligned",
       file('{' + entry("b", "F32", "[1]", "[1,5]") + ',' + entry("a", "U8", "[1]", "[0,1]") + '}', 5),
       {{"b", {1}}}},
      {"empty ones between others",
       file('{' + entry("b", "F32", "[1]", "[4,8]") + ',' + entry("e", "F32", "[0]", "[4,4]") + ',' + entry("a", "F32", "[1]", "[0,4]") + '}', 8),
       {{"a", {1}}, {"b", {1}}, {"e", {0}}}},
      {"an empty one with a large other dim", file('{' + entry("x", "F32", "[0,268435456]", "[0,0]") + '}'), {{"x", {0, 268435456}}}},
      {"fields in any order", file("{\"x\":{\"data_offsets\":[0,2],\"shape\":[1],\"dtype\":\"F16\"}}", 2), {{"x", {1}}}},
      {"escapes and other scripts in names",
       file("{\"a\\u00e9\\n\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}," + entry("β", "F32", "[0]", "[0,0]") + "}"),
       {{"β", {0}}}},
      {"__proto__", file('{' + entry("__proto__", "F32", "[0]", "[0,0]") + '}'), {{"__proto__", {0}}}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    std::map<std::string, Shape> shapes;
    for (const auto& [name, array] : parse(c.bytes)) shapes.emplace(name, array.dims);
    CHECK(shapes == c.shapes);
  }
}

TEST_CASE("the data of an entry is read from its offsets", "[io]") {
  Bytes bytes = file('{' + entry("second", "F32", "[2]", "[8,16]") + ',' + entry("first", "F32", "[2]", "[0,8]") + '}');
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F}) {
    std::uint8_t four[4];
    std::memcpy(four, &value, 4);
    bytes.insert(bytes.end(), four, four + 4);
  }
  const auto tensors = parse(bytes);
  CHECK_THAT(tensors.at("first"), HasBitsOf(Array({2}, {1, 2})));
  CHECK_THAT(tensors.at("second"), HasBitsOf(Array({2}, {3, 4})));
}

struct Refusal {
  const char* what;
  std::function<Bytes()> bytes;
  std::vector<std::string> words;
  ErrorCode code = ErrorCode::format;
};

const std::string kGood = entry("x", "F32", "[2]", "[0,8]");

const Refusal kRefusals[] = {
    {"no bytes", [] { return Bytes(); }, {"0 bytes"}},
    {"7 bytes", [] { return Bytes(7); }, {"7 bytes", "8"}},
    {"header length 0", [] { return file("", 0, 0); }, {"empty"}},
    {"header longer than the file", [] { return file("{}", 0, 3); }, {"longer than the file"}},
    {"header length of all ones", [] { return file("{}", 0, ~std::uint64_t{0}); }, {"longer than the file"}},
    {"header length minus 8 in 64 bits", [] { return file("{}", 0, ~std::uint64_t{0} - 7); }, {"longer than the file"}},
    {"a zip, PyTorch's own pickle",
     [] {
       const std::string_view zip = "PK\3\4 and so on";
       return Bytes(zip.begin(), zip.end());
     },
     {"is a zip, as torch.save() writes, expected safetensors. In Python", "save_file"}},
    {"a pickle, as older versions of PyTorch wrote it",
     [] {
       const std::string_view pickle =
           "\x80\2\x8a\nl\xfc\x9c"
           "F\xf9 j\xa8P\x19.";
       return Bytes(pickle.begin(), pickle.end());
     },
     {"is a pickle, as torch.save() writes, expected safetensors. In Python", "save_file"}},
    {"header over 16 MiB", [] { return file('{' + std::string((16 << 20) - 1, ' ') + '}'); }, {"16 MiB"}},
    {"HTML", [] { return file("<!doctype html><title>Not found</title>"); }, {"JSON"}},
    {"an LFS pointer",
     [] {
       const std::string text =
           "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n";
       return Bytes(text.begin(), text.end());
     },
     {"longer than the file"}},
    {"not UTF-8", [] { return file("{\"\xff\":{}}"); }, {"not UTF-8 near byte"}},
    {"a lone surrogate", [] { return file("{\"\\ud800\":{}}"); }, {"JSON"}},
    {"cut off JSON", [] { return file("{\"x\":{\"dtype\""); }, {"JSON"}},
    {"bytes after the JSON", [] { return file("{}x"); }, {"more than its object"}},
    {"a second value after the JSON", [] { return file("{}{}"); }, {"more than its object"}},
    {"a zero byte after the JSON", [] { return file(std::string("{}\0", 3)); }, {"JSON"}},
    {"text hidden behind a zero byte", [] { return file(std::string("{}\0junk", 7)); }, {"JSON"}},
    {"a byte order mark", [] { return file("\xef\xbb\xbf{}"); }, {"JSON"}},
    {"a comment", [] { return file("{/* */}"); }, {"JSON"}},
    {"a trailing comma", [] { return file("{" + entry("x", "F32", "[0]", "[0,0]") + ",}"); }, {"JSON"}},
    {"an array", [] { return file("[]"); }, {"an array", "object"}},
    {"a string", [] { return file("\"x\""); }, {"a string", "object"}},
    {"a number", [] { return file("5"); }, {"number"}},
    {"a negative number", [] { return file("-5"); }, {"number"}},
    {"a fraction", [] { return file("0.5"); }, {"number"}},
    {"null", [] { return file("null"); }, {"null", "object"}},
    {"white space alone", [] { return file("   "); }, {"JSON"}},
    {"an entry that is a number", [] { return file("{\"x\":1}"); }, {"\"x\"", "a number"}},
    {"an entry that is a negative number", [] { return file("{\"x\":-1}"); }, {"\"x\"", "number"}},
    {"an entry that is a string", [] { return file("{\"x\":\"F32\"}"); }, {"\"x\"", "a string"}},
    {"an entry that is an array", [] { return file("{\"x\":[]}"); }, {"\"x\"", "an array"}},
    {"an entry that is null", [] { return file("{\"x\":null}"); }, {"\"x\"", "null"}},
    {"an entry that is a bool", [] { return file("{\"x\":true}"); }, {"\"x\"", "true or false"}},
    {"two tensors of a name", [] { return file('{' + kGood + ',' + kGood + '}', 8); }, {"\"x\"", "twice"}},
    {"two metadata", [] { return file("{\"__metadata__\":{},\"__metadata__\":{}}"); }, {"__metadata__", "twice"}},
    {"a field twice",
     [] { return file("{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8); },
     {"\"x\"", "\"dtype\"", "twice"}},
    {"a metadata name twice", [] { return file("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"); }, {"\"a\"", "twice"}},
    {"an unknown field",
     [] { return file("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"extra\":1}}", 8); },
     {"\"x\"", "\"extra\""}},
    {"no dtype", [] { return file("{\"x\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8); }, {"\"x\"", "missing"}},
    {"no shape", [] { return file("{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8); }, {"\"x\"", "missing"}},
    {"no data_offsets", [] { return file("{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8); }, {"\"x\"", "missing"}},
    {"an empty entry", [] { return file("{\"x\":{}}"); }, {"\"x\"", "missing"}},
    {"an object in an entry", [] { return file("{\"x\":{\"shape\":{}}}"); }, {"\"x\"", "an object where it does not belong"}},
    {"an object in a shape", [] { return file("{\"x\":{\"shape\":[{}]}}"); }, {"\"x\"", "an object where it does not belong"}},
    {"an array in a shape", [] { return file("{\"x\":{\"shape\":[[1]]}}"); }, {"\"x\"", "an array"}},
    {"an object in metadata", [] { return file("{\"__metadata__\":{\"a\":{}}}"); }, {"__metadata__", "an object where it does not belong"}},
    {"100000 objects in each other",
     [] {
       std::string deep;
       for (int i = 0; i < 100'000; ++i) deep += "{\"shape\":";
       return file(deep);
     },
     {"an object"}},
    {"100000 arrays in each other", [] { return file("{\"x\":{\"shape\":" + std::string(100'000, '[')); }, {"an array"}},
    {"a number in metadata", [] { return file("{\"__metadata__\":{\"a\":1}}"); }, {"number"}},
    {"a negative number in metadata", [] { return file("{\"__metadata__\":{\"a\":-1}}"); }, {"number"}},
    {"an array in metadata", [] { return file("{\"__metadata__\":{\"a\":[]}}"); }, {"__metadata__", "an array"}},
    {"null in metadata", [] { return file("{\"__metadata__\":{\"a\":null}}"); }, {"__metadata__", "null"}},
    {"metadata that is a string", [] { return file("{\"__metadata__\":\"a\"}"); }, {"__metadata__", "a string"}},
    {"a dtype that is a number", [] { return file("{\"x\":{\"dtype\":1}}"); }, {"\"x\"", "a number"}},
    {"a dtype that is an array", [] { return file("{\"x\":{\"dtype\":[\"F32\"]}}"); }, {"\"x\"", "an array"}},
    {"a shape that is a number", [] { return file("{\"x\":{\"shape\":1}}"); }, {"\"x\"", "a number"}},
    {"a shape that is a string", [] { return file("{\"x\":{\"shape\":\"[2]\"}}"); }, {"\"x\"", "a string"}},
    {"a string in a shape", [] { return file("{\"x\":{\"shape\":[\"2\"]}}"); }, {"\"x\"", "a string"}},
    {"null in a shape", [] { return file("{\"x\":{\"shape\":[null]}}"); }, {"\"x\"", "null"}},
    {"true in a shape", [] { return file("{\"x\":{\"shape\":[true]}}"); }, {"\"x\"", "true or false"}},
    {"a negative dimension", [] { return file('{' + entry("x", "F32", "[-2]", "[0,8]") + '}', 8); }, {"\"x\"", "shape", "negative"}},
    {"a fractional dimension", [] { return file('{' + entry("x", "F32", "[2.0]", "[0,8]") + '}', 8); }, {"\"x\"", "shape", "whole"}},
    {"a dimension with an exponent", [] { return file('{' + entry("x", "F32", "[2e0]", "[0,8]") + '}', 8); }, {"\"x\"", "shape", "whole"}},
    {"a dimension above 2^53", [] { return file('{' + entry("x", "F32", "[9007199254740993]", "[0,8]") + '}', 8); }, {"\"x\"", "2^53"}},
    {"a dimension above 2^64", [] { return file('{' + entry("x", "F32", "[18446744073709551617]", "[0,8]") + '}', 8); }, {"\"x\"", "whole"}},
    {"rank 9", [] { return file('{' + entry("x", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + '}', 4); }, {"\"x\"", "more than 8"}},
    {"a product past 64 bits", [] { return file('{' + entry("x", "F32", "[4294967296,4294967296,2]", "[0,0]") + '}'); }, {"\"x\"", "too large"}},
    {"a product past 64 bits of an empty tensor",
     [] { return file('{' + entry("x", "F32", "[0,9007199254740992,9007199254740992]", "[0,0]") + '}'); },
     {"\"x\"", "too large"}},
    {"a product past 2^53", [] { return file('{' + entry("x", "F64", "[1125899906842625]", "[0,8]") + '}', 8); }, {"\"x\"", "too large"}},
    {"a negative offset", [] { return file('{' + entry("x", "F32", "[2]", "[-8,0]") + '}', 8); }, {"\"x\"", "data_offsets", "negative"}},
    {"a fractional offset", [] { return file('{' + entry("x", "F32", "[2]", "[0,8.0]") + '}', 8); }, {"\"x\"", "data_offsets", "whole"}},
    {"an offset above 2^53", [] { return file('{' + entry("x", "F32", "[2]", "[0,9007199254740993]") + '}', 8); }, {"\"x\"", "2^53"}},
    {"one offset", [] { return file('{' + entry("x", "F32", "[2]", "[8]") + '}', 8); }, {"\"x\"", "1 data_offsets"}},
    {"three offsets", [] { return file('{' + entry("x", "F32", "[2]", "[0,4,8]") + '}', 8); }, {"\"x\"", "3 data_offsets"}},
    {"no offsets", [] { return file('{' + entry("x", "F32", "[2]", "[]") + '}', 8); }, {"\"x\"", "0 data_offsets"}},
    {"reversed offsets", [] { return file('{' + entry("x", "F32", "[2]", "[8,0]") + '}', 8); }, {"\"x\"", "reversed"}},
    {"offsets past the end", [] { return file('{' + entry("x", "F32", "[2]", "[0,8]") + '}', 7); }, {"\"x\"", "after the file"}},
    {"fewer bytes than the shape", [] { return file('{' + entry("x", "F32", "[2]", "[0,7]") + '}', 7); }, {"\"x\"", "7 bytes, expected 8"}},
    {"more bytes than the shape", [] { return file('{' + entry("x", "F16", "[2]", "[0,8]") + '}', 8); }, {"\"x\"", "8 bytes, expected 4"}},
    {"bytes for no elements", [] { return file('{' + entry("x", "F32", "[0]", "[0,4]") + '}', 4); }, {"\"x\"", "4 bytes, expected 0"}},
    {"overlap",
     [] { return file('{' + entry("x", "F32", "[2]", "[0,8]") + ',' + entry("y", "F32", "[2]", "[4,12]") + '}', 12); },
     {"\"y\"", "overlaps"}},
    {"the same data twice",
     [] { return file('{' + entry("x", "F32", "[2]", "[0,8]") + ',' + entry("y", "F32", "[2]", "[0,8]") + '}', 8); },
     {"overlaps"}},
    {"an empty one inside another",
     [] { return file('{' + entry("x", "F32", "[2]", "[0,8]") + ',' + entry("y", "F32", "[0]", "[4,4]") + '}', 8); },
     {"\"y\"", "overlaps"}},
    {"a hole", [] { return file('{' + entry("x", "F32", "[1]", "[0,4]") + ',' + entry("y", "F32", "[1]", "[8,12]") + '}', 12); }, {"\"y\"", "hole"}},
    {"a hole at the start", [] { return file('{' + entry("x", "F32", "[1]", "[4,8]") + '}', 8); }, {"\"x\"", "hole"}},
    {"bytes after the last tensor", [] { return file('{' + kGood + '}', 9); }, {"has 9 bytes, expected 8"}},
    {"bytes without a tensor", [] { return file("{}", 1); }, {"has 1 bytes, expected 0"}},
    {"F8", [] { return file('{' + entry("x", "F8_E4M3", "[2]", "[0,2]") + '}', 2); }, {"\"x\"", "F8_E4M3"}, ErrorCode::unsupported},
    {"F4", [] { return file('{' + entry("x", "F4", "[2]", "[0,1]") + '}', 1); }, {"\"x\"", "F4"}, ErrorCode::unsupported},
    {"C64", [] { return file('{' + entry("x", "C64", "[1]", "[0,8]") + '}', 8); }, {"\"x\"", "C64"}, ErrorCode::unsupported},
    {"a dtype in lowercase", [] { return file('{' + entry("x", "f32", "[2]", "[0,8]") + '}', 8); }, {"\"x\"", "f32"}, ErrorCode::unsupported},
    {"more than 100000 tensors",
     [] {
       std::string header = "{";
       for (int i = 0; i <= 100'000; ++i) header += (i > 0 ? "," : "") + entry('t' + std::to_string(i), "U8", "[0]", "[0,0]");
       return file(header + '}');
     },
     {"100000"}},
};

TEST_CASE("everything that the safetensors format forbids is refused with its own message", "[io][errors]") {
  for (const Refusal& refusal : kRefusals) {
    INFO(refusal.what);
    const Bytes bytes = refusal.bytes();
    check_error({refusal.code, "safetensors", "", refusal.words}, [&] { parse_safetensors(bytes); });
  }
  CHECK(parse(file('{' + kGood + '}', 8)).size() == 1);
}

struct NamedRefusal {
  const char* what;
  std::function<Bytes()> bytes;
  const char* message;
};

const NamedRefusal kMessages[] = {
    {"file < 8 bytes", [] { return Bytes(7); }, "the file has 7 bytes, expected at least 8"},
    {"header length 0", [] { return file("", 0, 0); }, "the header is empty"},
    {"header length > file - 8", [] { return file("{}", 0, 3); }, "the header is longer than the file (3 of 10 bytes)"},
    {"header length > 16 MiB", [] { return file('{' + std::string((16 << 20) - 1, ' ') + '}'); }, "the header is longer than 16 MiB"},
    {"not UTF-8", [] { return file("{\"a\xc3\":{}}"); }, "the header is not UTF-8 near byte 5"},
    {"not JSON", [] { return file("{x}"); }, "the header is not valid JSON near byte 2"},
    {"not an object", [] { return file("[]"); }, "the header is an array, expected an object"},
    {"trailing bytes", [] { return file("{} {"); }, "the header has more than its object, from byte 4"},
    {"objects too deep", [] { return file("{\"x\":{\"shape\":{}}}"); }, "\"x\" has an object where it does not belong"},
    {"arrays too deep", [] { return file("{\"x\":{\"shape\":[[]]}}"); }, "\"x\" has an array where it does not belong"},
    {"> 100 000 tensors",
     [] {
       std::string header = "{";
       for (int i = 0; i <= 100'000; ++i) header += (i > 0 ? "," : "") + entry('t' + std::to_string(i), "U8", "[0]", "[0,0]");
       return file(header + '}');
     },
     "the header has more than 100000 tensors"},
    {"duplicate name", [] { return file('{' + kGood + ',' + kGood + '}', 8); }, "the name \"x\" appears twice"},
    {"duplicate field", [] { return file("{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"); }, "\"x\" has the field \"dtype\" twice"},
    {"duplicate metadata", [] { return file("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}"); }, "\"__metadata__\" has the field \"a\" twice"},
    {"negative offset", [] { return file('{' + entry("x", "F32", "[2]", "[-8,0]") + '}', 8); }, "data_offsets of \"x\" has a negative number"},
    {"fractional offset", [] { return file('{' + entry("x", "F32", "[2]", "[0,8.5]") + '}', 8); },
     "data_offsets of \"x\" has a number that is not whole"},
    {"offset > 2^53", [] { return file('{' + entry("x", "F32", "[2]", "[0,9007199254740993]") + '}', 8); },
     "data_offsets of \"x\" has a number above 2^53"},
    {"one offset", [] { return file('{' + entry("x", "F32", "[2]", "[8]") + '}', 8); }, "\"x\" has 1 data_offsets, expected 2"},
    {"reversed offsets", [] { return file('{' + entry("x", "F32", "[2]", "[8,0]") + '}', 8); }, "\"x\" has reversed data_offsets"},
    {"overlapping", [] { return file('{' + kGood + ',' + entry("y", "F32", "[2]", "[4,12]") + '}', 12); },
     "\"y\" has data that overlaps another tensor"},
    {"hole", [] { return file('{' + entry("x", "F32", "[1]", "[4,8]") + '}', 8); }, "\"x\" has a hole before its data"},
    {"past the end", [] { return file('{' + kGood + '}', 7); }, "\"x\" has data that ends after the file"},
    {"not ending at the end", [] { return file('{' + kGood + '}', 9); }, "the data has 9 bytes, expected 8, the end of the tensors"},
    {"byte length", [] { return file('{' + entry("x", "F32", "[2]", "[0,7]") + '}', 7); }, "\"x\" has 7 bytes, expected 8 for its dtype and shape"},
    {"product overflow", [] { return file('{' + entry("x", "F32", "[4294967296,4294967296]", "[0,0]") + '}'); },
     "\"x\" has a shape whose product is too large"},
    {"rank > 8", [] { return file('{' + entry("x", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + '}', 4); }, "shape of \"x\" has more than 8 numbers"},
    {"negative dimension", [] { return file('{' + entry("x", "F32", "[-2]", "[0,8]") + '}', 8); }, "shape of \"x\" has a negative number"},
    {"fractional dimension", [] { return file('{' + entry("x", "F32", "[2.0]", "[0,8]") + '}', 8); },
     "shape of \"x\" has a number that is not whole"},
    {"dimension > 2^53", [] { return file('{' + entry("x", "F32", "[9007199254740993]", "[0,8]") + '}', 8); },
     "shape of \"x\" has a number above 2^53"},
    {"extra field", [] { return file("{\"x\":{\"extra\":1}}"); }, "\"x\" has the unknown field \"extra\""},
    {"missing field", [] { return file("{\"x\":{\"dtype\":\"F32\",\"shape\":[0]}}"); }, "\"x\" is missing dtype, shape or data_offsets"},
    {"entry that is no object", [] { return file("{\"x\":\"F32\"}"); }, "\"x\" has a string where it does not belong"},
    {"field of another type", [] { return file("{\"x\":{\"dtype\":1}}"); }, "\"x\" has a number where it does not belong"},
    {"non-string metadata", [] { return file("{\"__metadata__\":{\"a\":1}}"); }, "__metadata__ has a number, expected strings"},
    {"F8", [] { return file('{' + entry("x", "F8_E5M2", "[2]", "[0,2]") + '}', 2); }, "\"x\" has dtype F8_E5M2, which is not supported"},
    {"F4", [] { return file('{' + entry("x", "F4", "[2]", "[0,1]") + '}', 1); }, "\"x\" has dtype F4, which is not supported"},
    {"C64", [] { return file('{' + entry("x", "C64", "[1]", "[0,8]") + '}', 8); }, "\"x\" has dtype C64, which is not supported"},
};

TEST_CASE("every refusal of a safetensors file has its own message", "[io][errors]") {
  std::set<std::string> messages;
  for (const NamedRefusal& refusal : kMessages) {
    INFO(refusal.what);
    const Bytes bytes = refusal.bytes();
    try {
      parse_safetensors(bytes);
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      const bool unsupported = std::string(refusal.message).find("dtype") < 12 && std::string(refusal.message).ends_with("not supported");
      CHECK(to_string(error.code()) == (unsupported ? "UNSUPPORTED" : "FORMAT"));
      CHECK(std::string(error.what()) == std::string("safetensors: ") + refusal.message);
      messages.insert(error.what());
    }
  }
  CHECK(messages.size() == std::size(kMessages));
}

TEST_CASE("a number in place of an object is refused, whatever its sign", "[io][errors]") {
  for (const char* number : {"5", "-5", "0.5", "1e3", "123456789012345678901234567890"}) {
    INFO(number);
    check_error({ErrorCode::format, "safetensors", "", {"the header is a number, expected an object"}}, [&] { parse_safetensors(file(number)); });
    check_error({ErrorCode::format, "safetensors", "", {"__metadata__ has a number, expected strings"}},
                [&] { parse_safetensors(file("{\"__metadata__\":{\"a\":" + std::string(number) + "}}")); });
    check_error({ErrorCode::format, "safetensors", "", {"\"x\" has a number where it does not belong"}},
                [&] { parse_safetensors(file("{\"x\":" + std::string(number) + "}")); });
  }
}

TEST_CASE("every byte sequence that is not UTF-8 is refused, and valid ones are accepted", "[io][errors]") {
  const std::string bad[] = {"\x80",
                             "\xbf",
                             "\xc0\x80",
                             "\xc1\xbf",
                             "\xc3",
                             "\xc3(",
                             "\xe0\x80\x80",
                             "\xe0\x9f\xbf",
                             "\xe2\x82",
                             "\xe2(\xa1",
                             "\xe2\x82(",
                             "\xed\xa0\x80",
                             "\xed\xbf\xbf",
                             "\xf0\x80\x80\x80",
                             "\xf0\x8f\xbf\xbf",
                             "\xf0\x9f\x98",
                             "\xf4\x90\x80\x80",
                             "\xf5\x80\x80\x80",
                             "\xfe",
                             "\xff",
                             "\xf8\x88\x80\x80\x80"};
  for (const std::string& bytes : bad) {
    INFO("bytes " << ::Catch::Detail::stringify(std::vector<int>(bytes.begin(), bytes.end())));
    check_error({ErrorCode::format, "safetensors", "", {"the header is not UTF-8 near byte "}},
                [&] { parse_safetensors(file("{\"ab" + bytes + "\":{}}")); });
  }
  for (const std::string good :
       {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    INFO("bytes " << ::Catch::Detail::stringify(std::vector<int>(good.begin(), good.end())));
    CHECK(parse(file('{' + entry(good, "F32", "[0]", "[0,0]") + '}')).contains(good));
  }
}

TEST_CASE("every truncated file is refused", "[io][errors]") {
  const Bytes whole = file('{' + entry("x", "F32", "[2]", "[0,8]") + ',' + entry("y", "F16", "[3]", "[8,14]") + '}', 14);
  CHECK(parse(whole).size() == 2);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size << " of " << whole.size() << " bytes");
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(parse_safetensors(part), Error);
  }
}

TEST_CASE("a file with any one byte changed is either read or refused", "[io][errors]") {
  const Bytes whole = file('{' + entry("x", "F32", "[2]", "[0,8]") + ',' + entry("y", "F16", "[3]", "[8,14]") + '}', 14);
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int by : {1, 2, 16, 32, 128}) {
      Bytes changed = whole;
      changed[i] = static_cast<std::uint8_t>(changed[i] ^ by);
      try {
        parse_safetensors(changed);
      } catch (const Error& error) {
        ++refused;
        CHECK((error.code() == ErrorCode::format || error.code() == ErrorCode::unsupported));
      }
    }
  CHECK(refused > 300);
}

TEST_CASE("tensors over the memory limit are refused before memory is allocated", "[io][errors]") {
  const Bytes bytes = file('{' + entry("x", "F16", "[1000]", "[0,2000]") + '}', 2000);
  set_memory_limit(3999);
  check_error({ErrorCode::memory, "safetensors", "", {"4000 bytes"}}, [&] { parse_safetensors(bytes); });
  set_memory_limit(4000);
  CHECK_NOTHROW(parse_safetensors(bytes));
  set_memory_limit(std::uint64_t{1} << 63);
}

nlohmann::json header_of(const Bytes& bytes) {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  return nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(size));
}

std::uint64_t data_start(const Bytes& bytes) {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  return 8 + size;
}

std::vector<std::uint32_t> raw_bits(const Array& x) {
  std::vector<std::uint32_t> bits;
  for (const float value : x.data) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST_CASE("written tensors are read back with every name, shape and bit", "[io]") {
  Generator random(1);
  std::map<std::string, Array> tensors;
  for (const Shape& dims : {Shape{}, Shape{0}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{1, 2, 1, 2, 1, 1, 1, 3}, Shape{65, 33}}) {
    Array x(dims);
    for (float& value : x.data) value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    tensors.emplace("tensor " + to_string(dims), x);
  }
  Array corners({9});
  const std::uint32_t bits[] = {0x80000000, 1, 0x807fffff, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345};
  for (std::size_t i = 0; i < 9; ++i) corners.data[i] = std::bit_cast<float>(bits[i]);
  tensors.emplace("corners", corners);
  for (const char* name :
       {"", " ", "a\"b\\c\n\t", "\x01", "\x7f", "β", "模型.层", "\xf0\x9f\x98\x80", "__proto__", "constructor", "__metadata__.a", "/"})
    tensors.emplace(name, random.normal({2}));
  const auto got = parse(write_safetensors(state_of(tensors)));
  REQUIRE(got.size() == tensors.size());
  for (const auto& [name, array] : tensors) {
    INFO(name);
    REQUIRE(got.contains(name));
    CHECK(got.at(name).dims == array.dims);
    CHECK(raw_bits(got.at(name)) == raw_bits(array));
  }
}

TEST_CASE("a file is written with sorted names, F32, metadata and data aligned to 8 bytes", "[io]") {
  Generator random(2);
  for (const std::map<std::string, std::string>& metadata :
       {std::map<std::string, std::string>{}, {{"format", "pt"}}, {{"", ""}, {"a", "\"quoted\" β\n"}, {"format", "pt"}}})
    for (std::size_t count = 0; count < 12; ++count) {
      std::map<std::string, Array> tensors;
      for (std::size_t i = 0; i < count; ++i)
        tensors.emplace(std::string(i, 'x') + std::to_string(i), random.normal({static_cast<std::int64_t>(i % 3), 3}));
      INFO(count << " tensors, " << metadata.size() << " entries of metadata");
      const Bytes bytes = write_safetensors(state_of(tensors), metadata);
      CHECK(data_start(bytes) % 8 == 0);
      CHECK(bytes[8] == '{');
      nlohmann::json header = header_of(bytes);
      if (metadata.empty())
        CHECK_FALSE(header.contains("__metadata__"));
      else
        CHECK(header.at("__metadata__").get<std::map<std::string, std::string>>() == metadata);
      header.erase("__metadata__");
      CHECK(header.size() == count);
      std::uint64_t end = 0;
      for (const auto& [name, array] : tensors) {
        const nlohmann::json& described = header.at(name);
        CHECK(described.size() == 3);
        CHECK(described.at("dtype") == "F32");
        CHECK(described.at("shape").get<std::vector<std::int64_t>>() == std::vector<std::int64_t>(array.dims.begin(), array.dims.end()));
        CHECK(described.at("data_offsets").get<std::vector<std::uint64_t>>() == std::vector<std::uint64_t>{end, end + 4 * array.data.size()});
        end += 4 * array.data.size();
      }
      CHECK(bytes.size() == data_start(bytes) + end);
      const std::string text(bytes.begin() + 8, bytes.begin() + static_cast<std::ptrdiff_t>(data_start(bytes)));
      std::size_t at = metadata.empty() ? 0 : text.find("__metadata__");
      CHECK(at <= 2);
      for (const auto& [name, array] : tensors) {
        const std::size_t found = text.find('"' + name + "\":{\"dtype\"");
        CHECK(found != std::string::npos);
        CHECK(found >= at);
        at = found;
      }
      CHECK(parse(bytes) == tensors);
      CHECK(write_safetensors(state_of(tensors), metadata) == bytes);
    }
}

TEST_CASE("a file written by Python is written again with the same tensors", "[io]") {
  const StateDict tensors = parse_safetensors(bytes_of(testdata("safetensors_python.safetensors")));
  const auto again = parse(write_safetensors(tensors));
  for (const auto& [name, array] : arrays_of(tensors)) {
    INFO(name);
    CHECK(raw_bits(again.at(name)) == raw_bits(array));
  }
}

TEST_CASE("names and metadata that a file cannot store are refused", "[io][errors]") {
  const char* op = "write_safetensors";
  const auto write = [](const std::string& name, const std::map<std::string, std::string>& metadata = {}) {
    write_safetensors(state_of({{name, Array({1})}}), metadata);
  };
  check_error({ErrorCode::argument, op, "a name", {"__metadata__"}}, [&] { write("__metadata__"); });
  for (const std::string bad : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80"}) {
    check_error({ErrorCode::argument, op, "", {"UTF-8"}}, [&] { write(bad); });
    check_error({ErrorCode::argument, op, "", {"UTF-8"}}, [&] { write("x", {{bad, "value"}}); });
    check_error({ErrorCode::argument, op, "", {"UTF-8"}}, [&] { write("x", {{"key", bad}}); });
  }
  check_error({ErrorCode::argument, op, "tensors", {"16 MiB"}}, [&] { write(std::string(16 << 20, 'x')); });
  StateDict many;
  for (int i = 0; i < 100'000; ++i) many.emplace('t' + std::to_string(i), detail::empty_any({0}));
  CHECK(parse_safetensors(write_safetensors(many)).size() == 100'000);
  check_error({ErrorCode::argument, op, "tensors", {"100001 names", "at most 100000 names"}}, [&] { write_safetensors(many, {{"a", "b"}}); });
  many.emplace("one more", detail::empty_any({0}));
  check_error({ErrorCode::argument, op, "tensors", {"100001 names"}}, [&] { write_safetensors(many); });
  CHECK_NOTHROW(write("x"));
}

TEST_CASE("tensors over the memory limit are not written", "[io][errors]") {
  StateDict state;
  state.emplace("x", AnyTensor(std::vector<std::size_t>{2, 3}, xt::layout_type::row_major));
  CHECK_NOTHROW(write_safetensors(state));
  set_memory_limit(23);
  check_error({ErrorCode::memory, "write_safetensors", "", {"24 bytes"}}, [&] { write_safetensors(state); });
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("a path that cannot be read is a FORMAT error that names the path", "[io][errors]") {
  check_error({ErrorCode::format, "read_safetensors", "", {"no-such-file.safetensors", "is missing, expected a regular file"}},
              [] { read_safetensors(testdata("no-such-file.safetensors")); });
  check_error({ErrorCode::format, "read_safetensors", "", {"testdata", "is a folder"}}, [] { read_safetensors(testdata("")); });
}

TEST_CASE("a file and its bytes give the same tensors", "[io]") {
  for (const char* name : {"minilm_layer0", "safetensors_python", "safetensors_unaligned"}) {
    const std::filesystem::path path = testdata(std::string(name) + ".safetensors");
    const auto read = arrays_of(read_safetensors(path)), parsed = parse(bytes_of(path));
    REQUIRE(read.size() == parsed.size());
    for (const auto& [tensor, values] : parsed) CHECK_THAT(read.at(tensor), HasBitsOf(values));
  }
}

TEST_CASE("a file is refused with the same message as its bytes", "[io][errors]") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("attn-safetensors-" + std::to_string(std::random_device()()));
  const Bytes good = file('{' + entry("x", "F16", "[1000]", "[0,2000]") + '}', 2000);
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{30}, good.size() - 1, good.size()}) {
    INFO(size);
    const Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    CHECK(message_of([&] { read_safetensors(path); }) == message_of([&] { parse(bytes); }));
  }
  std::filesystem::remove(path);
}

}  // namespace io_safetensors_test
}  // namespace attn::test
