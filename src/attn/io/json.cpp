#include "attn/io/json.hpp"

#include <algorithm>
#include <utility>

#include "attn/io/json_events.hpp"
#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

constexpr std::size_t kMaxDepth = 64;

[[noreturn]] void refuse(std::string_view name, std::string_view verb, std::initializer_list<TextPart> parts, ErrorCode code = ErrorCode::format) {
  const std::string what = text(parts);
  ErrorDetail detail = error_detail(name, "the file");
  detail.emplace("got", what);
  throw Error(code, text({name, ": the file ", verb, what}), std::move(detail));
}

/// Throws UNSUPPORTED before allocating if the values need many times the bytes of the file: two bytes can become an
/// object of 64 bytes. web/lib/src/tokenizer/schema.ts counts in the same way.
void check_values(std::string_view name, std::span<const std::uint8_t> bytes) {
  std::uint64_t memory = 0, names = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) switch (bytes[at]) {
      case '"':
        for (++at; at < bytes.size() && bytes[at] != '"'; ++at)
          if (bytes[at] == '\\') ++at;
        break;
      case '[':
      case '{':
        memory += 64;
        break;
      case ':':
        memory += 96;
        ++names;
        break;
      case ',':
        memory += 24;
        break;
      default:
        break;
    }
  const std::uint64_t most = kMemoryPerByte * bytes.size() + kMoreMemory;
  if (memory > most)
    refuse(name, "has ", {"values of ", memory, " bytes in a file of ", bytes.size(), ", expected at most ", most}, ErrorCode::unsupported);
  if (names > kMaxNames) refuse(name, "has ", {names, " names, expected at most ", kMaxNames}, ErrorCode::unsupported);
}

class TreeBuilder : public JsonEvents {
 public:
  explicit TreeBuilder(std::string_view name) : name_(name) {}

  Json root;

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(std::int64_t value) override { return add(Json(static_cast<double>(value))); }
  bool number_unsigned(std::uint64_t value) override { return add(Json(static_cast<double>(value))); }
  bool number_float(double value, const std::string&) override { return add(Json(value)); }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json(Json::Object())); }
  bool start_array(std::size_t) override { return open(Json(Json::Array())); }
  bool key(std::string& key) override {
    key_ = std::move(key);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse(name_, "is ", {"not valid JSON near byte ", position});
  }

 private:
  Json& place() {
    if (open_.empty()) return root;
    if (Json::Array* array = open_.back()->array()) return array->emplace_back();
    return open_.back()->object()->append(std::move(key_));
  }
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kMaxDepth) refuse(name_, "is ", {"nested deeper than ", kMaxDepth, " levels"});
    Json& at = place();
    at = std::move(value);
    open_.push_back(&at);  // stays valid: its parent grows only after it is closed
    return true;
  }
  bool close() {
    if (Json::Object* object = open_.back()->object()) object->sort();
    open_.pop_back();
    return true;
  }

  std::string_view name_;
  std::string key_;
  std::vector<Json*> open_;
};

}  // namespace

Json::Object::Members::const_iterator Json::Object::place_of(std::string_view name) const {
  return std::lower_bound(begin(), end(), name, [](const Member& member, std::string_view wanted) { return member.first < wanted; });
}

const Json* Json::Object::find(std::string_view name) const {
  const auto place = place_of(name);
  return place != end() && place->first == name ? &place->second : nullptr;
}

Json& Json::Object::operator[](std::string_view name) {
  if (Json* const found = find(name)) return *found;
  return members_.emplace(place_of(name), std::string(name), Json())->second;
}

void Json::Object::erase(std::string_view name) {
  if (const auto place = place_of(name); place != end() && place->first == name) members_.erase(place);
}

Json& Json::Object::append(std::string name) {
  // Doubling would exceed kMemoryPerByte while the members move.
  if (members_.size() == members_.capacity()) members_.reserve(members_.size() + members_.size() / 4 + 8);
  return members_.emplace_back(std::move(name), Json()).second;
}

void Json::Object::sort() {
  // Merge sort, because std::stable_sort would add 2.4 kB to the download of every page.
  const std::size_t size = members_.size();
  Members merged(size);
  for (std::size_t run = 1; run < size; run *= 2) {
    for (std::size_t out = 0; out < size;) {
      std::size_t left = out, right = std::min(left + run, size);
      const std::size_t middle = right, end = std::min(middle + run, size);
      while (out < end) {
        const bool takes_left = left < middle && (right == end || members_[left].first <= members_[right].first);
        merged[out++] = std::move(members_[takes_left ? left++ : right++]);
      }
    }
    members_.swap(merged);
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (i + 1 < size && members_[i].first == members_[i + 1].first) continue;
    if (count < i) members_[count] = std::move(members_[i]);
    ++count;
  }
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(count), members_.end());
}

const Json* Json::find(std::string_view name) const {
  const Object* members = object();
  const Json* const found = members != nullptr ? members->find(name) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

const char* Json::kind() const {
  constexpr const char* kKinds[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
  return kKinds[value_.index()];
}

Json parse_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes) {
  const FloatEnvironment environment;
  if (bytes.size() > max_bytes) refuse(name, "has ", {bytes.size(), " bytes, expected at most ", max_bytes});
  // The parser stops at a zero byte and skips a byte order mark, but neither is valid JSON.
  const auto zero = std::find(bytes.begin(), bytes.end(), 0);
  if (bytes.empty() || bytes[0] == 0xEF || zero != bytes.end())
    refuse(name, "is ", {"not valid JSON near byte ", bytes.empty() || bytes[0] == 0xEF ? 0 : zero - bytes.begin()});
  check_values(name, bytes);
  TreeBuilder builder(name);
  parse_json_events(bytes, builder);
  return std::move(builder.root);
}

Json parse_python_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string json;
  std::size_t done = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') in_string = !in_string;
    if (in_string && text[at] == '\\') ++at;
    if (in_string) continue;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!text.substr(at).starts_with(word)) continue;
      json.append(text.substr(done, at - done)).append("\"").append(word).append("\"");
      done = at + word.size();
      at = done - 1;
      break;
    }
  }
  if (done == 0) return parse_json(name, bytes, max_bytes);
  json.append(text.substr(done));
  return parse_json(name, {reinterpret_cast<const std::uint8_t*>(json.data()), json.size()}, max_bytes);
}

}  // namespace attn::detail
