#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace attn::test {

/// Rounds upward and flushes subnormals, as another library may.
class ForeignEnvironment {
 public:
  ForeignEnvironment() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040U);  // FTZ, DAZ
#elif defined(__aarch64__)
    std::uint64_t control = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1U << 24U));  // FZ
#endif
  }
  ~ForeignEnvironment() { std::fesetenv(&before_); }
  ForeignEnvironment(const ForeignEnvironment&) = delete;
  ForeignEnvironment& operator=(const ForeignEnvironment&) = delete;

  static bool is_in_force() {
    volatile float one = 1, tiny = 1e-30F, least = 1e-40F;
    return one + tiny > 1 && least * one == 0;
  }

 private:
  std::fenv_t before_;
};

}  // namespace attn::test
