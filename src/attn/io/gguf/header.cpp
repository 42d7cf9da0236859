#include "attn/io/gguf/header.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "attn/tensor/float_environment.hpp"

namespace attn::detail::gguf {
namespace {

// Published files have some hundred keys, 2000 tensors, 300 000 tokens and merges of a few bytes.
constexpr std::uint64_t kMaxKeys = 1 << 16, kMaxTensors = 100'000, kMaxItems = 1 << 21, kMaxName = 255, kMaxText = 16 << 20, kMaxTexts = 64 << 20;
constexpr std::uint64_t kMaxAlignment = 1 << 16, kMaxDims = 4;

enum class Type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
constexpr std::uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // in the file; of strings and arrays the least

class Cursor {
 public:
  Cursor(std::istream& file, std::uint64_t size) : file_(file), size_(size) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return size_ - position_; }

  template <class T>
  T take(std::string_view what) {
    T value{};
    take_bytes(what, &value, sizeof value);
    return value;
  }
  std::uint64_t take_count(std::string_view what, std::uint64_t each, std::uint64_t most) {
    const auto count = take<std::uint64_t>(what);
    if (count > left() / each) refuse(what, {"at most ", left() / each, ", as many as the file has bytes for"}, {std::to_string(count)});
    if (count > most) refuse(what, {"at most ", most}, {count}, ErrorCode::unsupported);
    return count;
  }
  std::string take_string(std::string_view what, std::uint64_t most) {
    const std::uint64_t length = take_count(text({"the length of ", what}), 1, most);
    texts_ += length;
    if (texts_ > kMaxTexts) refuse("the length of all strings", {"at most ", kMaxTexts, " bytes"}, {texts_, " bytes"}, ErrorCode::unsupported);
    std::string value(static_cast<std::size_t>(length), '\0');
    take_bytes(what, value.data(), value.size());
    return value;
  }
  void add_items(std::uint64_t count) {
    items_ += count;
    if (items_ > kMaxItems) refuse("the length of all arrays", {"at most ", kMaxItems, " values"}, {items_, " values"}, ErrorCode::unsupported);
  }

 private:
  void take_bytes(std::string_view what, void* to, std::size_t count) {
    if (count > left()) refuse("the file", {"at least ", position_ + count, " bytes, for ", what}, {size_, " bytes"});
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
    if (!file_) refuse("the file", {"a readable file"}, {"unreadable from byte ", position_});
    position_ += count;
  }

  std::istream& file_;
  std::uint64_t size_, position_ = 0, texts_ = 0, items_ = 0;
};

Type take_type(Cursor& from, const std::string& key) {
  const auto type = from.take<std::uint32_t>(text({"the type of ", key}));
  if (type >= std::size(kSizes)) refuse(text({"the type of ", key}), {"a number below ", std::size(kSizes)}, {type});
  return static_cast<Type>(type);
}

template <class T>
std::int64_t take_whole(Cursor& from, const std::string& key) {
  const T value = from.take<T>(key);
  if (!std::in_range<std::int64_t>(value)) refuse(key, {"a number below 2^63"}, {std::to_string(value)});
  return static_cast<std::int64_t>(value);
}

Value take_scalar(Cursor& from, Type type, const std::string& key) {
  switch (type) {
    case Type::u8:
      return take_whole<std::uint8_t>(from, key);
    case Type::i8:
      return take_whole<std::int8_t>(from, key);
    case Type::u16:
      return take_whole<std::uint16_t>(from, key);
    case Type::i16:
      return take_whole<std::int16_t>(from, key);
    case Type::u32:
      return take_whole<std::uint32_t>(from, key);
    case Type::i32:
      return take_whole<std::int32_t>(from, key);
    case Type::u64:
      return take_whole<std::uint64_t>(from, key);
    case Type::i64:
      return take_whole<std::int64_t>(from, key);
    case Type::f32:
      return static_cast<double>(from.take<float>(key));
    case Type::f64:
      return from.take<double>(key);
    case Type::boolean:
      break;
    case Type::string:
    case Type::array:
      return from.take_string(key, kMaxText);
  }
  const auto value = from.take<std::uint8_t>(key);
  if (value > 1) refuse(key, {"0 or 1"}, {value});
  return value == 1;
}

Value take_array(Cursor& from, const std::string& key) {
  const Type type = take_type(from, key);
  if (type == Type::array) refuse(key, {"an array of strings or numbers"}, {"an array of arrays"}, ErrorCode::unsupported);
  const std::string what = text({"the length of ", key});
  const std::uint64_t count = from.take_count(what, kSizes[static_cast<std::size_t>(type)], kMaxItems);
  from.add_items(count);
  if (type == Type::string) {
    std::vector<std::string> values(static_cast<std::size_t>(count));
    for (std::string& value : values) value = from.take_string(key, kMaxText);
    return values;
  }
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    const Value scalar = take_scalar(from, type, key);
    if (const auto* whole = std::get_if<std::int64_t>(&scalar))
      value = static_cast<double>(*whole);
    else if (const auto* real = std::get_if<double>(&scalar))
      value = *real;
    else
      value = std::get<bool>(scalar) ? 1 : 0;
  }
  return values;
}

Tensor take_tensor(Cursor& from) {
  Tensor tensor{.name = from.take_string("the name of a tensor", kMaxName)};
  const auto what = [&](const char* field) { return text({"the ", field, " of ", tensor.name}); };
  const auto rank = from.take<std::uint32_t>(what("rank"));
  if (rank < 1 || rank > kMaxDims) refuse(what("rank"), {"a number from 1 to ", kMaxDims}, {rank});
  for (std::uint32_t i = 0; i < rank; ++i) tensor.dims.push_back(from.take<std::uint64_t>(what("shape")));
  const auto type = from.take<std::uint32_t>(what("type"));
  tensor.type = block_type(type);
  if (tensor.type == nullptr) refuse(what("type"), {"one of ", kBlockTypeNames}, {"ggml type ", type}, ErrorCode::unsupported);
  tensor.first = from.take<std::uint64_t>(what("offset"));

  // A block takes at least one byte, so a tensor has no more blocks than the file bytes.
  if (tensor.dims[0] % tensor.type->values != 0)
    refuse(what("row length"), {"a multiple of ", tensor.type->values, ", the block size of ", tensor.type->name}, {std::to_string(tensor.dims[0])});
  std::uint64_t blocks = tensor.dims[0] / tensor.type->values;
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (tensor.dims[i] == 0) refuse(what("shape"), {"numbers of at least 1"}, {"0"});
    constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
    if (i > 0 && tensor.dims[i] > kMost / blocks) refuse(what("shape"), {"at most 2^48 values"}, {"too large"});
    if (i > 0) blocks *= tensor.dims[i];
    if (blocks > kMost) refuse(what("shape"), {"at most 2^48 values"}, {"too large"});
  }
  tensor.bytes = blocks * tensor.type->bytes;
  return tensor;
}

/// Throws FORMAT unless the data follow each other at multiples of the alignment and end with the file.
void place(std::vector<Tensor>& tensors, std::uint64_t header, std::uint64_t alignment, std::uint64_t size) {
  const auto aligned = [&](std::uint64_t position) { return (position + alignment - 1) / alignment * alignment; };
  const std::uint64_t start = aligned(header);
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.first < b.first; });
  std::uint64_t expected = 0, end = header;
  for (Tensor& tensor : tensors) {
    if (tensor.first != expected)
      refuse(text({"the offset of ", tensor.name}), {expected, ", after the previous tensor"}, {std::to_string(tensor.first)});
    tensor.first += start;
    end = tensor.first + tensor.bytes;
    if (end > size) refuse("the file", {"at least ", end, " bytes, for ", tensor.name}, {size, " bytes"});
    expected = aligned(end - start);
  }
  if (size > aligned(end)) refuse("the file", {"at most ", aligned(end), " bytes, the end of the last tensor"}, {size, " bytes"});
}

std::uint64_t alignment_of(const Metadata& metadata) {
  const std::int64_t alignment = metadata.whole("general.alignment").value_or(32);
  if (alignment < 8 || alignment > static_cast<std::int64_t>(kMaxAlignment) || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    refuse("general.alignment", {"a power of two from 8 to ", kMaxAlignment}, {alignment});
  return static_cast<std::uint64_t>(alignment);
}

void check_start(Cursor& from) {
  constexpr std::uint32_t kMagic = 0x46554747;
  if (const auto magic = from.take<std::uint32_t>("the magic"); magic != kMagic) refuse("the magic", {"\"GGUF\""}, {"other bytes"});
  const auto version = from.take<std::uint32_t>("the version");
  if ((version & 0xffff) == 0 && version != 0) refuse("the file", {"little-endian numbers"}, {"big-endian"}, ErrorCode::unsupported);
  if (version != 2 && version != 3) refuse("the version", {"2 or 3"}, {version}, ErrorCode::unsupported);
}

}  // namespace

void refuse(std::string_view argument, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got, ErrorCode code,
            std::string_view help) {
  fail(code, "gguf", argument, expected, got, help);
}

const Value* Metadata::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Metadata::add(std::string key, Value value) {
  const auto [place, is_new] = values_.emplace(std::move(key), std::move(value));
  if (!is_new) refuse(place->first, {"one value"}, {"given twice"});
}

template <class T>
const T* Metadata::get(const std::string& key, std::string_view expected) const {
  const Value* const value = find(key);
  if (value == nullptr) return nullptr;
  const T* const wanted = std::get_if<T>(value);
  // In the order of Value's alternatives.
  constexpr std::string_view kKinds[] = {"true or false", "a whole number",      "a real number",
                                         "a string",      "an array of strings", "an array of numbers"};
  if (wanted == nullptr) refuse(key, {expected}, {kKinds[value->index()]});
  return wanted;
}

std::optional<bool> Metadata::flag(const std::string& key) const {
  const bool* const value = get<bool>(key, "true or false");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::int64_t> Metadata::whole(const std::string& key) const {
  const std::int64_t* const value = get<std::int64_t>(key, "a whole number");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<double> Metadata::number(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* const whole = std::get_if<std::int64_t>(value);
  const double number = whole != nullptr ? static_cast<double>(*whole) : *get<double>(key, "a number");
  if (!std::isfinite(static_cast<float>(number))) refuse(key, {"a finite number"}, {number});
  return number;
}

const std::string* Metadata::string(const std::string& key) const { return get<std::string>(key, "a string"); }
const std::vector<std::string>* Metadata::strings(const std::string& key) const { return get<std::vector<std::string>>(key, "an array of strings"); }
const std::vector<double>* Metadata::numbers(const std::string& key) const { return get<std::vector<double>>(key, "an array of numbers"); }

const Tensor* Header::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Header read_header(std::istream& file, std::uint64_t size) {
  const FloatEnvironment environment;
  Cursor from(file, size);
  check_start(from);
  const std::uint64_t tensors = from.take_count("the number of tensors", 24, kMaxTensors);
  const std::uint64_t keys = from.take_count("the number of metadata keys", 13, kMaxKeys);
  Header header;
  for (std::uint64_t i = 0; i < keys; ++i) {
    std::string key = from.take_string("a metadata key", kMaxName);
    const Type type = take_type(from, key);
    Value value = type == Type::array ? take_array(from, key) : take_scalar(from, type, key);
    header.metadata.add(std::move(key), std::move(value));
  }
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(take_tensor(from));
    const std::string& name = header.tensors.back().name;
    if (!names.insert(name).second) refuse(name, {"one tensor"}, {"given twice"});
  }
  place(header.tensors, from.position(), alignment_of(header.metadata), size);
  return header;
}

}  // namespace attn::detail::gguf
