#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <variant>

#include "attn/attn.hpp"
#include "memory/bytes.hpp"

namespace attn::test {

inline constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 63;

/// Bytes that the call is refused for, if the limit is one byte less than `limit`.
inline std::int64_t refused_bytes(const std::function<void()>& call, std::uint64_t limit) {
  std::int64_t bytes = 0;
  set_memory_limit(limit - 1);
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::memory);
    bytes = std::atoll(std::get<std::string>(error.detail().at("got")).c_str());
  }
  set_memory_limit(kNoLimit);
  return bytes;
}

/// `call` returns how many floats of results it allocates besides those in cache lines. Twice, because a model keeps what
/// it computes from weights, and gradients of a module are reused.
inline void check_estimate(const std::string& name, const std::function<std::int64_t()>& call) {
  INFO(name);
  const auto run = [&] { call(); };
  for (const bool is_first : {true, false}) {
    INFO("first call " << is_first);
    Context::release_memory();
    std::int64_t estimate = 0;
    // A refused call takes no memory that depends on sizes.
    CHECK(most_line_bytes_of([&] { estimate = refused_bytes(run, 1); }) == 0);
    CHECK(estimate > 0);
    CHECK(refused_bytes(run, static_cast<std::uint64_t>(estimate)) == estimate);
    std::int64_t results = 0;
    set_memory_limit(static_cast<std::uint64_t>(estimate));
    const std::int64_t taken = most_line_bytes_of([&] { results = call(); });
    set_memory_limit(kNoLimit);
    CHECK(taken + 4 * results == estimate);
    // Lists and strings are not counted.
    constexpr std::int64_t kSmall = 32'768;
    Context::release_memory();
    CHECK(most_bytes_of(run) < estimate + kSmall);
  }
}

}  // namespace attn::test
