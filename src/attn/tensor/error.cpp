#include "attn/tensor/error.hpp"

namespace attn {

ErrorDetail error_detail(std::string_view op, std::string_view argument) {
  ErrorDetail detail;
  detail.emplace("op", std::string(op));
  detail.emplace("argument", std::string(argument));
  return detail;
}

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
          std::initializer_list<TextPart> got, ErrorDetail more) {
  const std::string expected_text = text(expected), got_text = text(got);
  const char* verb = got_text.starts_with('(') ? " has shape " : " is ";
  more.merge(error_detail(op, argument));
  more.emplace("expected", expected_text);
  more.emplace("got", got_text);
  throw Error(code, text({op, ": ", argument, verb, got_text, ", expected ", expected_text}), std::move(more));
}

}  // namespace attn
