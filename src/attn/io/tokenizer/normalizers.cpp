#include "attn/io/tokenizer/normalizers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "attn/io/tokenizer/byte_characters.hpp"
#include "attn/io/tokenizer/patterns.hpp"
#include "attn/io/tokenizer/precompiled.hpp"

namespace attn::detail {
namespace {

Normalizer read_part(const Value& section, PartCount& parts);

Chars without(Chars text, std::uint32_t sets) {
  std::erase_if(text, [&](const Char& c) { return is(c.code, sets); });
  return text;
}

Chars spaced_chinese(const Chars& text, Budget& budget) {
  Chars out;
  out.reserve(text.size());
  for (const Char& c : text) {
    const bool apart = is(c.code, kChinese);
    budget.hold(out.size() + (apart ? 3 : 1));
    if (apart) out.push_back({U' ', c.start, c.end});
    out.push_back(c);
    if (apart) out.push_back({U' ', c.start, c.end});
  }
  return out;
}

Normalizer bert(const Value& section, PartCount&) {
  const bool cleans = section["clean_text"].boolean(), spaces_chinese = section["handle_chinese_chars"].boolean();
  const bool lowers = section["lowercase"].boolean(), strips = section["strip_accents"].boolean_or(lowers);
  return [=](Chars text, Budget& budget) {
    if (cleans) {
      text = without(std::move(text), kControl);
      for (Char& c : text)
        if (is(c.code, kSpace)) c.code = U' ';
    }
    if (std::any_of(text.begin(), text.end(), [](const Char& c) { return c.code >= 0x80; })) {
      if (spaces_chinese && std::any_of(text.begin(), text.end(), [](const Char& c) { return is(c.code, kChinese); }))
        text = spaced_chinese(text, budget);
      if (strips) text = without(normalized(text, Form::nfd, budget), kMark);
    }
    return lowers ? lower_case(text, budget) : text;
  };
}

Normalizer strip(const Value& section, PartCount&) {
  const bool left = section["strip_left"].boolean(), right = section["strip_right"].boolean();
  return [=](Chars text, Budget&) {
    const auto is_space = [](const Char& c) { return is(c.code, kSpace); };
    if (right) text.erase(std::find_if_not(text.rbegin(), text.rend(), is_space).base(), text.end());
    if (left) text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_space));
    return text;
  };
}

std::u32string content_of(const Value& section, const char* name) { return code_points(section[name].token(kMaxContent)); }

/// New characters get the offsets of the last one they replace.
Normalizer replace(const Value& section, PartCount&) {
  return [pattern = read_pattern(section), content = content_of(section, "content")](const Chars& text, Budget& budget) {
    budget.spend(pattern.cost * text.size());
    Chars out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = pattern.match(text, at);
      if (end == at) {
        out.push_back(text[at++]);
        continue;
      }
      budget.hold(out.size() + content.size());
      for (const char32_t code : content) out.push_back({code, text[end - 1].start, text[end - 1].end});
      at = end;
    }
    budget.hold(out.size());
    return out;
  };
}

Normalizer prepend(const Value& section, PartCount&) {
  return [content = content_of(section, "prepend")](Chars text, Budget& budget) {
    if (text.empty()) return text;
    budget.hold(content.size() + text.size());
    const Char first = text.front();
    Chars put;
    for (const char32_t code : content) put.push_back({code, first.start, first.end});
    text.insert(text.begin(), put.begin(), put.end());
    return text;
  };
}

bool is_nmt_space(char32_t code) {
  constexpr char32_t kSpaces[] = {0x9, 0xa, 0xc, 0xd, 0x1680, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};
  return std::find(std::begin(kSpaces), std::end(kSpaces), code) != std::end(kSpaces);
}

Normalizer nmt(const Value&, PartCount&) {
  return [](Chars text, Budget&) {
    std::erase_if(text, [](const Char& c) {
      return !is_nmt_space(c.code) && c.code != 0 && (c.code < 0x20 || c.code == 0x7f || c.code == 0x8f || c.code == 0x9f);
    });
    for (Char& c : text)
      if (is_nmt_space(c.code)) c.code = U' ';
    return text;
  };
}

Normalizer byte_level(const Value&, PartCount&) {
  return [](const Chars& text, Budget& budget) {
    Chars out;
    out.reserve(text.size());
    for (const Char& c : text)
      for (const std::uint8_t byte : utf8(c.code)) {
        budget.hold(out.size() + 1);
        out.push_back({kByteCharacters[byte], c.start, c.end});
      }
    return out;
  };
}

Normalizer sequence(const Value& section, PartCount& parts) {
  std::vector<Normalizer> all;
  const Value list = section["normalizers"];
  for (std::size_t i = 0; i < list.array().size(); ++i) all.push_back(read_part(list[i], parts));
  return [all = std::move(all)](Chars text, Budget& budget) {
    for (const Normalizer& each : all) text = each(std::move(text), budget);
    return text;
  };
}

template <Form form>
Normalizer in_form(const Value&, PartCount&) {
  return [](const Chars& text, Budget& budget) { return normalized(text, form, budget); };
}

struct Kind {
  Normalizer (*read)(const Value&, PartCount&);
  std::uint64_t cost = 1;  // steps per character
};

constexpr Named<Kind> kKindsOfNormalizers[] = {
    {"BertNormalizer", {bert, 8}},
    {"Lowercase", {[](const Value&, PartCount&) -> Normalizer { return lower_case; }, 4}},
    {"NFC", {in_form<Form::nfc>, 8}},
    {"NFD", {in_form<Form::nfd>, 8}},
    {"NFKC", {in_form<Form::nfkc>, 8}},
    {"NFKD", {in_form<Form::nfkd>, 8}},
    {"StripAccents", {[](const Value&, PartCount&) -> Normalizer { return [](Chars text, Budget&) { return without(std::move(text), kAccent); }; }}},
    {"Strip", {strip}},
    {"Replace", {replace}},
    {"Prepend", {prepend}},
    {"Precompiled", {[](const Value& section, PartCount&) { return read_precompiled(section); }, 8}},
    {"Nmt", {nmt}},
    {"ByteLevel", {byte_level}},
    {"Sequence", {sequence, 0}},
};

Normalizer read_part(const Value& section, PartCount& parts) {
  parts.add(section);
  const Kind& kind = choose(kKindsOfNormalizers, section["type"]);
  return [normalizer = kind.read(section, parts), cost = kind.cost](Chars text, Budget& budget) {
    budget.spend(cost * text.size());
    return normalizer(std::move(text), budget);
  };
}

}  // namespace

Normalizer read_normalizer(const Value& section) {
  PartCount parts(kMaxNormalizers);
  return read_part(section, parts);
}

}  // namespace attn::detail
