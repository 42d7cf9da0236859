#pragma once

#ifndef __wasm__
#include <cfenv>
#endif

namespace attn::detail {

/// During its lifetime, this thread rounds to nearest, keeps subnormal numbers and masks floating-point exceptions,
/// regardless of the settings of other libraries. Results then have the same bits in every thread. WebAssembly has no
/// other environment.
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
