#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array.hpp"
#include "attn/io/tokenizer.hpp"

// attn counts UTF-8 bytes, Python characters.
namespace attn::python {

using Texts = Typed<"str | collections.abc.Iterable[str] | collections.abc.Iterable[tuple[str, str]]">;
using SingleTexts = Typed<"str | collections.abc.Iterable[str]">;
/// Not str, so that type checkers can choose an overload.
using TextList = Typed<"list[str] | tuple[str, ...] | collections.abc.Iterator[str]">;
using OneText = Typed<"str">;
using OneOrMoreTexts = Typed<"str | list[str] | tuple[str, ...] | collections.abc.Iterator[str]">;

using WordLists = Typed<
    "collections.abc.Iterable[collections.abc.Sequence[str]] | "
    "collections.abc.Iterable[tuple[collections.abc.Sequence[str], collections.abc.Sequence[str]]]">;

nb::list places(std::string_view text, const TokenOffsets& offsets);

/// Refuses characters of a text, keys of a dict and columns of a table.
void check_list(nb::handle given, const char* op, const char* argument, std::string_view expected);
std::string kind_of(nb::handle given);

/// Throws ARGUMENT with the index of a wrong element.
struct GivenTexts {
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, std::string>> pairs;
  bool are_pairs = false;

  GivenTexts(nb::handle given, const char* op, bool may_be_pairs = true, const char* argument = "texts");

  nb::list places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences) const;
};

using TruncatedList = Typed<"list[bool]">;

/// The caller's list of truncated texts, or None.
struct Truncated {
  Truncated(const TruncatedList& given, const char* op);

  std::vector<bool>* flags() { return list_.is_none() ? nullptr : &flags_; }
  void fill() const;

 private:
  nb::object list_;
  std::vector<bool> flags_;
};

struct GivenWords {
  std::vector<Words> lists;
  std::vector<std::pair<Words, Words>> pairs;
  bool are_pairs = false;

  GivenWords(nb::handle given, const char* op);

  /// Within each word.
  nb::list places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences, const TokenWords& words) const;
};

}  // namespace attn::python
