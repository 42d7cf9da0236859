#include "printed.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "attn/io/tokenizer/unicode.hpp"

namespace command {
namespace {

bool needs_escape(char32_t code) {
  const auto is_in = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  const bool is_control = (code < 0x20 && code != U'\t') || is_in(0x7f, 0x9f);
  const bool is_bidi_control = code == 0x61c || is_in(0x200e, 0x200f) || is_in(0x202a, 0x202e) || is_in(0x2066, 0x2069);
  return is_control || is_bidi_control;
}

void append(std::string& printed, char32_t code) {
  if (!needs_escape(code)) return attn::detail::append_utf8(printed, code);
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
  printed += escape;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string printed;
  if (const auto chars = attn::detail::decode_utf8(text)) {
    for (const attn::detail::Char& each : *chars) append(printed, each.code);
    return printed;
  }
  for (const char each : text) append(printed, static_cast<unsigned char>(each) < 0x80 ? static_cast<char32_t>(each) : U'\ufffd');
  return printed;
}

void print_line(std::string_view line) { std::cout << printable(line) << '\n'; }
void print_error(std::string_view message) { std::cerr << "attn: " << printable(message) << '\n'; }

void open_standard_files() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) < 0) static_cast<void>(open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void end_output() {
  // A text longer than the buffer may have failed before.
  if (std::cout) errno = 0;
  if (!std::cout.flush()) fail_writing();
}

void fail_by_errno(const std::string& what) { throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), what); }

void fail_writing() {
  if (errno == EPIPE) std::_Exit(0);
  fail_by_errno("writing");
}

}  // namespace command
