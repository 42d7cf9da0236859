#include "mutate.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fuzz.hpp"

namespace attn::fuzz {
namespace {

using Json = nlohmann::ordered_json;

std::size_t below(std::size_t count, Random& random) { return count == 0 ? 0 : random() % count; }

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json& each : value) collect(each, all);
}

Json number(const Json& from, Random& random) {
  constexpr double kNumbers[] = {0,    1,    2,     3,   7,  8, 1000, 1001, 100000, 2147483647.0, 2147483648.0, 9007199254740992.0,
                                 1e18, 1e30, 1e-30, 0.5, -1, -2};
  const std::uint64_t old = from.is_number_integer() ? from.get<std::uint64_t>() : 0;  // unsigned, so that it wraps around
  switch (below(5, random)) {
    case 0:
      return static_cast<std::int64_t>(old + 1);
    case 1:
      return static_cast<std::int64_t>(old - 1);
    case 2:
      return static_cast<std::int64_t>(old * 2);
    case 3:
      return static_cast<std::int64_t>(below(64, random));
    default:
      break;
  }
  const double value = kNumbers[below(std::size(kNumbers), random)];
  if (std::abs(value) <= 9e15 && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

std::string mutate_string(std::string text, Random& random) {
  constexpr const char* kParts[] = {"a", "##", " ", "\xcc\x81", "\xe4\xb8\xad", "\xc4\xb0", "\xe3\x80\xae", "[UNK]", "0", "weight", "."};
  const std::string part = kParts[below(std::size(kParts), random)];
  switch (below(4, random)) {
    case 0:
      return text + part;
    case 1:
      return part + text;
    case 2:
      return part;
    default:
      return text.substr(0, text.size() / 2);
  }
}

void change(Json& value, const Json& other, Random& random) {
  switch (below(8, random)) {
    case 0:
    case 1:
      value = other;
      return;
    case 2: {
      const Json kinds[] = {nullptr, true, false, 0, "", Json::array(), Json::object()};
      value = kinds[below(std::size(kinds), random)];
      return;
    }
    default:
      break;
  }
  if (value.is_number()) {
    value = number(value, random);
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_string()) {
    value = mutate_string(value.get<std::string>(), random);
  } else if (value.is_array()) {
    if (value.empty() || below(3, random) == 0)
      value.push_back(other);
    else if (below(2, random) == 0)
      value.erase(below(value.size(), random));
    else
      std::swap(value[below(value.size(), random)], value[below(value.size(), random)]);
  } else if (value.is_object() && !value.empty()) {
    const auto member = std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size(), random)));
    const std::string name = member.key();
    const Json old = member.value();
    if (below(2, random) == 0) value.erase(name);
    if (below(2, random) == 0) value[other.is_string() ? other.get<std::string>() : mutate_string(name, random)] = old;
  }
}

}  // namespace

std::string mutate_json(const std::string& text, Random& random) {
  Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return text;
  std::vector<Json*> all;
  collect(root, all);
  const Json other = *all[below(all.size(), random)];
  change(*all[below(all.size(), random)], other, random);
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::size_t mutate_parts(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, std::size_t parts, std::size_t json_parts) {
  Random random(seed);
  if (below(4, random) == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::vector<Bytes> all = split({data, size}, parts);
  std::size_t chosen = below(json_parts, random);
  while (chosen > 0 && all[chosen].empty()) --chosen;
  std::string changed;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::string part = text_of(all[i]);
    if (i > 0) changed += '\0';
    changed += i == chosen ? mutate_json(part, random) : part;
  }
  if (changed.size() > max_size || std::equal(changed.begin(), changed.end(), data, data + size)) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

}  // namespace attn::fuzz
