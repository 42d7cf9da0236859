#include "attn/io/files.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "attn/tensor/error.hpp"

namespace attn::detail {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(const fs::path& path, std::error_code why) { throw std::system_error(why, path.string()); }

/// Streams do not keep the reason of a failure.
[[noreturn]] void fail_by_errno(const fs::path& path) { fail_at(path, {errno != 0 ? errno : EIO, std::generic_category()}); }

}  // namespace

InputFile::InputFile(const fs::path& path) : path_(path.string()) {
  std::error_code error;
  const auto refuse = [&](std::string problem, int number) {
    problem_ = std::move(problem);
    errno_ = number;
  };
  const fs::file_status status = fs::status(path, error);
  // Otherwise the system would open the path up to the zero byte.
  if (!fs::exists(status) || path.native().find('\0') != fs::path::string_type::npos)
    refuse("missing", ENOENT);
  else if (fs::is_directory(status))
    refuse("a folder", EISDIR);
  else if (!fs::is_regular_file(status))
    refuse("a device, pipe or socket", EINVAL);
  if (!problem_.empty()) return;
  size_ = fs::file_size(path, error);
  errno = 0;
  open(path, std::ios::binary);
  if (!error && is_open()) return;
  if (!error) error = {errno != 0 ? errno : EIO, std::generic_category()};
  refuse("unreadable (" + error.message() + ")", error.value());
}

void InputFile::check_open(std::string_view op) const {
  if (problem() == nullptr) return;
  ErrorDetail more;
  more.emplace("errno", static_cast<double>(errno_));
  detail::fail(ErrorCode::format, op, path_, {"a regular file"}, {problem_}, std::move(more));
}

void InputFile::read_rest(const std::function<void(std::span<const std::uint8_t>)>& write) {
  std::vector<std::uint8_t> piece(1 << 20);
  while (*this) {
    read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    write({piece.data(), static_cast<std::size_t>(gcount())});
  }
}

StagedFiles::~StagedFiles() {
  stream_.close();
  remove_staged();
}

void StagedFiles::remove_staged() {
  std::error_code none;
  for (const File& file : files_) fs::remove(file.staged, none);
  // Fails for folders that are not empty, which then stay.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) fs::remove(*folder, none);
}

std::ofstream& StagedFiles::open(const fs::path& path) {
  end_file();
  const std::lock_guard lock(mutex_);
  check_wanted();
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::is_directory(there)) fail_at(path, std::make_error_code(std::errc::is_a_directory));
  std::vector<fs::path> missing;
  for (fs::path folder = path.parent_path(); !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) missing.push_back(folder);
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    fs::create_directory(*folder, error);
    if (error) fail_at(path, error);
    folders_.push_back(*folder);
  }
  File file{.path = path, .staged = path, .old = path};
  file.staged += ".attn-" + std::to_string(std::random_device()());
  file.old = file.staged.native() + "-old";
  const fs::path& staged = files_.emplace_back(std::move(file)).staged;
  errno = 0;
  stream_.open(staged, std::ios::binary | std::ios::trunc);
  if (!stream_) fail_by_errno(path);
  if (fs::is_regular_file(there)) fs::permissions(staged, there.permissions(), error);
  return stream_;
}

void StagedFiles::end_file() {
  if (!stream_.is_open()) return;
  stream_.close();
  if (!stream_) fail_by_errno(files_.back().path);
}

void StagedFiles::check_wanted() const {
  if (abandoned_) throw std::system_error(std::make_error_code(std::errc::operation_canceled));
}

void StagedFiles::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  remove_staged();
}

/// Keeps the file about to be replaced: by a hard link, so that its path always exists, otherwise by a rename.
std::error_code StagedFiles::keep_old(File& file) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(file.path, error);
  if (!fs::exists(there)) return {};
  error.clear();
  if (!fs::is_symlink(there)) fs::create_hard_link(file.path, file.old, error);
  if (fs::is_symlink(there) || error) fs::rename(file.path, file.old, error);
  file.has_old = !error;
  return error;
}

void StagedFiles::restore() {
  std::error_code error;
  for (File& file : files_)
    if (file.has_old) {
      fs::rename(file.old, file.path, error);
      // Does nothing if both names are links to one file, which then has not been replaced.
      if (!error) fs::remove(file.old, error);
    } else if (file.renamed) {
      fs::remove(file.path, error);
    }
}

void StagedFiles::commit() {
  end_file();
  const std::lock_guard lock(mutex_);
  check_wanted();
  std::error_code error;
  for (const File& file : files_)
    if (fs::is_directory(fs::symlink_status(file.path, error))) fail_at(file.path, std::make_error_code(std::errc::is_a_directory));
  for (File& file : files_) {
    // Nothing can fail after the last rename.
    error = &file != &files_.back() ? keep_old(file) : std::error_code();
    if (!error) fs::rename(file.staged, file.path, error);
    if (error) {
      restore();
      fail_at(file.path, error);
    }
    file.renamed = true;
  }
  for (const File& file : files_)
    if (file.has_old) fs::remove(file.old, error);
  files_.clear();
  folders_.clear();
}

}  // namespace attn::detail
