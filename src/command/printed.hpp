#pragma once

#include <string>
#include <string_view>

namespace command {

/// Replaces control characters (except tabs) and characters that change the text direction with \u escapes, which a
/// terminal does not act on and which leave JSON equivalent. Each byte that is not UTF-8 becomes U+FFFD.
std::string printable(std::string_view text);

void print_line(std::string_view line);
void print_error(std::string_view message);

/// Opens the closed ones among the three standard files, so that no other file gets their numbers. Writing to them
/// fails.
void open_standard_files();
void end_output();

/// Throws errno as std::system_error; fail_writing() ends the program without an error if the reader has closed the pipe.
[[noreturn]] void fail_by_errno(const std::string& what);
[[noreturn]] void fail_writing();

}  // namespace command
