#pragma once

namespace attn::detail {

// Elementary float64 functions that use only additions, multiplications, divisions, square roots and bit operations,
// because C libraries differ in the last bits of their results, which would reach outputs. For tables and weights, not
// for inner loops.

/// Returns the natural logarithm of a normal number above 0.
double log_of(double x);

/// Return eˣ, 2ˣ (exact if x is an integer) and baseˣ for a normal base above 0, with a relative error below 2 · 2⁻⁵²,
/// for baseˣ below (3 + 1.5 |x · ln base|) · 2⁻⁵².
double exp_of(double x);
double exp2_of(double x);
double pow_of(double base, double exponent);

struct SinCos {
  double sin, cos;
};

/// Returns sine and cosine, each with an absolute error below 1e-15; NaN if |x| > 2⁵⁴, because no digit is left for the angle.
SinCos sin_cos_of(double x);

}  // namespace attn::detail
