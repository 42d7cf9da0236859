#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "attn/tensor/text.hpp"

namespace attn {

/// Every way a call can fail. The bindings hand the names to JavaScript, where the npm package has a few more of its own (of other kinds of
/// arrays, of fetching, of what was disposed of); a test compares its types with both.
enum class ErrorCode : std::uint8_t {
  argument,      ///< an argument is missing or not of its kind
  shape,         ///< ranks, widths, lengths or batches disagree
  mask,          ///< a mask has wrong dims or values
  config,        ///< options that cannot work together or are out of their range
  out_of_range,  ///< an index or id is outside its table
  format,        ///< bytes are not what they should be
  mismatch,      ///< a state dictionary has missing, extra or mis-shaped names
  unsupported,   ///< valid, but not something attn does
  memory,        ///< not enough memory
  busy,          ///< called from inside what has to end first
};

inline constexpr std::array<std::string_view, 10> kErrorCodeNames{"ARGUMENT", "SHAPE",    "MASK",        "CONFIG", "OUT_OF_RANGE",
                                                                  "FORMAT",   "MISMATCH", "UNSUPPORTED", "MEMORY", "BUSY"};
static_assert(kErrorCodeNames.size() == static_cast<std::size_t>(ErrorCode::busy) + 1);

constexpr std::string_view to_string(ErrorCode code) { return kErrorCodeNames[static_cast<std::size_t>(code)]; }

/// Facts of an error by name, for programs: op, argument, expected, got, help (a remedy without its final period) and others.
using ErrorDetail = std::map<std::string, std::variant<std::string, double, std::vector<std::string>>>;

/// The one exception type of the library, thrown before anything is written. Only std::bad_alloc is thrown besides, when the system
/// runs out of memory within the limit.
class Error : public std::runtime_error {
 public:
  /// Appends the fact "help" to the message as a sentence. Long messages and facts are shortened: names in files may be as long as the file.
  Error(ErrorCode code, std::string message, ErrorDetail detail = {});

  ErrorCode code() const noexcept { return code_; }
  const ErrorDetail& detail() const noexcept { return detail_; }
  /// Returns the remedy, a sentence without its final period, or an empty text if there is none.
  std::string_view help() const noexcept;

 private:
  ErrorCode code_;
  ErrorDetail detail_;
};

namespace detail {

/// op and argument as detail. Details are put together by emplace: libstdc++'s variants must not run out of memory while an
/// initializer list copies them.
ErrorDetail error_detail(std::string_view op, std::string_view argument);

/// Throws "op: argument is <got>, expected <expected>" ("has shape" if got is a shape) with these four facts and `more` as detail.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got, ErrorDetail more);
/// An overload rather than a default argument, which would construct and destroy an empty map at each of 190 calls.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got);
/// The same with a remedy as the fact "help": a sentence without its final period, or an empty text for none.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got, std::string_view help);

}  // namespace detail

}  // namespace attn
