#include "attn/tensor/error.hpp"

namespace attn {

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::initializer_list<TextPart> expected,
          std::initializer_list<TextPart> got) {
  const std::string expected_text = text(expected), got_text = text(got);
  const char* verb = got_text.starts_with('(') ? " has shape " : " is ";
  throw Error(code, text({op, ": ", argument, verb, got_text, ", expected ", expected_text}),
              {{"op", std::string(op)}, {"argument", std::string(argument)}, {"expected", expected_text}, {"got", got_text}});
}

}  // namespace attn
