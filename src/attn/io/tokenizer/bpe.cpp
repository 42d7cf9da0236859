#include "attn/io/tokenizer/bpe.hpp"

#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "attn/io/tokenizer/pair_map.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {
namespace {

/// `ranks` count from 1; `made`: the merged token by rank.
struct Merges {
  PairMap ranks;
  std::vector<std::int32_t> made = {};
};

struct Options {
  UnknownToken unknown;
  bool has_unknown, fuses_unknown, ignores_merges;
  std::u32string before, after;  // continuing_subword_prefix, end_of_word_suffix
};

/// `bytes` is 0 once merged into another symbol.
struct Symbol {
  std::int32_t number;
  std::uint32_t bytes, previous, next;
};

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, Options options, ByteFallback bytes, Merges merges)
      : Model(std::move(vocabulary)),
        options_(std::move(options)),
        bytes_(std::move(bytes)),
        merges_(std::move(merges)),
        inside_(this->vocabulary().trie().find(options_.before)) {}

  void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool) const override {
    if (options_.ignores_merges)
      if (const std::int32_t whole = vocabulary().find(code_points(word)); whole >= 0) return tokens.push_back(token(whole, word, 0, word.size()));
    std::vector<Symbol> symbols = symbols_of(word, budget);
    merge(symbols);
    put(symbols, word, tokens);
  }

 private:
  std::uint32_t rank(std::int32_t first, std::int32_t second) const {
    return merges_.ranks.get(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second));
  }

  std::int32_t symbol_of(char32_t code, bool first, bool last) const {
    if (!first && !inside_) return -1;
    const Trie& trie = vocabulary().trie();
    const Trie::Node node = trie.child(first ? Trie::root() : *inside_, code);
    if (node == 0) return -1;
    return vocabulary().shared(last ? vocabulary().find(options_.after, node) : trie.number(node));
  }

  std::vector<Symbol> symbols_of(std::span<const Char> word, Budget& budget) const {
    budget.spend(8 * word.size());
    if (word.size() > 4096) {
      MemoryEstimate memory("tokenize");
      memory.add("the tokens of a word", {static_cast<std::int64_t>(word.size()), (2 * sizeof(Symbol) + 2 * sizeof(std::uint64_t)) / 4});
      memory.check("the tokens of a word");
    }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    std::uint32_t unknown_bytes = 0;
    const auto add = [&](std::int32_t number, std::uint32_t bytes) {
      const auto at = static_cast<std::uint32_t>(symbols.size());
      symbols.push_back({number, bytes, at - 1, at + 1});
    };
    const auto flush = [&] {
      if (unknown_bytes > 0) add(options_.unknown.needed(), unknown_bytes);
      unknown_bytes = 0;
    };
    std::vector<std::int32_t> bytes;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool first = i == 0, last = i + 1 == word.size();
      const char32_t code = word[i].code;
      const std::uint32_t length = utf8(code).size;
      if (const std::int32_t symbol = symbol_of(code, first, last); symbol >= 0) {
        flush();
        add(symbol, length);
        continue;
      }
      bytes.clear();
      if (bytes_.append((first ? U"" : options_.before) + code + (last ? options_.after : U""), bytes)) {
        budget.spend(8 * (bytes.size() - 1));
        for (const std::int32_t byte : bytes) add(byte, 1);
      } else if (options_.has_unknown) {
        if (!options_.fuses_unknown) flush();
        unknown_bytes += length;
      }
    }
    flush();
    return symbols;
  }

  void merge(std::vector<Symbol>& symbols) const {
    constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
    // Rank and position in one number, the smallest on top.
    std::vector<std::uint64_t> room;
    room.reserve(symbols.size());
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue({}, std::move(room));
    const auto propose = [&](std::uint32_t at) {
      if (const std::uint32_t found = rank(symbols[at].number, symbols[symbols[at].next].number); found > 0)
        queue.push(std::uint64_t{found} << 32 | at);
    };
    for (std::uint32_t i = 0; i + 1 < symbols.size(); ++i) propose(i);
    while (!queue.empty()) {
      const auto at = static_cast<std::uint32_t>(queue.top());
      const std::int32_t both = merges_.made[queue.top() >> 32];
      queue.pop();
      Symbol& symbol = symbols[at];
      if (symbol.bytes == 0 || symbol.next >= symbols.size()) continue;
      Symbol& other = symbols[symbol.next];
      const std::uint32_t now = rank(symbol.number, other.number);
      // The pair may have changed since.
      if (now == 0 || merges_.made[now] != both) continue;
      symbol.number = both;
      symbol.bytes += other.bytes;
      other.bytes = 0;
      symbol.next = other.next;
      if (symbol.next < symbols.size()) {
        symbols[symbol.next].previous = at;
        propose(at);
      }
      if (symbol.previous != kNone) propose(symbol.previous);
    }
  }

  /// Tokens of single bytes get the offsets of their character.
  void put(const std::vector<Symbol>& symbols, std::span<const Char> word, std::vector<Token>& tokens) const {
    std::size_t start = 0;
    std::uint32_t before = 0, done = 0;  // bytes before `start`, bytes of the tokens so far
    for (std::size_t i = 0; i < symbols.size(); i = symbols[i].next) {
      while (start + 1 < word.size() && before + utf8(word[start].code).size <= done) before += utf8(word[start++].code).size;
      done += symbols[i].bytes;
      std::size_t end = start;
      std::uint32_t last = before;
      while (end + 1 < word.size() && last + utf8(word[end].code).size < done) last += utf8(word[end++].code).size;
      tokens.push_back(token(symbols[i].number, word, start, end + 1));
    }
  }

  Options options_;
  ByteFallback bytes_;
  Merges merges_;
  std::optional<Trie::Node> inside_;
};

std::pair<std::string_view, std::string_view> parts_of(const Value& merge) {
  if (merge.is_string()) {
    const std::string_view words = merge.string();
    const std::size_t space = words.find(' ');
    if (space == words.npos || words.find(' ', space + 1) != words.npos) merge.refuse(ErrorCode::format, {"two tokens"}, {"\"", words, "\""});
    return {words.substr(0, space), words.substr(space + 1)};
  }
  if (merge.array().size() != 2) merge.refuse(ErrorCode::format, {"two tokens"}, {merge.array().size(), " values"});
  return {merge[std::size_t{0}].string(), merge[1].string()};
}

Merges read_merges(Json& json, const Vocabulary& vocabulary, std::size_t prefix) {
  Json taken = take(json, "merges");
  const Value list("tokenizer.json", &taken, "model.merges");
  const std::size_t count = list.array().size();
  Merges merges{PairMap(count)};
  merges.made.reserve(count + 1);
  merges.made.push_back(-1);
  for (std::size_t i = 0; i < count; ++i) {
    const Value merge = list[i];
    if (merge.is_string() && merge.string().starts_with("#version")) continue;
    const auto [first, second] = parts_of(merge);
    const auto number = [&](std::u32string_view codes, std::string_view shown) {
      const std::int32_t found = vocabulary.find(codes);
      if (found < 0) merge.refuse(ErrorCode::format, {"a token of the vocabulary"}, {"\"", shown, "\""});
      return vocabulary.shared(found);
    };
    const std::u32string a = code_points(first), b = code_points(second);
    const std::u32string both = a + (b.size() > prefix ? b.substr(prefix) : U"");
    const auto one = static_cast<std::uint32_t>(number(a, first)), other = static_cast<std::uint32_t>(number(b, second));
    // The last of equal pairs counts.
    merges.ranks.set(one, other, static_cast<std::uint32_t>(merges.made.size()));
    merges.made.push_back(number(both, text({first, " + ", second})));
    (*taken.array())[i] = Json();
  }
  return merges;
}

}  // namespace

std::unique_ptr<const Model> read_bpe(const Value& section, Json& json) {
  if (const Value dropout = section["dropout"]; dropout.is_there() && dropout.number() != 0)
    dropout.refuse(ErrorCode::unsupported, {"null"}, {dropout.number()}, "With dropout the tokens of a text would be random");
  const Value unknown = section["unk_token"];
  const std::string name = unknown.is_there() ? unknown.string() : "";
  const std::u32string before = code_points(section["continuing_subword_prefix"].token_or("", kMaxAffix));
  const std::u32string after = code_points(section["end_of_word_suffix"].token_or("", kMaxAffix));
  const bool fuses = section["fuse_unk"].boolean_or(false), ignores = section["ignore_merges"].boolean_or(false);
  Vocabulary vocabulary = read_tokens(json);
  ByteFallback bytes(section, vocabulary);
  Merges merges = read_merges(json, vocabulary, before.size());
  const std::int32_t number = unknown.is_there() ? vocabulary.shared(vocabulary.find_text(name)) : -1;
  Options options{.unknown = UnknownToken(number, "\"" + name + "\"", "tokenizer.json.model.unk_token"),
                  .has_unknown = unknown.is_there(),
                  .fuses_unknown = fuses,
                  .ignores_merges = ignores,
                  .before = before,
                  .after = after};
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(options), std::move(bytes), std::move(merges));
}

}  // namespace attn::detail
