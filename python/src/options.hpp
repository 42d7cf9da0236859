#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array.hpp"

namespace attn::python {

/// typing.Literal[...]
template <const auto& kWords>
consteval auto literal_of() {
  constexpr auto put = [](auto add) {
    const auto add_all = [&](std::string_view text) {
      for (const char c : text) add(c);
    };
    add_all("typing.Literal[");
    for (std::size_t i = 0; i < kWords.size(); ++i) {
      add_all(i == 0 ? "'" : ", '");
      add_all(kWords[i]);
      add('\'');
    }
    add(']');
  };
  constexpr std::size_t kSize = [=] {
    std::size_t size = 0;
    put([&](char) { ++size; });
    return size;
  }();
  char name[kSize + 1] = {};
  char* to = name;
  put([&](char c) { *to++ = c; });
  return TypeName<kSize + 1>(name);
}

template <const auto& kWords>
struct Word : nb::object {
  static constexpr auto kLiteral = literal_of<kWords>();
  static constexpr auto Name = nb::detail::const_name(kLiteral.text);
  static bool check_(nb::handle given) { return given.is_none() || PyUnicode_Check(given.ptr()); }

  Word(nb::handle given, nb::detail::borrow_t tag) : nb::object(given, tag) {}
  Word(nb::handle given, nb::detail::steal_t tag) : nb::object(given, tag) {}
};

std::size_t place_of(std::string_view word, std::span<const std::string_view> words, std::string_view op, std::string_view option);

template <class Enum, const auto& kWords>
Enum word_of(const Word<kWords>& word, std::string_view op, std::string_view option) {
  return static_cast<Enum>(place_of(nb::cast<std::string>(word), kWords, op, option));
}
template <class Enum, const auto& kWords>
std::optional<Enum> maybe_word_of(const Word<kWords>& word, std::string_view op, std::string_view option) {
  return word.is_none() ? std::nullopt : std::optional(word_of<Enum>(word, op, option));
}

inline constexpr std::array<std::string_view, 3> kFullyMaskedNames{"zero", "nan", "uniform"};

inline constexpr std::array<std::string_view, 3> kMaskKindNames{"attend", "block", "additive"};

struct GivenMask {
  MaskKind kind;
  nb::object array;  ///< referred to, or a copy
  std::shared_ptr<const void> numbers;
  Mask mask;
};

void define_masks(nb::module_& module);

/// Throws ARGUMENT for a bare array, which could mean visible or blocked keys.
using MaybeMask = Typed<"Mask">;
std::optional<Mask> mask_of(const MaybeMask& given, std::string_view op, std::string_view argument);

using TraceNames = Typed<"bool | collections.abc.Sequence[str]">;
Trace trace_of(const TraceNames& given, std::string_view op);
std::optional<EncoderTraceOptions> trace_of(const TraceNames& given, const std::optional<std::vector<std::int64_t>>& layers, std::string_view op);

using Patches = Typed<"attn.LayerPatch | collections.abc.Iterable[attn.LayerPatch] | None">;
std::vector<LayerPatch> patches_of(const Patches& given, const char* op);

using Done = Typed<"collections.abc.Callable[[int, int], object]">;
/// Calls the function with the GIL. Throws KeyboardInterrupt.
std::function<void(std::int64_t, std::int64_t)> progress_of(const Done& on_progress);

using MaybeWindow = std::optional<std::pair<std::int64_t, std::int64_t>>;
inline std::optional<Window> window_of(const MaybeWindow& given) { return given ? std::optional(Window{given->first, given->second}) : std::nullopt; }

}  // namespace attn::python
