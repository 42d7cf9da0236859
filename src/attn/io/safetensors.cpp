#include "attn/io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attn/io/float_formats.hpp"
#include "attn/io/safetensors_limits.hpp"

// A list of refusals: whatever gets past them is in bounds. One message each.
namespace attn {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::uint64_t kMaxExact = std::uint64_t{1} << 53;  // what JavaScript's numbers hold exactly

struct DType {
  std::string_view name;
  std::uint64_t size;
  bool is_float;
};
constexpr DType kDTypes[] = {{"F32", 4, true},  {"F16", 2, true},  {"BF16", 2, true}, {"F64", 8, true},  {"BOOL", 1, false},
                             {"U8", 1, false},  {"I8", 1, false},  {"U16", 2, false}, {"I16", 2, false}, {"U32", 4, false},
                             {"I32", 4, false}, {"U64", 8, false}, {"I64", 8, false}};

[[noreturn]] void refuse(std::initializer_list<TextPart> parts, ErrorCode code = ErrorCode::format) {
  const std::string what = text(parts);
  ErrorDetail detail = error_detail("safetensors", "the file");
  detail.emplace("got", what);
  throw Error(code, text({"safetensors: ", what}), std::move(detail));
}

/// A refusal that speaks of one tensor.
[[noreturn]] void refuse_tensor(const std::string& name, std::initializer_list<TextPart> parts) { refuse({"\"", name, "\": ", text(parts)}); }

struct Entry {
  std::string name = {}, dtype = {};
  std::optional<std::vector<std::uint64_t>> shape = {}, offsets = {};
};

/// The header as events of the JSON parser, so that duplicate names are seen and nothing but the entries is kept.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ > 2) refuse({where(), ": an object where it does not belong"});
    if (depth_ == 2 && !in_metadata_) entries.push_back({.name = name_});
    fields_.clear();
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      const Entry& entry = entries.back();
      if (entry.dtype.empty() || !entry.shape || !entry.offsets) refuse({where(), ": dtype, shape or data_offsets is missing"});
    }
    if (depth_ == 2) in_metadata_ = false;
    complete_ = --depth_ == 0;
    return true;
  }
  bool key(std::string& key) override {
    if (depth_ == 1) {
      if (!names_.insert(key).second) refuse({"the name \"", key, "\" appears twice"});
      if (names_.size() > detail::kMaxTensors) refuse({"more than ", detail::kMaxTensors, " tensors"});
      name_ = key;
      in_metadata_ = key == "__metadata__";
    } else {
      if (!fields_.insert(key).second) refuse({where(), ": the field \"", key, "\" appears twice"});
      if (!in_metadata_ && key != "dtype" && key != "shape" && key != "data_offsets") refuse({where(), ": unknown field \"", key, "\""});
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
    if (value > kMaxExact) refuse({where(), ": ", field_, " has a number above 2^53"});
    if (numbers()->size() == Shape::kMaxRank) refuse({where(), ": ", field_, " has more than 8 numbers"});
    numbers()->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t) override {
    if (!in_array_) unexpected("a number");
    refuse({where(), ": ", field_, " has a negative number"});
  }
  bool number_float(double, const std::string&) override {
    if (!in_array_) unexpected("a number");
    refuse({where(), ": ", field_, " has a number that is not whole"});
  }
  bool boolean(bool) override { unexpected("true or false"); }
  bool null() override { unexpected("null"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    if (std::strstr(error.what(), "UTF-8") != nullptr) refuse({"the header is not UTF-8 near byte ", position});
    if (complete_) refuse({"the header has more than its object, from byte ", position});
    refuse({"the header is not valid JSON near byte ", position});
  }

 private:
  std::optional<std::vector<std::uint64_t>>& numbers() { return field_ == "shape" ? entries.back().shape : entries.back().offsets; }
  std::string where() const { return depth_ == 0 ? "the header" : text({"\"", name_, "\""}); }
  [[noreturn]] void unexpected(const char* got) const {
    if (depth_ == 0) refuse({"the header is ", got, ", expected an object"});
    if (depth_ == 2 && in_metadata_) refuse({"__metadata__ has ", got, ", expected strings"});
    refuse({where(), ": ", got, " where it does not belong"});
  }

  std::set<std::string> names_, fields_;
  std::string name_, field_;
  std::size_t depth_ = 0;
  bool in_metadata_ = false, in_array_ = false, complete_ = false;
};

std::vector<Entry> read_header(std::span<const std::uint8_t> header) {
  // The parser takes a zero byte for the end of its input and skips a byte order mark. Neither is JSON.
  const auto zero = std::find(header.begin(), header.end(), 0);
  if (header[0] == 0xEF || zero != header.end()) refuse({"the header is not valid JSON near byte ", header[0] == 0xEF ? 0 : zero - header.begin()});
  HeaderReader reader;
  nlohmann::json::sax_parse(header.begin(), header.end(), &reader);
  return std::move(reader.entries);
}

const DType& dtype_of(const Entry& entry) {
  const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const DType& type) { return type.name == entry.dtype; });
  if (found == std::end(kDTypes)) refuse({"\"", entry.name, "\" has dtype ", entry.dtype, ", which is not supported"}, ErrorCode::unsupported);
  return *found;
}

/// Bytes that dtype and shape need.
std::uint64_t byte_size(const Entry& entry, const DType& type) {
  // The strides of an empty tensor have to fit too.
  constexpr std::uint64_t kMost = std::min<std::uint64_t>(kMaxExact, std::numeric_limits<std::ptrdiff_t>::max());
  std::uint64_t size = type.size;
  bool empty = false;
  for (const std::uint64_t dim : *entry.shape) {
    empty = empty || dim == 0;
    if (dim > kMost / size) refuse_tensor(entry.name, {"the product of its shape is too large"});
    if (dim > 0) size *= dim;
  }
  return empty ? 0 : size;
}

template <class T>
T load(const std::uint8_t* bytes) {  // bytes need not be aligned
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void convert(const DType& type, const std::uint8_t* bytes, float* values, std::size_t count) {
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

/// Entries must cover the data from its begin to its end, without overlap or hole.
void check_layout(const std::vector<Entry>& entries, std::uint64_t data_size) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return *a->offsets < *b->offsets; });
  std::uint64_t end = 0;
  for (const Entry* entry : order) {
    const std::uint64_t first = (*entry->offsets)[0], last = (*entry->offsets)[1];
    if (first < end) refuse_tensor(entry->name, {"its data overlaps another tensor's"});
    if (first > end) refuse_tensor(entry->name, {"there is a hole before its data"});
    end = last;
  }
  if (end != data_size) refuse({"tensors end at byte ", end, " of the data, which has ", data_size});
}

}  // namespace

StateDict parse_safetensors(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 8) refuse({"the file has ", bytes.size(), " bytes, a header length takes 8"});
  const auto header_size = load<std::uint64_t>(bytes.data());
  if (header_size == 0) refuse({"the header is empty"});
  if (header_size > bytes.size() - 8) refuse({"the header is longer than the file: ", std::to_string(header_size), " of ", bytes.size(), " bytes"});
  if (header_size > detail::kMaxHeader) refuse({"the header is longer than 16 MiB"});
  const std::vector<Entry> entries = read_header(bytes.subspan(8, static_cast<std::size_t>(header_size)));
  const std::span<const std::uint8_t> data = bytes.subspan(8 + static_cast<std::size_t>(header_size));

  MemoryEstimate memory("safetensors");
  for (const Entry& entry : entries) {
    const DType& type = dtype_of(entry);
    if (entry.offsets->size() != 2) refuse_tensor(entry.name, {"data_offsets has ", entry.offsets->size(), " numbers, expected 2"});
    const std::uint64_t first = (*entry.offsets)[0], last = (*entry.offsets)[1], size = byte_size(entry, type);
    if (last < first) refuse_tensor(entry.name, {"data_offsets are reversed"});
    if (last > data.size()) refuse_tensor(entry.name, {"its data ends after the file does"});
    if (last - first != size) refuse_tensor(entry.name, {"dtype and shape need ", size, " bytes, data_offsets span ", last - first});
    if (type.is_float) memory.add(entry.name, {static_cast<std::int64_t>(size / type.size)});
  }
  check_layout(entries, data.size());
  memory.check();

  StateDict state;
  for (const Entry& entry : entries) {
    const DType& type = dtype_of(entry);
    if (!type.is_float) continue;
    AnyTensor tensor = empty_any(to_shape(*entry.shape));
    convert(type, data.data() + (*entry.offsets)[0], tensor.data(), tensor.size());
    state.emplace(entry.name, std::move(tensor));
  }
  return state;
}

StateDict read_safetensors(const std::filesystem::path& path) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);  // a folder opens as a file does, but has no size
  std::ifstream file(path, std::ios::binary);
  if (none || !file) refuse({"cannot open ", path.string()});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) refuse({"cannot read ", path.string()});
  return parse_safetensors(bytes);
}

}  // namespace attn
