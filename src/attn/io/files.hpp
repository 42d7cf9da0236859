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

namespace attn::detail {

/// Opens only regular files and links to them: opening a FIFO waits for a writer, and a device may never end.
class InputFile : public std::ifstream {
 public:
  explicit InputFile(const std::filesystem::path& path);

  std::uintmax_t size() const { return size_; }
  /// "missing", "a folder", "unreadable (Permission denied)"; null if the file is open.
  const char* problem() const { return problem_.empty() ? nullptr : problem_.c_str(); }
  void check_open(std::string_view op) const;
  /// Passes pieces of at most 1 MB.
  void read_rest(const std::function<void(std::span<const std::uint8_t>)>& write);

 private:
  std::uintmax_t size_ = 0;
  std::string path_, problem_;
  int errno_ = 0;
};

/// Replaces all files or none: each is written next to its path, and commit() renames them. A link is replaced, not
/// followed.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  /// Creates missing folders and ends the previous file. Throws std::system_error with the path, as does commit().
  std::ofstream& open(const std::filesystem::path& path);
  void commit();
  /// From any thread: removes temporary files and created folders, after which open() and commit() throw. Does nothing
  /// after commit().
  void abandon();

 private:
  struct File {
    std::filesystem::path path, staged, old;  // old: the replaced file until all are renamed
    bool has_old = false, renamed = false;
  };
  void end_file();
  void check_wanted() const;
  void remove_staged();
  static std::error_code keep_old(File& file);
  void restore();

  std::mutex mutex_;  // abandon() may run while another thread writes
  bool abandoned_ = false;
  std::vector<File> files_;
  std::vector<std::filesystem::path> folders_;  // outer before inner
  std::ofstream stream_;
};

}  // namespace attn::detail
