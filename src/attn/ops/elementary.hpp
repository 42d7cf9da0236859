#pragma once

namespace attn::detail {

// Elementary functions of float64 by additions, multiplications, divisions, square roots and work on bits alone: C
// libraries differ in the last bits of theirs, and these reach outputs. For tables and weights, not for inner loops.

/// Natural logarithm of a normal number above 0.
double log_of(double x);

/// eˣ, 2ˣ (exact where x is a whole number) and baseˣ for a normal base above 0: relative error below 2 · 2⁻⁵², and
/// below (3 + 1.5 |x · ln base|) · 2⁻⁵² for the last.
double exp_of(double x);
double exp2_of(double x);
double pow_of(double base, double exponent);

struct SinCos {
  double sin, cos;
};

/// Sine and cosine, each with an absolute error below 1e-15; NaN where |x| > 2⁵⁴, which has no digit for the angle left.
SinCos sin_cos_of(double x);

}  // namespace attn::detail
