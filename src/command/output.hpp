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

struct Result {
  std::string line;
  std::vector<float> numbers;
};

/// Files appear when complete; devices and pipes get each result immediately.
class Output {
 public:
  /// `width`: numbers per npy row. npy needs the number of rows, so a pipe, which cannot seek, waits for it.
  Output(const std::optional<std::string>& path, std::optional<std::int64_t> width);

  void add(const std::vector<Result>& results);
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
