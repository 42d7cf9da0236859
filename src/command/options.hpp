#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// web/lib/src/cli/options.ts has the same table and messages.
namespace command {

struct Misuse {
  std::string what;
};

std::string expected_one_of(std::string_view name, std::span<const std::string_view> known);

struct Call {
  std::string command;
  std::vector<std::string> paths;
  std::map<std::string, std::string, std::less<>> options;  ///< checked; empty without a value
  std::vector<std::string> stops;

  bool has(std::string_view name) const { return options.find(name) != options.end(); }
  std::string_view text(std::string_view name, std::string_view otherwise = "") const;
};

struct Help {
  std::string text;
  bool wrong = false;  ///< the call has no command
};
struct Version {};

Help help_of(std::string_view name);
std::variant<Call, Help, Version> read_call(std::span<char* const> arguments);

}  // namespace command
