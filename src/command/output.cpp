#include "output.hpp"

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "printed.hpp"

namespace command {
namespace {

namespace fs = std::filesystem;

bool is_device(const std::string& path) { return fs::exists(path) && !fs::is_regular_file(path) && !fs::is_directory(path); }

}  // namespace

Output::Output(const std::optional<std::string>& path, std::optional<std::int64_t> width) : path_(path), to_(&std::cout), width_(width) {
  if (!path) return;
  if (is_device(*path)) {
    errno = 0;
    device_.open(*path, std::ios::binary);
    if (!device_) fail_by_errno(*path);
    to_ = &device_;
    return;
  }
  if (const fs::path folder = fs::path(*path).parent_path(); !folder.empty() && !fs::is_directory(folder)) {
    errno = ENOENT;
    fail_by_errno(*path);
  }
  on_signal_.emplace([this] { files_.abandon(); });
  to_ = &files_.open(*path);
  if (width_) put(header());
}

void Output::add(const std::vector<Result>& results) {
  rows_ += results.size();
  for (const auto& [line, numbers] : results) {
    if (!width_)
      put(printable(line) + "\n");
    else if (on_signal_)
      put(numbers);
    else
      kept_.insert(kept_.end(), numbers.begin(), numbers.end());
  }
  flush();
}

void Output::end() {
  if (width_ && on_signal_ && !to_->seekp(0)) failed();
  if (width_) put(header());
  put(kept_);
  flush();
  if (on_signal_) files_.commit();
}

/// 128 bytes, so that end() can overwrite it.
std::string Output::header() const {
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows_) + ", " + std::to_string(*width_) + "), }";
  dictionary.resize(117, ' ');
  using namespace std::string_literals;
  return "\x93NUMPY\x01\x00\x76\x00"s + dictionary + "\n";
}

void Output::put(std::string_view bytes) {
  errno = 0;
  if (!to_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) failed();
}
void Output::put(const std::vector<float>& numbers) { put({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)}); }

void Output::flush() {
  errno = 0;
  if (!to_->flush()) failed();
}

void Output::failed() const {
  if (path_) fail_by_errno(*path_);
  fail_writing();
}

}  // namespace command
