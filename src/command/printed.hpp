#pragma once

#include <string>
#include <string_view>

namespace command {

/// The text with control characters (but tabs) and those that change the direction of writing as \u escapes, which a terminal does not obey; of JSON
/// it is the same JSON. What is not UTF-8 becomes U+FFFD.
std::string printable(std::string_view text);

/// A line of standard output.
void print_line(std::string_view line);
/// A line of standard error: "attn: ...".
void print_error(std::string_view message);

/// Opens what of the three standard files is closed, so that no other file gets its number; what is written there fails.
void open_standard_files();
/// Throws std::system_error if standard output could not be written.
void end_output();

/// errno as the reason. A reader that has read enough and closed its end of standard output ends the program without an error.
[[noreturn]] void fail_by_errno(const std::string& what);
[[noreturn]] void fail_writing();

}  // namespace command
