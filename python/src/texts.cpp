#include "texts.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <optional>

namespace attn::python {
namespace {

std::vector<std::int64_t> characters_before(std::string_view text) {
  std::vector<std::int64_t> before;
  before.reserve(text.size() + 1);
  std::int64_t count = 0;
  for (const char byte : text) {
    before.push_back(count);
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) ++count;
  }
  before.push_back(count);
  return before;
}

nb::object place(const std::vector<std::int64_t>& before, const TokenOffsets::value_type& offset) {
  if (!offset) return nb::none();
  // A token that begins inside a character begins with it.
  const auto at = [&](std::int64_t byte) { return before[static_cast<std::size_t>(byte)]; };
  return nb::make_tuple(at(offset->first), at(offset->second));
}

std::string text_of(nb::handle given, const char* op, const char* argument, std::size_t index, bool may_be_pair = false) {
  const auto refuse = [&](std::string_view got) {
    ErrorDetail detail;
    detail.emplace("index", static_cast<double>(index));
    detail::fail(ErrorCode::argument, op, detail::text({argument, "[", index, "]"}), {may_be_pair ? "a str or a pair of them" : "a str"}, {got},
                 std::move(detail));
  };
  if (!PyUnicode_Check(given.ptr())) refuse(may_be_pair ? kind_of(given) : name_of_type(given));
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(given.ptr(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    refuse("a str with lone surrogates");
  }
  return {bytes, static_cast<std::size_t>(size)};
}

bool is_list(nb::handle given) { return PyTuple_Check(given.ptr()) || PyList_Check(given.ptr()); }

nb::object class_of(const char* module, const char* name) { return nb::module_::import_(module).attr(name); }

Words words_of(nb::handle given, const char* op, std::size_t index) {
  if (!is_list(given))
    detail::fail(ErrorCode::argument, op, detail::text({"texts[", index, "]"}), {"a list of words, or a pair of such lists"}, {name_of_type(given)});
  Words words;
  for (const nb::handle each : given) words.push_back(text_of(each, op, "texts", index));
  return words;
}

}  // namespace

std::string kind_of(nb::handle given) {
  return is_list(given) ? detail::text({"a ", name_of_type(given), " of ", nb::len(given)}) : name_of_type(given);
}

void check_list(nb::handle given, const char* op, const char* argument, std::string_view expected) {
  const auto refuse = [&](std::string_view help) { detail::fail(ErrorCode::argument, op, argument, {expected}, {name_of_type(given)}, help); };
  if (nb::isinstance(given, class_of("collections.abc", "Mapping")))
    refuse(detail::text({"Write ", argument, "=list(d) for its keys or ", argument, "=list(d.values()) for its values"}));
  const std::string_view of_arrow = nb::hasattr(given, "to_pylist") ? ".to_pylist()" : "";
  if (nb::hasattr(given, "columns"))
    refuse(detail::text({"Write ", argument, "=table['name']", of_arrow, " for a column, with the name of the column"}));
  if (!of_arrow.empty()) refuse(detail::text({"Write ", argument, "=column.to_pylist()"}));
  if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()) || !nb::hasattr(given, "__iter__")) refuse({});
}

nb::list places(std::string_view text, const TokenOffsets& offsets) {
  const std::vector<std::int64_t> before = characters_before(text);
  nb::list list;
  for (const auto& offset : offsets) list.append(place(before, offset));
  return list;
}

GivenTexts::GivenTexts(nb::handle given, const char* op, bool may_be_pairs, const char* argument) {
  if (PyUnicode_Check(given.ptr())) {
    texts.push_back(text_of(given, op, argument, 0));
    return;
  }
  std::size_t index = 0;
  const auto refuse = [&](std::string_view expected, std::string_view got) {
    detail::fail(ErrorCode::argument, op, detail::text({argument, "[", index, "]"}), {expected}, {got});
  };
  check_list(given, op, argument, "a str or a list of them");
  for (const nb::handle each : given) {
    check_signals(index);
    const bool is_pair = (PyTuple_Check(each.ptr()) || PyList_Check(each.ptr())) && nb::len(each) == 2;
    if (index == 0) are_pairs = is_pair && may_be_pairs;
    if (are_pairs && !is_pair) refuse("a pair of texts like the first element", kind_of(each));
    if (are_pairs)
      pairs.emplace_back(text_of(each[0], op, argument, index), text_of(each[1], op, argument, index));
    else
      texts.push_back(text_of(each, op, argument, index, may_be_pairs));
    ++index;
  }
}

nb::list GivenTexts::places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences) const {
  if (!are_pairs) return python::places(texts[i], offsets);
  const std::array<std::vector<std::int64_t>, 2> before{characters_before(pairs[i].first), characters_before(pairs[i].second)};
  nb::list list;
  for (std::size_t token = 0; token < offsets.size(); ++token)
    list.append(place(before[static_cast<std::size_t>(sequences[token].value_or(0))], offsets[token]));
  return list;
}

Truncated::Truncated(const TruncatedList& given, const char* op) : list_(given) {
  if (!list_.is_none() && !PyList_Check(list_.ptr())) detail::fail(ErrorCode::argument, op, "truncated", {"a list"}, {name_of_type(list_)});
}

void Truncated::fill() const {
  if (list_.is_none()) return;
  list_.attr("clear")();
  for (const bool each : flags_) list_.attr("append")(each);
}

GivenWords::GivenWords(nb::handle given, const char* op) {
  check_list(given, op, "texts", "lists of words");
  std::size_t index = 0;
  for (const nb::handle each : given) {
    const bool is_pair = is_list(each) && nb::len(each) == 2 && is_list(each[0]);
    if (index == 0) are_pairs = is_pair;
    if (are_pairs && !is_pair)
      detail::fail(ErrorCode::argument, op, detail::text({"texts[", index, "]"}), {"a pair of lists like the first element"}, {name_of_type(each)});
    if (are_pairs)
      pairs.emplace_back(words_of(each[0], op, index), words_of(each[1], op, index));
    else
      lists.push_back(words_of(each, op, index));
    ++index;
  }
}

nb::list GivenWords::places(std::size_t i, const TokenOffsets& offsets, const TokenSequences& sequences, const TokenWords& words) const {
  nb::list list;
  for (std::size_t token = 0; token < offsets.size(); ++token) {
    if (!offsets[token]) {
      list.append(nb::none());
      continue;
    }
    const Words& of = are_pairs ? (sequences[token] == 1 ? pairs[i].second : pairs[i].first) : lists[i];
    list.append(place(characters_before(of[static_cast<std::size_t>(words[token].value_or(0))]), offsets[token]));
  }
  return list;
}

}  // namespace attn::python
