#include "attn/io/safetensors_stream.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "attn/io/safetensors.hpp"
#include "support/call.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace io_safetensors_stream_test {

using Bytes = std::vector<std::uint8_t>;
using detail::SafetensorsStream;

std::map<std::string, Array> streamed(const Bytes& bytes, const std::vector<std::size_t>& pieces) {
  SafetensorsStream stream;
  std::map<std::string, Array> tensors;
  std::vector<std::uint64_t> next;
  std::size_t turn = 0;
  bool has_header = false;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t size = std::min(pieces[turn++ % pieces.size()], bytes.size() - i);
    const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));  // its own memory
    i += size;
    stream.give(piece);
    if (!has_header && stream.has_header()) {
      has_header = true;
      next.assign(stream.entries().size(), 0);
      for (const detail::SafetensorsEntry& entry : stream.entries())
        if (entry.type->is_float) tensors.emplace(entry.name, Array(entry.shape, kNaN));
    }
    SafetensorsStream::Run run;
    while (stream.next(run)) {
      REQUIRE(run.entry < next.size());
      REQUIRE_FALSE(run.values.empty());
      REQUIRE(run.first == next[run.entry]);
      next[run.entry] += run.values.size();
      Array& tensor = tensors.at(stream.entries()[run.entry].name);
      REQUIRE(next[run.entry] <= tensor.data.size());
      std::copy(run.values.begin(), run.values.end(), tensor.data.begin() + static_cast<std::ptrdiff_t>(run.first));
    }
  }
  stream.finish();
  REQUIRE(has_header);
  for (std::size_t i = 0; i < next.size(); ++i)
    if (stream.entries()[i].type->is_float) REQUIRE(next[i] == stream.entries()[i].count());
  return tensors;
}

void same(const Bytes& bytes, const std::vector<std::size_t>& pieces) {
  const auto expected = arrays_of(parse_safetensors(bytes)), got = streamed(bytes, pieces);
  CHECK(got.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    REQUIRE(got.contains(name));
    CHECK_THAT(got.at(name), HasBitsOf(tensor));
  }
}

TEST_CASE("a file read in pieces of any size gives the numbers of the whole file", "[io]") {
  for (const char* name : {"safetensors_python", "safetensors_unaligned"}) {
    const Bytes bytes = bytes_of(testdata(std::string(name) + ".safetensors"));
    for (std::size_t piece = 1; piece <= 40; ++piece) {
      INFO(name << " in pieces of " << piece);
      same(bytes, {piece});
    }
    same(bytes, {bytes.size()});
    for (std::size_t first = 1; first < std::min<std::size_t>(bytes.size(), 300); ++first) same(bytes, {first, bytes.size()});
    Generator random(1);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::size_t> pieces;
      for (int i = 0; i < 20; ++i) pieces.push_back(1 + static_cast<std::size_t>(random.below(100)));
      same(bytes, pieces);
    }
  }
}

TEST_CASE("a tensor longer than one run arrives in several and is complete", "[io]") {
  Generator random(2);
  const Bytes bytes = write_safetensors(state_of({{"a", random.normal({3, 5000})}, {"b", random.normal({4096})}, {"c", random.normal({4097})}}), {});
  for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{16'384}, std::size_t{16'385}, std::size_t{50'001}}) same(bytes, {piece});
}

Bytes file(const std::string& header, std::size_t data_size, std::uint64_t header_size) {
  Bytes bytes(8);
  std::memcpy(bytes.data(), &header_size, 8);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + data_size);
  return bytes;
}
Bytes file(const std::string& header, std::size_t data_size = 0) { return file(header, data_size, header.size()); }

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ' ' + error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("an invalid header gives the same error in pieces as in a whole file", "[io]") {
  const Bytes wrong[] = {
      file("", 0, 0),
      file("[]"),
      file("7"),
      file("{"),
      file("{}{}"),
      file("{\"a\":1}"),
      file("{\"a\":{}}"),
      file("\xEF\xBB\xBF{}"),
      file(std::string("{}\0", 3)),
      file("{\"\xFF\":{}}"),
      file('{' + entry("a", "F32", "[1]", "[0,4]") + ',' + entry("a", "F32", "[1]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F8_E4M3", "[1]", "[0,1]") + '}', 1),
      file('{' + entry("a", "F32", "[-1]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F32", "[1.5]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F32", "[9007199254740991,9007199254740991]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F32", "[2]", "[0,4]") + '}', 4),
      file('{' + entry("a", "F32", "[1]", "[4,0]") + '}', 4),
      file('{' + entry("a", "F32", "[1]", "[4,8]") + '}', 8),
      file('{' + entry("a", "F32", "[1]", "[0,4]") + ',' + entry("b", "F32", "[1]", "[2,6]") + '}', 6),
      file('{' + entry("a", "F32", "[1]", "[0,4]") + ',' + entry("b", "F32", "[1]", "[5,9]") + '}', 9),
      file("{\"__metadata__\":{\"a\":1}}"),
  };
  for (const Bytes& bytes : wrong) {
    INFO(std::string(bytes.begin() + 8, bytes.end()));
    const std::string expected = message_of([&] { parse_safetensors(bytes); });
    CHECK(expected != "nothing was thrown");
    for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, bytes.size()}) CHECK(message_of([&] { streamed(bytes, {piece}); }) == expected);
  }
  SafetensorsStream stream;
  const Bytes huge = file("", 0, std::uint64_t{1} << 60);
  check_error({ErrorCode::format, "safetensors", "the file", {"longer than 16 MiB"}}, [&] { stream.give(huge); });
}

TEST_CASE("a file that is too short or too long is a FORMAT error", "[io]") {
  const Bytes bytes = file(
      '{' + entry("a", "F16", "[3]", "[0,6]") + ',' + entry("e", "F32", "[0,2]", "[6,6]") + ',' + entry("ids", "I64", "[1]", "[6,14]") + '}', 14);
  CHECK_NOTHROW(streamed(bytes, {3}));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    INFO(cut);
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    CHECK(message_of([&] { streamed(part, {3}); }).starts_with("FORMAT safetensors: the "));
  }
  Bytes longer = bytes;
  longer.push_back(0);
  for (std::size_t piece = 1; piece <= longer.size(); ++piece)
    CHECK(message_of([&] { streamed(longer, {piece}); }) ==
          "FORMAT safetensors: the file goes on after its last tensor, which ends at byte " + std::to_string(bytes.size()));
}

TEST_CASE("a file without tensors is valid", "[io]") {
  CHECK(streamed(file("{}"), {1}).empty());
  CHECK(streamed(file("{}"), {10}).empty());
  CHECK(message_of([] { streamed(file("{}", 1), {1}); }).find("ends at byte 10") != std::string::npos);
  CHECK(streamed(file('{' + entry("e", "F32", "[0]", "[0,0]") + '}'), {1}).size() == 1);
}

}  // namespace io_safetensors_stream_test
}  // namespace attn::test
