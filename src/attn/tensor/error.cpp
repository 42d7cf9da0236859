#include "attn/tensor/error.hpp"

namespace attn {

void fail(ErrorCode code, std::string_view op, std::string_view argument, std::string_view expected, std::string_view got) {
  const char* verb = got.starts_with('(') ? " has shape " : " is ";
  const std::string message = std::string(op) + ": " + std::string(argument) + verb + std::string(got) + ", expected " + std::string(expected);
  throw Error(code, message,
              {{"op", std::string(op)}, {"argument", std::string(argument)}, {"expected", std::string(expected)}, {"got", std::string(got)}});
}

}  // namespace attn
