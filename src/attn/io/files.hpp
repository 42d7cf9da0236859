#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// Files of the machine that are read and written. Natively only. Internal.
namespace attn::detail {

/// A regular file, or one that a link leads to, opened for reading. A FIFO, whose open() waits for a writer, and a device, which may never end, are
/// not opened.
class InputFile : public std::ifstream {
 public:
  explicit InputFile(const std::filesystem::path& path);

  std::uintmax_t size() const { return size_; }
  /// Returns why it is not open ("not there", "a folder", "unreadable (Permission denied)"), or null if it is.
  const char* problem() const { return problem_.empty() ? nullptr : problem_.c_str(); }

 private:
  std::uintmax_t size_ = 0;
  std::string problem_;
};

/// Files that replace those at their paths, all or none: each is written beside its path, and commit() renames them. A link is replaced, not written
/// through. Without a commit() files and folders are as they were.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  /// Begins a file, with its folders where they are missing, and ends the one before. These throw std::system_error with the path.
  std::ofstream& open(const std::filesystem::path& path);
  void commit();
  /// Where the file is that was opened last.
  const std::filesystem::path& staged() const { return files_.back().staged; }

 private:
  struct File {
    std::filesystem::path path, staged;
  };
  void end_file();

  std::vector<File> files_;
  std::vector<std::filesystem::path> folders_;  // new ones, the outer before the inner
  std::ofstream stream_;
};

}  // namespace attn::detail
