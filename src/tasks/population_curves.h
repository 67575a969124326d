#pragma once

#include <array>
#include <cstddef>
#include <span>

// Noise-free curves of the two tasks that solve differential equations, by Dormand-Prince 5(4) in log populations: a
// population that falls to 1e-40 is as accurate as one of 1e6. Relative error below 1e-9. All return false when there
// is no solution: a parameter is not finite, the step budget is spent, a number overflows.
namespace nrec::tasks {

inline constexpr std::size_t kCurvePoints = 10;

inline constexpr double kSirPopulation = 1e6;
// log I(t) at t = 0, 17, ..., 153 with
//   S' = -beta S I / N, I' = beta S I / N - gamma I, N = 1e6, S(0) = N - 1, I(0) = 1.
bool solve_sir(std::span<const double> theta, std::array<double, kCurvePoints>& log_infected);

// log prey, then log predators, at t = 0, 2.1, ..., 18.9 with
//   x' = alpha x - beta x y, y' = -gamma y + delta x y, x(0) = 30, y(0) = 1; theta = (alpha, beta, gamma, delta).
bool solve_lotka_volterra(std::span<const double> theta,
                          std::array<double, 2 * kCurvePoints>& log_populations);

}  // namespace nrec::tasks
