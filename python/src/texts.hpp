#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array.hpp"
#include "attn/io/tokenizer.hpp"

// Texts of Python's, and places in them: attn counts bytes of UTF-8, Python characters.
namespace attn::python {

using Texts = Typed<"str | collections.abc.Iterable[str] | collections.abc.Iterable[tuple[str, str]]">;
/// Where pairs are not asked for.
using SingleTexts = Typed<"str | collections.abc.Iterable[str]">;

/// Lists of words, or pairs of them.
using WordLists = Typed<
    "collections.abc.Iterable[collections.abc.Sequence[str]] | "
    "collections.abc.Iterable[tuple[collections.abc.Sequence[str], collections.abc.Sequence[str]]]">;

/// The places of a text's tokens as Python counts: a list of (start, end) or None.
nb::list places(std::string_view text, const TokenOffsets& offsets);

/// One text, texts, or pairs of texts. Throws ARGUMENT with the place of what is none, and for pairs where they are not asked for.
struct GivenTexts {
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, std::string>> pairs;
  bool are_pairs = false;

  GivenTexts(nb::handle given, const char* op, bool may_be_pairs = true, const char* argument = "texts");

  /// Those of text number i.
  nb::list places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences) const;
};

/// Several lists of words, or pairs of lists. Throws ARGUMENT with the place of what is none.
struct GivenWords {
  std::vector<Words> lists;
  std::vector<std::pair<Words, Words>> pairs;
  bool are_pairs = false;

  GivenWords(nb::handle given, const char* op);

  /// Those of list number i, each in its word.
  nb::list places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences, const TokenWords& words) const;
};

}  // namespace attn::python
