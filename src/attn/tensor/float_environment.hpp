#pragma once

#ifndef __wasm__
#include <cfenv>
#endif

namespace attn::detail {

/// Rounds to nearest, keeps subnormal numbers and masks exceptions in this thread, so that results have the same bits
/// whatever other libraries set. WebAssembly has no other environment.
class FloatEnvironment {
 public:
#ifdef __wasm__
  FloatEnvironment() {}
#else
  FloatEnvironment() noexcept;
  ~FloatEnvironment() {
    if (changed_) std::fesetenv(&before_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  bool changed_;
  std::fenv_t before_;
#endif
};

}  // namespace attn::detail
