#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

// Reading and writing files in native builds. Internal.
namespace attn::detail {

/// Opens a regular file, or a link to one, for reading. FIFOs and devices are not opened: opening a FIFO waits for a
/// writer, and a device may never end.
class InputFile : public std::ifstream {
 public:
  explicit InputFile(const std::filesystem::path& path);

  std::uintmax_t size() const { return size_; }
  /// Returns why the file is not open ("missing", "a folder", "unreadable (Permission denied)"), or null if it is
  /// open.
  const char* problem() const { return problem_.empty() ? nullptr : problem_.c_str(); }
  /// Throws FORMAT if the file is not open, with the system's number of the reason as the fact errno.
  void check_open(std::string_view op) const;
  /// Passes the rest of the file in pieces of at most 1 MB.
  void read_rest(const std::function<void(std::span<const std::uint8_t>)>& write);

 private:
  std::uintmax_t size_ = 0;
  std::string path_, problem_;
  int errno_ = 0;
};

/// Replaces several files, all or none: each is written next to its path, and commit() renames them. A link is
/// replaced, not followed. Without commit(), or if it fails, files and folders are as they were.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  /// Begins a file, creates its missing folders, and ends the previous file. open() and commit() throw
  /// std::system_error with the path.
  std::ofstream& open(const std::filesystem::path& path);
  void commit();
  /// Removes the temporary files and the created folders, from any thread. Afterwards open() and commit() throw. Does
  /// nothing after commit().
  void abandon();

 private:
  struct File {
    std::filesystem::path path, staged, old;  // old: where the replaced file is until all files are renamed
    bool has_old = false, renamed = false;
  };
  void end_file();
  void check_wanted() const;
  void remove_staged();
  static std::error_code keep_old(File& file);
  void restore();

  std::mutex mutex_;  // abandon() may be called while another thread writes
  bool abandoned_ = false;
  std::vector<File> files_;
  std::vector<std::filesystem::path> folders_;  // created folders, outer before inner
  std::ofstream stream_;
};

}  // namespace attn::detail
