#pragma once

namespace nrec {

/// S(a) = log Gamma(a) - (a log a - a - log(a / 2 pi) / 2): what Stirling's formula leaves out, a > 0.
///
/// Numerics absolute error below 1e-15 max(1, |log a|); densities written with it keep their digits at large
/// a Source   [Loader2000]
double stirling_error(double a);

/// log(1 + x) - x for x > -1, accurate near 0.
double log1p_minus_x(double x);

/// log(Gamma(a) / Gamma(a + 1/2)), a > 0.
double log_gamma_half_ratio(double a);

/// Mills ratio (1 - Phi(a)) / phi(a) for a >= 0, without under- or overflow.
double mills_ratio(double a);

/// Integral of exp(-(slope t + t^2 / 2)) over t in [0, width]; slope >= 0, width > 0 and possibly infinite.
///
/// Numerics relative error below 1e-13
double gaussian_tail_integral(double slope, double width);

}  // namespace nrec
