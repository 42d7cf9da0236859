#pragma once

#include <catch2/catch_test_macros.hpp>
#include <concepts>
#include <string>

#include "attn/tensor/error.hpp"

namespace attn::test {

template <std::invocable Call>
void refused(ErrorCode code, const std::string& words, Call call) {
  INFO("expecting " << to_string(code) << " with " << words);
  try {
    call();
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(to_string(error.code()) == to_string(code));
    CHECK(std::string(error.what()).find(words) != std::string::npos);
    return;
  }
  FAIL_CHECK("nothing was thrown");
}

}  // namespace attn::test
