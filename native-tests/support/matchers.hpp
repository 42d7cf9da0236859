#pragma once

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "attn/tensor/error.hpp"
#include "support/array.hpp"
#include "support/reference.hpp"

namespace attn::test {

/// Engines differ in the sign and payload of NaNs.
inline std::uint32_t canonical_bits(float x) { return std::isnan(x) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(x); }

class ArrayMatcher : public Catch::Matchers::MatcherBase<Array> {
 public:
  std::string describe() const override { return finding_; }

 protected:
  bool dims_match(const Array& actual, const Shape& dims) const {
    if (actual.dims == dims && actual.data.size() == size_of(dims)) return true;
    finding_ = "has dims " + to_string(actual.dims) + ", expected " + to_string(dims);
    return false;
  }
  bool fail_at(const Array& actual, std::size_t i, const std::string& expected) const {
    std::ostringstream text;
    text.precision(9);
    text << "is " << actual.data[i] << " at " << index(actual.dims, i) << ", expected " << expected;
    finding_ = text.str();
    return false;
  }

 private:
  static std::string index(const Shape& dims, std::size_t i) {
    Shape at = dims;
    for (std::size_t axis = dims.rank(); axis-- > 0;) {
      at[axis] = static_cast<std::int64_t>(i % static_cast<std::size_t>(dims[axis]));
      i /= static_cast<std::size_t>(dims[axis]);
    }
    return to_string(at);
  }

  mutable std::string finding_ = "matches";
};

class IsCloseTo : public ArrayMatcher {
 public:
  explicit IsCloseTo(Estimate expected) : expected_(std::move(expected)) {}
  bool match(const Array& actual) const override {
    if (!dims_match(actual, expected_.dims)) return false;
    for (std::size_t i = 0; i < actual.data.size(); ++i) {
      const double value = expected_.value[i], error = expected_.error[i], got = actual.data[i];
      const bool fits = std::isnan(value) ? std::isnan(got) : std::isinf(value) ? got == value : std::abs(got - value) <= error;
      if (fits) continue;
      std::ostringstream text;
      text.precision(12);
      text << value << " ± " << error;
      return fail_at(actual, i, text.str());
    }
    return true;
  }

 private:
  Estimate expected_;
};

inline IsCloseTo is_within(double tolerance, const Array& expected) {
  Estimate estimate(expected);
  estimate.error.assign(estimate.error.size(), tolerance);
  return IsCloseTo(estimate);
}

class HasBitsOf : public ArrayMatcher {
 public:
  explicit HasBitsOf(Array expected) : expected_(std::move(expected)) {}
  bool match(const Array& actual) const override {
    if (!dims_match(actual, expected_.dims)) return false;
    for (std::size_t i = 0; i < actual.data.size(); ++i)
      if (canonical_bits(actual.data[i]) != canonical_bits(expected_.data[i])) {
        std::ostringstream text;
        text.precision(9);
        text << expected_.data[i] << " bit for bit";
        return fail_at(actual, i, text.str());
      }
    return true;
  }

 private:
  Array expected_;
};

struct ExpectedError {
  ErrorCode code;
  std::string op, argument;
  std::vector<std::string> words;
};

template <class F>
void check_error(const ExpectedError& expected, F&& call) {
  INFO("expecting " << to_string(expected.code) << " about " << expected.argument << " from " << expected.op);
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    INFO("message: " << message);
    CHECK(to_string(error.code()) == to_string(expected.code));
    CHECK(message.starts_with(expected.op + ": "));
    for (const std::string& word : expected.words) {
      INFO("looking for: " << word);
      CHECK(message.find(word) != std::string::npos);
    }
    const auto fact = [&](const char* name) {
      const auto found = error.detail().find(name);
      return found != error.detail().end() && std::holds_alternative<std::string>(found->second) ? std::get<std::string>(found->second)
                                                                                                 : std::string("(none)");
    };
    CHECK(fact("op") == expected.op);
    if (!expected.argument.empty()) CHECK(fact("argument") == expected.argument);
    return;
  }
  FAIL_CHECK("nothing was thrown");
}

}  // namespace attn::test
