#include "population_curves.h"

#include <algorithm>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <cmath>

namespace nrec::tasks {
namespace {

using State = std::array<double, 2>;  // logarithms of the two populations
namespace odeint = boost::numeric::odeint;

// In logarithms an absolute tolerance is a relative one of the population; it holds per step.
constexpr double kTolerance = 1e-11;
constexpr double kFirstStep = 1e-2;
constexpr int kMostSteps = 200'000;

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// Calls keep(k, state) at t = k * spacing, k = 0 .. kCurvePoints - 1. Steps end exactly at these times, so that no
// interpolation adds to the error.
template <class System, class Keep>
bool solve(System system, State state, double spacing, Keep keep) {
  auto stepper = odeint::make_controlled<odeint::runge_kutta_dopri5<State>>(kTolerance, 0.0);
  double t = 0.0;
  double step = kFirstStep;
  int steps = 0;
  keep(std::size_t{0}, state);
  for (std::size_t k = 1; k < kCurvePoints; ++k) {
    const double end = static_cast<double>(k) * spacing;
    while (t < end) {
      const double wanted = step;
      const bool last = t + step >= end;
      if (last) step = end - t;
      const bool accepted = stepper.try_step(system, state, t, step) == odeint::success;
      if (++steps > kMostSteps || !all_finite(state)) return false;
      if (accepted && last) {
        t = end;
        step = std::max(step, wanted);  // a step cut short says little about the next one
      }
    }
    keep(k, state);
  }
  return true;
}

}  // namespace

bool solve_sir(std::span<const double> theta, std::array<double, kCurvePoints>& log_infected) {
  constexpr double kSpacing = 17.0;
  if (!all_finite(theta)) return false;
  const double beta = theta[0];
  const double gamma = theta[1];
  const double log_population = std::log(kSirPopulation);
  const auto system = [&](const State& u, State& rate, double) {
    rate[0] = -beta * std::exp(u[1] - log_population);
    rate[1] = beta * std::exp(u[0] - log_population) - gamma;
  };
  const State start = {std::log(kSirPopulation - 1.0), 0.0};
  return solve(system, start, kSpacing, [&](std::size_t k, const State& u) { log_infected[k] = u[1]; });
}

bool solve_lotka_volterra(std::span<const double> theta,
                          std::array<double, 2 * kCurvePoints>& log_populations) {
  constexpr double kSpacing = 2.1;
  if (!all_finite(theta)) return false;
  const double alpha = theta[0];
  const double beta = theta[1];
  const double gamma = theta[2];
  const double delta = theta[3];
  const auto system = [&](const State& u, State& rate, double) {
    rate[0] = alpha - beta * std::exp(u[1]);
    rate[1] = delta * std::exp(u[0]) - gamma;
  };
  const State start = {std::log(30.0), 0.0};
  return solve(system, start, kSpacing, [&](std::size_t k, const State& u) {
    log_populations[k] = u[0];
    log_populations[kCurvePoints + k] = u[1];
  });
}

}  // namespace nrec::tasks
