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

/// Kinds of errors. The bindings pass the names to JavaScript. The npm package has a few more (for other kinds of
/// arrays, downloads and disposed objects); a test compares its types with both.
enum class ErrorCode : std::uint8_t {
  argument,      ///< an argument is missing or has the wrong type
  shape,         ///< ranks, widths, lengths or batches disagree
  mask,          ///< a mask has wrong dimensions or values
  config,        ///< options contradict each other or are out of range
  out_of_range,  ///< an index or id is outside its table
  format,        ///< a file or its bytes are invalid
  mismatch,      ///< a state dictionary has missing, unexpected or mis-shaped names
  unsupported,   ///< valid, but not supported by attn
  memory,        ///< not enough memory
  busy,          ///< called from inside a call that must end first
};

inline constexpr std::array<std::string_view, 10> kErrorCodeNames{"ARGUMENT", "SHAPE",    "MASK",        "CONFIG", "OUT_OF_RANGE",
                                                                  "FORMAT",   "MISMATCH", "UNSUPPORTED", "MEMORY", "BUSY"};
static_assert(kErrorCodeNames.size() == static_cast<std::size_t>(ErrorCode::busy) + 1);

/// Returns the name of an error code, the same as in other languages.
/// @code
/// std::cout << to_string(attn::ErrorCode::out_of_range);  // OUT_OF_RANGE
/// @endcode
constexpr std::string_view to_string(ErrorCode code) { return kErrorCodeNames[static_cast<std::size_t>(code)]; }

/// Machine-readable facts of an error by name: op, argument, expected, got, help (a remedy without its final period)
/// and others.
using ErrorDetail = std::map<std::string, std::variant<std::string, double, std::vector<std::string>>>;

/// Exception type of the library, thrown before anything is written. The only other exception is std::bad_alloc, if the
/// system runs out of memory within the limit.
/// @code
/// try {
///   attn::softmax(xt::xtensor<float, 1>{1, 2}, 3);
/// } catch (const attn::Error& error) {
///   std::cout << to_string(error.code()) << ' ' << error.what();  // OUT_OF_RANGE softmax: dim is 3, expected a number from -1 to 0
/// }
/// @endcode
class Error : public std::runtime_error {
 public:
  /// Appends the fact "help" to the message as a sentence. Long messages and facts are shortened, because names in
  /// files may be as long as the file.
  Error(ErrorCode code, std::string message, ErrorDetail detail = {});

  /// Returns the kind of error.
  /// @code
  /// try {
  ///   attn::alibi_bias(0, 1);
  /// } catch (const attn::Error& error) {
  ///   std::cout << (error.code() == attn::ErrorCode::config);  // 1
  /// }
  /// @endcode
  ErrorCode code() const noexcept { return code_; }
  /// Returns the facts of the error by name.
  /// @code
  /// try {
  ///   attn::softmax(xt::xtensor<float, 1>{1, 2}, 3);
  /// } catch (const attn::Error& error) {
  ///   std::cout << std::get<std::string>(error.detail().at("expected"));  // a number from -1 to 0
  /// }
  /// @endcode
  const ErrorDetail& detail() const noexcept { return detail_; }
  /// Returns the remedy, a sentence without its final period, or an empty text if there is none.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/masks");
  /// try {
  ///   model.fill_mask("She drank a cup of coffee.");
  /// } catch (const attn::Error& error) {
  ///   std::cout << error.help();  // Insert [MASK] where a word should be predicted
  /// }
  /// @endcode
  std::string_view help() const noexcept;

 private:
  ErrorCode code_;
  ErrorDetail detail_;
};

namespace detail {

/// Returns op and argument as detail. Details are built by emplace because libstdc++'s variants must not run out of
/// memory while an initializer list copies them.
ErrorDetail error_detail(std::string_view op, std::string_view argument);

/// Throws "op: argument is <got>, expected <expected>" ("has shape" if got is a shape, nothing if it begins with "has" or
/// "needs"), with these four facts and `more` as detail.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got, ErrorDetail more);
/// An overload rather than a default argument, which would construct and destroy an empty map at each of 190 calls.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got);
/// Adds a remedy as the fact "help": a sentence without its final period, or an empty text for none.
[[noreturn]] void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
                       std::initializer_list<TextPart> got, std::string_view help);

}  // namespace detail

}  // namespace attn
