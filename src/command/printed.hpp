#pragma once

#include <string>
#include <string_view>

namespace command {

/// Escapes control characters (except tabs) and changes of text direction as \u, so that terminals ignore them and JSON
/// stays equivalent.
std::string printable(std::string_view text);

void print_line(std::string_view line);
void print_error(std::string_view message);

/// Opens closed standard files, so that no other file gets their numbers.
void open_standard_files();
void end_output();

/// fail_writing() ends quietly if the reader has closed the pipe.
[[noreturn]] void fail_by_errno(const std::string& what);
[[noreturn]] void fail_writing();

}  // namespace command
