#include "attn/tensor/error.hpp"

namespace attn {
namespace {

// In bytes, except kMostItems.
constexpr std::size_t kMostMessage = 2000, kMostFact = 1000, kMostItems = 1000, kMostItem = 200;

bool is_inside(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Keeps start and end, cut between characters.
std::string& cut(std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t head = most * 2 / 3, tail = text.size() - most / 4;
  while (head > 0 && is_inside(text[head])) --head;
  while (tail < text.size() && is_inside(text[tail])) ++tail;
  return text.replace(head, tail - head, " … ");
}

std::string_view help_of(const ErrorDetail& detail) noexcept {
  const auto fact = detail.find("help");
  const auto* help = fact != detail.end() ? std::get_if<std::string>(&fact->second) : nullptr;
  return help != nullptr ? std::string_view(*help) : std::string_view();
}

std::string& with_help(std::string& message, std::string_view help) { return help.empty() ? message : message.append(". ").append(help).append("."); }

}  // namespace

Error::Error(ErrorCode code, std::string message, ErrorDetail detail)
    : std::runtime_error(cut(with_help(message, help_of(detail)), kMostMessage)), code_(code), detail_(std::move(detail)) {
  for (auto& [name, value] : detail_) {
    if (auto* fact = std::get_if<std::string>(&value)) {
      cut(*fact, kMostFact);
    } else if (auto* items = std::get_if<std::vector<std::string>>(&value)) {
      if (items->size() > kMostItems) items->resize(kMostItems);
      for (std::string& item : *items) cut(item, kMostItem);
    }
  }
}

std::string_view Error::help() const noexcept { return help_of(detail_); }

namespace detail {

ErrorDetail error_detail(std::string_view op, std::string_view argument) {
  ErrorDetail detail;
  detail.emplace("op", std::string(op));
  detail.emplace("argument", std::string(argument));
  return detail;
}

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
          std::initializer_list<TextPart> got, ErrorDetail more) {
  const std::string expected_text = text(expected), got_text = text(got);
  const bool has_verb = got_text.starts_with("has ") || got_text.starts_with("needs ");
  const char* verb = has_verb ? " " : got_text.starts_with('(') ? " has shape " : " is ";
  more.merge(error_detail(op, argument));
  more.emplace("expected", expected_text);
  more.emplace("got", got_text);
  throw Error(code, text({op, ": ", argument, verb, got_text, ", expected ", expected_text}), std::move(more));
}

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
          std::initializer_list<TextPart> got) {
  fail(code, op, argument, expected, got, ErrorDetail());
}

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
          std::initializer_list<TextPart> got, std::string_view help) {
  ErrorDetail more;
  if (!help.empty()) more.emplace("help", std::string(help));
  fail(code, op, argument, expected, got, std::move(more));
}

}  // namespace detail
}  // namespace attn
