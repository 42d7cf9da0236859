#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/files.hpp"
#include "on_signal.hpp"

namespace command {

/// What is written of a line; vectors alone can be npy.
struct Result {
  std::string line;
  std::vector<float> numbers;
};

/// Where results go: lines, or vectors whose number is known at the end. A file is there once it is complete; a device or pipe gets each result.
class Output {
 public:
  /// Of `width` numbers a row where it is npy. A pipe cannot be gone back in: vectors wait until their number is known.
  Output(const std::optional<std::string>& path, std::optional<std::int64_t> width);

  void add(const std::vector<Result>& results);
  /// Whether all could be written so far.
  bool good() const { return to_->good(); }
  void end();

 private:
  std::string header() const;
  void put(std::string_view bytes);
  void put(const std::vector<float>& numbers);
  void flush();
  [[noreturn]] void failed() const;

  const std::optional<std::string> path_;
  std::ostream* to_;
  std::ofstream device_;
  attn::detail::StagedFiles files_;
  std::optional<OnSignal> on_signal_;
  std::optional<std::int64_t> width_;
  std::vector<float> kept_;
  std::size_t rows_ = 0;
};

}  // namespace command
