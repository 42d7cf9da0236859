#include "attn/io/tokenizer/added_tokens.hpp"

#include <algorithm>
#include <utility>

namespace attn::detail {

AddedTokens::AddedTokens(const Value& section, const Vocabulary& vocabulary, Normalizer normalizer, bool splits_special)
    : normalizer_(std::move(normalizer)), size_(vocabulary.size()) {
  if (!section.is_there()) return;
  section.at_most(section.array().size(), kMaxAddedTokens, " tokens");
  std::vector<AddedToken> all;
  std::size_t characters = 0;
  auto next = static_cast<std::int64_t>(vocabulary.size());
  for (std::size_t i = 0; i < section.array().size(); ++i) {
    const Value given = section[i];
    const std::string& content = given["content"].token();
    AddedToken token{.single_word = given["single_word"].boolean(),
                     .lstrip = given["lstrip"].boolean(),
                     .rstrip = given["rstrip"].boolean(),
                     .normalized = given["normalized"].boolean()};
    const bool is_special = given["special"].boolean_or(false);
    token.is_split = is_special && splits_special;
    if (content.empty()) continue;
    characters += count_characters(content);
    // The tokenizers library also ignores the id in the file.
    auto known = id_of(content);
    if (!known) known = vocabulary.id_of(content);
    if (!known) {
      known = static_cast<std::int32_t>(next++);
      ++size_;
    }
    token.id = *known;
    ids_.emplace(content, token.id);
    const auto [named, is_new] = named_.emplace(token.id, Named{content, all.size(), is_special});
    if (is_new) {
      all.push_back(token);
    } else {
      // As in the tokenizers library, a text stays special.
      named->second.is_special = is_special || (named->second.is_special && named->second.text == content);
      named->second.text = content;
      token.is_split = named->second.is_special && splits_special;
      all[named->second.place] = token;
    }
  }
  Budget budget(characters, "tokenizer.json.added_tokens");
  const std::size_t most = 2 * characters + 16 * all.size() + 4096;
  std::size_t made = 0;
  for (const AddedToken& token : all) {
    if (!token.normalized) continue;
    Named& named = named_.at(token.id);
    const Chars text = normalizer_(decode_utf8(named.text).value(), budget);
    section.at_most(text.size(), kMaxToken, " characters in a token once it is normalized");
    section.at_most(made += text.size(), most, " characters once they are normalized");
    // The tokenizers library looks special tokens up by their text before normalisation.
    const std::string before = std::exchange(named.text, utf8_of(text));
    named.is_special = named.is_special && named.text == before;
  }
  plain_ = wanted(all, false);
  normalized_ = wanted(all, true);
}

AddedTokens::Wanted AddedTokens::wanted(const std::vector<AddedToken>& all, bool normalized) const {
  Wanted made;
  std::size_t characters = 0;
  for (const AddedToken& token : all)
    if (token.normalized == normalized) {
      made.tokens.push_back(token);
      characters += count_characters(named_.at(token.id).text);
    }
  made.trie = Trie(made.tokens.size(), characters);
  for (std::size_t i = 0; i < made.tokens.size(); ++i) made.trie.add(code_points(named_.at(made.tokens[i].id).text), static_cast<std::int32_t>(i));
  return made;
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> AddedTokens::text_of(std::int32_t id) const {
  const auto found = named_.find(id);
  return found == named_.end() ? std::nullopt : std::optional<std::string_view>(found->second.text);
}

bool AddedTokens::is_special(std::int32_t id) const {
  const auto found = named_.find(id);
  return found != named_.end() && found->second.is_special;
}

/// Finds the leftmost longest tokens: emit(from, to, id), with id -1 for the text between them.
template <class Emit>
void AddedTokens::find(std::span<const Char> text, const Wanted& wanted, Budget& budget, const Emit& emit) {
  const std::size_t count = text.size();
  std::size_t done = 0;
  // As in the tokenizers library, a token that begins in white space extends to its end.
  std::size_t spaces = 0;
  for (std::size_t at = 0; at < count;) {
    std::size_t to = at, i = at;
    std::int32_t found = -1;
    for (Trie::Node node = Trie::root(); i < count;) {
      if ((node = wanted.trie.child(node, text[i++].code)) == 0) break;
      if (const std::int32_t number = wanted.trie.number(node); number >= 0) {
        to = i;
        found = number;
      }
    }
    budget.spend(i - at);
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = wanted.tokens[static_cast<std::size_t>(found)];
    std::size_t from = std::exchange(at, to);
    const auto in_word = [&](std::size_t place) { return place < count && is(text[place].code, kWord); };
    if (token.is_split || (token.single_word && ((from > 0 && in_word(from - 1)) || in_word(to)))) continue;
    if (token.lstrip) {
      while (from > done && is(text[from - 1].code, kSpace)) --from;
      from = std::max(from, done);
    }
    if (token.rstrip && to < spaces)
      to = spaces;
    else if (token.rstrip)
      while (to < count && is(text[to].code, kSpace)) spaces = ++to;
    if (done < from) emit(done, from, -1);
    if (from < to) {
      budget.spend(to - from);  // tokens may overlap
      emit(from, to, token.id);
    }
    done = to;
  }
  if (done < count) emit(done, count, -1);
}

Pieces AddedTokens::extract(const Chars& text, Budget& budget) const {
  Pieces out;
  const auto put = [&](std::span<const Char> piece, std::int32_t id) {
    const std::size_t from = out.chars.size();
    out.chars.insert(out.chars.end(), piece.begin(), piece.end());
    out.pieces.push_back({from, out.chars.size(), id});
  };
  std::size_t length = 0;
  find(text, plain_, budget, [&](std::size_t from, std::size_t to, std::int32_t id) {
    const std::span<const Char> piece = std::span(text).subspan(from, to - from);
    if (id >= 0) return put(piece, id);
    const Chars made = normalizer_(Chars(piece.begin(), piece.end()), budget);
    budget.hold(length += made.size());
    find(made, normalized_, budget,
         [&](std::size_t begin, std::size_t end, std::int32_t found) { put(std::span(made).subspan(begin, end - begin), found); });
  });
  return out;
}

}  // namespace attn::detail
