#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What may be written behind `attn`. web/lib/src/cli/options.ts has the same table and says the same.
namespace command {

/// A call that is wrong.
struct Misuse {
  std::string what;
};

/// "did you mean inspect?", or what there is.
std::string hint(std::string_view name, std::span<const std::string_view> known);

struct Call {
  std::string command;
  std::vector<std::string> paths;
  std::map<std::string, std::string, std::less<>> options;  ///< checked; of one that takes nothing empty

  bool has(std::string_view name) const { return options.find(name) != options.end(); }
  std::string_view text(std::string_view name, std::string_view otherwise = "") const;
};

struct Help {
  std::string text;
  bool wrong = false;  ///< nothing was asked for
};
struct Version {};

Help help_of(std::string_view name);
/// Throws Misuse.
std::variant<Call, Help, Version> read_call(std::span<char* const> arguments);

}  // namespace command
