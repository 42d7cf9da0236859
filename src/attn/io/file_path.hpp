#pragma once

#include <string>
#include <type_traits>

namespace attn {

/// Path of a file or folder: a string or a std::filesystem::path. Does not include <filesystem>, which would cost a
/// program that includes core.hpp a fifth of its compile time.
/// @code
/// const attn::FilePath path(std::filesystem::path("models") / "sentiment");
/// std::cout << path.text();  // models/sentiment
/// @endcode
class FilePath {
 public:
  /// Copies a path: anything from which a std::string can be made, or a std::filesystem::path.
  template <class Path>
    requires std::is_constructible_v<std::string, const Path&>
  FilePath(const Path& path) : text_(path) {}
  template <class Path>
    requires(!std::is_constructible_v<std::string, const Path&>) && requires(const Path& path) { std::string(path.string()); }
  FilePath(const Path& path) : text_(path.string()) {}

  /// Returns the path as text; FilePath has an example.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace attn
