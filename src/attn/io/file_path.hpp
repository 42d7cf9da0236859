#pragma once

#include <string>
#include <type_traits>

namespace attn {

/// Where a file or folder is: a string, or std::filesystem::path, whose header would cost a program that includes attn's more than the
/// rest of them.
class FilePath {
 public:
  template <class Path>
    requires std::is_constructible_v<std::string, const Path&>
  FilePath(const Path& path) : text_(path) {}
  template <class Path>
    requires(!std::is_constructible_v<std::string, const Path&>) && requires(const Path& path) { std::string(path.string()); }
  FilePath(const Path& path) : text_(path.string()) {}

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace attn
