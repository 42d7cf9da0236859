#include "attn/io/tokenizer/other_tokens.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

// web/lib/src/tokenizer/other_tokens.ts is the counterpart.
namespace attn::detail {
namespace {

constexpr std::array<std::string_view, 7> kNamed{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
constexpr std::array<const char*, 5> kFlags{"single_word", "lstrip", "rstrip", "normalized", "special"};
constexpr std::string_view kDecoder = "added_tokens_decoder", kExtra = "extra_special_tokens", kOldExtra = "additional_special_tokens";

const std::string& content_of(const Value& token) { return token.is_string() ? token.token() : token["content"].token(); }

class TokenList {
 public:
  explicit TokenList(Json::Array& tokens) : tokens_(tokens) {
    for (const Json& each : tokens) {
      const Value token("tokenizer.json", &each);
      const Json* const content = each.find("content");
      if (content == nullptr || content->string() == nullptr) continue;
      Flags& flags = known_[*content->string()];
      for (std::size_t i = 0; i < kFlags.size(); ++i) {
        const Json* const flag = each.find(kFlags[i]);
        flags[i] = flag != nullptr && flag->boolean() != nullptr && *flag->boolean();
      }
      if (const Json* const id = each.find("id"); id != nullptr && id->number() != nullptr) ids_.insert(*id->number());
    }
  }

  bool has_id(double id) const { return ids_.contains(id); }
  void add_special(const Value& token, bool is_named) {
    if (!known_.contains(content_of(token))) add(content_of(token), token, token["special"].boolean_or(token.is_string()) || is_named);
  }
  void add(const std::string& content, const Value& token, bool is_special) {
    Flags flags{};
    for (std::size_t i = 0; i < 3; ++i) flags[i] = token[kFlags[i]].boolean_or(false);
    flags[3] = token["normalized"].boolean_or(!is_special);
    flags[4] = is_special;
    const auto [known, is_new] = known_.emplace(content, flags);
    if (!is_new && known->second == flags) return;
    known->second = flags;
    Json::Object made;
    made["content"] = Json(content);
    for (std::size_t i = 0; i < kFlags.size(); ++i) made[kFlags[i]] = Json(flags[i]);
    tokens_.emplace_back(std::move(made));
  }

 private:
  using Flags = std::array<bool, kFlags.size()>;

  Json::Array& tokens_;
  std::map<std::string, Flags, std::less<>> known_;
  std::set<double> ids_;
};

bool is_named(std::string_view name) { return std::find(kNamed.begin(), kNamed.end(), name) != kNamed.end(); }

/// Listed under a name of kNamed, another name, in extra_special_tokens, or in special_tokens_map.json's older list.
enum class Kind : std::uint8_t { usual, named, extra, old_extra };
bool has_name(Kind kind) { return kind == Kind::usual || kind == Kind::named; }

template <class Use>
void for_each_special(const Value& config, Use use) {
  for (const std::string_view name : kNamed)
    if (const Value token = config[name]; token.is_there()) use(token, Kind::usual);
  for (const bool is_object : {true, false})
    for (const auto& each : config.object()) {
      const std::string& name = each.first;
      if (!name.ends_with("_token") || is_named(name)) continue;
      if (const Value token = config[name]; is_object ? token["__type"].is_there() : token.is_string()) use(token, Kind::named);
    }
  const Kind kind = config[kExtra].is_there() ? Kind::extra : Kind::old_extra;
  const Value extra = config[kind == Kind::extra ? kExtra : kOldExtra];
  if (extra.is_array()) {
    for (std::size_t i = 0; i < extra.array().size(); ++i) use(extra[i], kind);
  } else if (extra.is_there()) {
    for (const auto& each : extra.object()) use(extra[each.first], Kind::named);
  }
}

bool is_empty(const Json* list) { return list == nullptr || (list->array() != nullptr && list->array()->empty()); }

}  // namespace

void append_other_tokens(Json::Array& added_tokens, const Value& config, const Value& ids) {
  TokenList list(added_tokens);
  std::set<std::string, std::less<>> named, special;
  for_each_special(config, [&](const Value& token, Kind kind) {
    if (kind == Kind::usual || kind == Kind::extra) special.insert(content_of(token));
    if (has_name(kind)) named.insert(content_of(token));
  });
  if (const Value decoder = config[kDecoder]; decoder.is_there()) {
    std::vector<std::string> order;
    for (const auto& each : decoder.object()) order.push_back(each.first);
    std::sort(order.begin(), order.end(),
              [](const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
    for (const std::string& id : order) {
      const Value token = decoder[id];
      token.object();
      list.add(content_of(token), token, token["special"].boolean_or(false) || named.contains(content_of(token)));
    }
  } else if (ids.is_there()) {
    std::vector<std::pair<std::int32_t, std::string>> order;
    for (const auto& each : ids.object()) order.emplace_back(ids[each.first].whole(), each.first);
    std::sort(order.begin(), order.end());
    for (const auto& [id, content] : order)
      if (!list.has_id(id)) list.add(content, Value("added_tokens.json", nullptr), special.contains(content));
  }
  for_each_special(config, [&](const Value& token, Kind kind) { list.add_special(token, has_name(kind)); });
}

void merge_special_tokens(Json::Object& config, Json map) {
  const auto find = [&](std::string_view name) -> Json* {
    Json* const found = config.find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
  };
  if (Json* const old = find(kOldExtra); old != nullptr && is_empty(find(kExtra))) {
    Json tokens = std::move(*old);
    config[kExtra] = std::move(tokens);
  }
  config.erase(kOldExtra);
  if (map.is_null() || find(kDecoder) != nullptr) return;
  Value("special_tokens_map.json", &map).object();
  for (auto& [name, value] : *map.object()) {
    if (Json::Object* const token = value.object(); token != nullptr && name != kExtra) {
      (*token)["special"] = Json(true);
      (*token)["__type"] = Json(std::string("AddedToken"));
    }
    Json* const extra = find(kExtra);
    if (name == kExtra && extra != nullptr && extra->array() != nullptr && value.array() != nullptr)
      std::move(value.array()->begin(), value.array()->end(), std::back_inserter(*extra->array()));
    else if (name.ends_with("_token") || name == kExtra || name == kOldExtra)
      config[name] = std::move(value);
  }
}

}  // namespace attn::detail
