#include "attn/io/safetensors_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "attn/io/float_formats.hpp"
#include "attn/io/json_events.hpp"
#include "attn/io/safetensors_limits.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/sort.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::uint64_t kMaxExact = std::uint64_t{1} << 53;  // JavaScript numbers are exact up to here

constexpr SafetensorsType kTypes[] = {{"F32", 4, true},  {"F16", 2, true},  {"BF16", 2, true}, {"F64", 8, true},  {"BOOL", 1, false},
                                      {"U8", 1, false},  {"I8", 1, false},  {"U16", 2, false}, {"I16", 2, false}, {"U32", 4, false},
                                      {"I32", 4, false}, {"U64", 8, false}, {"I64", 8, false}};

template <class T>
T load(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

[[noreturn]] void refuse_tensor(const std::string& name, std::initializer_list<TextPart> parts) {
  refuse_safetensors({"\"", name, "\" has ", text(parts)});
}

struct RawEntry {
  std::string name = {}, dtype = {};
  std::optional<std::vector<std::uint64_t>> shape = {}, offsets = {};
};

/// Detects duplicate names and stores only the entries.
class HeaderReader : public JsonEvents {
 public:
  std::vector<RawEntry> entries;

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ > 2) refuse_safetensors({where(), " has an object where it does not belong"});
    if (depth_ == 2 && !in_metadata_) entries.push_back({.name = name_});
    fields_.clear();
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      const RawEntry& entry = entries.back();
      if (entry.dtype.empty() || !entry.shape || !entry.offsets) refuse_safetensors({where(), " is missing dtype, shape or data_offsets"});
    }
    if (depth_ == 2) in_metadata_ = false;
    complete_ = --depth_ == 0;
    return true;
  }
  bool key(std::string& key) override {
    if (depth_ == 1) {
      if (!names_.insert(key).second) refuse_safetensors({"the name \"", key, "\" appears twice"});
      if (names_.size() > kMaxTensors) refuse_safetensors({"the header has more than ", kMaxTensors, " tensors"});
      name_ = key;
      in_metadata_ = key == "__metadata__";
    } else {
      if (!fields_.insert(key).second) refuse_safetensors({where(), " has the field \"", key, "\" twice"});
      if (!in_metadata_ && key != "dtype" && key != "shape" && key != "data_offsets")
        refuse_safetensors({where(), " has the unknown field \"", key, "\""});
      field_ = key;
    }
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || in_array_ || field_ != "dtype") unexpected("a string");
    entries.back().dtype = value;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == "dtype") unexpected("an array");
    in_array_ = true;
    numbers().emplace();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!in_array_) unexpected("a number");
    if (value > kMaxExact) refuse_safetensors({field_, " of ", where(), " has a number above 2^53"});
    if (numbers()->size() == Shape::kMaxRank) refuse_safetensors({field_, " of ", where(), " has more than 8 numbers"});
    numbers()->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t) override {
    if (!in_array_) unexpected("a number");
    refuse_safetensors({field_, " of ", where(), " has a negative number"});
  }
  bool number_float(double, const std::string&) override {
    if (!in_array_) unexpected("a number");
    refuse_safetensors({field_, " of ", where(), " has a number that is not whole"});
  }
  bool boolean(bool) override { unexpected("true or false"); }
  bool null() override {
    if (depth_ != 1 || !in_metadata_) unexpected("null");
    in_metadata_ = false;
    return true;
  }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    if (std::strstr(error.what(), "UTF-8") != nullptr) refuse_safetensors({"the header is not UTF-8 near byte ", position});
    if (complete_) refuse_safetensors({"the header has more than its object, from byte ", position});
    refuse_safetensors({"the header is not valid JSON near byte ", position});
  }

 private:
  std::optional<std::vector<std::uint64_t>>& numbers() { return field_ == "shape" ? entries.back().shape : entries.back().offsets; }
  std::string where() const { return depth_ == 0 ? "the header" : text({"\"", name_, "\""}); }
  [[noreturn]] void unexpected(const char* got) const {
    if (depth_ == 0) refuse_safetensors({"the header is ", got, ", expected an object"});
    if (depth_ == 2 && in_metadata_) refuse_safetensors({"__metadata__ has ", got, ", expected strings"});
    refuse_safetensors({where(), " has ", got, " where it does not belong"});
  }

  std::set<std::string> names_, fields_;
  std::string name_, field_;
  std::size_t depth_ = 0;
  bool in_metadata_ = false, in_array_ = false, complete_ = false;
};

std::vector<RawEntry> read_header(std::span<const std::uint8_t> header) {
  // The parser stops at a zero byte and skips a byte order mark, but neither is valid JSON.
  const auto zero = std::find(header.begin(), header.end(), 0);
  if (header[0] == 0xEF || zero != header.end())
    refuse_safetensors({"the header is not valid JSON near byte ", header[0] == 0xEF ? 0 : zero - header.begin()});
  HeaderReader reader;
  parse_json_events(header, reader);
  return std::move(reader.entries);
}

const SafetensorsType& type_of(const RawEntry& entry) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const SafetensorsType& type) { return type.name == entry.dtype; });
  if (found == std::end(kTypes))
    refuse_safetensors({"\"", entry.name, "\" has dtype ", entry.dtype, ", which is not supported"}, ErrorCode::unsupported);
  return *found;
}

std::uint64_t byte_size(const RawEntry& entry, const SafetensorsType& type) {
  // The strides of an empty tensor must also fit.
  constexpr std::uint64_t kMost = std::min<std::uint64_t>(kMaxExact, std::numeric_limits<std::ptrdiff_t>::max());
  std::uint64_t size = type.size;
  bool empty = false;
  for (const std::uint64_t dim : *entry.shape) {
    empty = empty || dim == 0;
    if (dim > kMost / size) refuse_tensor(entry.name, {"a shape whose product is too large"});
    if (dim > 0) size *= dim;
  }
  return empty ? 0 : size;
}

SafetensorsEntry checked(const RawEntry& entry, std::optional<std::uint64_t> data_size) {
  const SafetensorsType& type = type_of(entry);
  if (entry.offsets->size() != 2) refuse_tensor(entry.name, {entry.offsets->size(), " data_offsets, expected 2"});
  const std::uint64_t first = (*entry.offsets)[0], last = (*entry.offsets)[1], size = byte_size(entry, type);
  if (last < first) refuse_tensor(entry.name, {"reversed data_offsets"});
  if (data_size && last > *data_size) refuse_tensor(entry.name, {"data that ends after the file"});
  if (last - first != size) refuse_tensor(entry.name, {last - first, " bytes, expected ", size, " for its dtype and shape"});
  return {entry.name, &type, to_shape(*entry.shape), first, last};
}

void check_layout(const std::vector<SafetensorsEntry>& entries, std::optional<std::uint64_t> data_size) {
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.first < end) refuse_tensor(entry.name, {"data that overlaps another tensor"});
    if (entry.first > end) refuse_tensor(entry.name, {"a hole before its data"});
    end = entry.last;
  }
  if (data_size && end != *data_size) refuse_safetensors({"the data has ", *data_size, " bytes, expected ", end, ", the end of the tensors"});
}

}  // namespace

void refuse_safetensors(std::initializer_list<TextPart> parts, ErrorCode code, std::string_view help) {
  const std::string what = text(parts);
  ErrorDetail detail = error_detail("safetensors", "the file");
  detail.emplace("got", what);
  if (!help.empty()) detail.emplace("help", std::string(help));
  throw Error(code, text({"safetensors: ", what}), std::move(detail));
}

void check_safetensors_size(std::uint64_t file_size) {
  if (file_size < kSafetensorsPrefix) refuse_safetensors({"the file has ", file_size, " bytes, expected at least 8"});
}

std::size_t safetensors_header_size(const std::uint8_t* prefix, std::optional<std::uint64_t> file_size) {
  const auto size = load<std::uint64_t>(prefix);
  if (size == 0) refuse_safetensors({"the header is empty"});
  const bool is_zip = static_cast<std::uint32_t>(size) == 0x04034b50;  // "PK"
  // Safetensors may begin with the pickle bytes, but then the header is short.
  if (is_zip || (static_cast<std::uint16_t>(size) == 0x0280 && size > kMaxHeader))
    refuse_safetensors({"the file is a ", is_zip ? "zip" : "pickle", ", as torch.save() writes, expected safetensors"}, ErrorCode::format,
                       "In Python safetensors.torch.save_file(torch.load(path), other) converts it");
  if (file_size && size > *file_size - kSafetensorsPrefix)
    refuse_safetensors({"the header is longer than the file (", std::to_string(size), " of ", *file_size, " bytes)"});
  if (size > kMaxHeader) refuse_safetensors({"the header is longer than 16 MiB"});
  return static_cast<std::size_t>(size);
}

std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::uint8_t> header, std::optional<std::uint64_t> data_size) {
  std::vector<SafetensorsEntry> entries;
  for (const RawEntry& entry : read_header(header)) entries.push_back(checked(entry, data_size));
  sort_compactly(entries,
                 [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return std::pair(a.first, a.last) < std::pair(b.first, b.last); });
  check_layout(entries, data_size);
  return entries;
}

void check_safetensors_memory(std::span<const SafetensorsEntry> entries) {
  MemoryEstimate memory("safetensors");
  for (const SafetensorsEntry& entry : entries)
    if (entry.type->is_float) memory.add(entry.name, {static_cast<std::int64_t>(entry.count())});
  memory.check();
}

void convert_floats(const SafetensorsType& type, const std::uint8_t* bytes, float* values, std::size_t count) {
  const FloatEnvironment environment;
  if (type.name == "F32") {
    if (count > 0) std::memcpy(values, bytes, count * sizeof(float));
  } else if (type.name == "F16") {
    for (std::size_t i = 0; i < count; ++i) values[i] = float_from_half(load<std::uint16_t>(bytes + 2 * i));
  } else if (type.name == "BF16") {
    for (std::size_t i = 0; i < count; ++i) values[i] = float_from_bfloat16(load<std::uint16_t>(bytes + 2 * i));
  } else {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(load<double>(bytes + 8 * i));
  }
}

}  // namespace attn::detail
