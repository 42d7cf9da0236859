#include "attn/tensor/float_environment.hpp"

#include <cstdint>

#ifndef __wasm__
namespace attn::detail {
namespace {

/// Ten cycles; std::fegetenv and std::fesetenv cost hundreds.
bool is_default() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kFlags = 0x3f, kMxcsr = 0x1f80, kRounding = 0x0c00;
  std::uint16_t x87 = 0;  // strtod uses its rounding mode
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (__builtin_ia32_stmxcsr() & ~kFlags) == kMxcsr && (x87 & kRounding) == 0;
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control == 0;
#else
  return false;
#endif
}

}  // namespace

FloatEnvironment::FloatEnvironment() noexcept : changed_(!is_default()) {
  if (!changed_) return;
  std::fegetenv(&before_);
  std::fesetenv(FE_DFL_ENV);
}

}  // namespace attn::detail
#endif
