#pragma once

namespace attn::detail {

// float64 functions without C library calls, whose last bits differ between systems. For tables and weights, not for
// inner loops.

/// x is normal and above 0.
double log_of(double x);

/// Relative error below 2 · 2⁻⁵², for pow_of below (3 + 1.5 |x · ln base|) · 2⁻⁵². 2ˣ is exact for integers; base is
/// normal and above 0.
double exp_of(double x);
double exp2_of(double x);
double pow_of(double base, double exponent);

struct SinCos {
  double sin, cos;
};

/// Absolute error below 1e-15; NaN if |x| > 2⁵⁴, because no digit is left for the angle.
SinCos sin_cos_of(double x);

}  // namespace attn::detail
