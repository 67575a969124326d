// The stub simulator as a shared library: see behaviour.h.
#include <chrono>
#include <cmath>
#include <iostream>

#include "behaviour.h"
#include "nrec/simulator_interface.h"

#ifndef STUB_VERSION
#define STUB_VERSION NREC_SIMULATOR_INTERFACE_VERSION
#endif

extern "C" {

std::int32_t nrec_simulator_version(void) { return STUB_VERSION; }
std::int64_t nrec_simulator_dim_theta(void) { return 2; }
std::int64_t nrec_simulator_dim_x(void) { return 3; }

#ifndef STUB_WITHOUT_SIMULATE
[[maybe_unused]] static void work() {
  static const char* text = std::getenv("NREC_STUB_ROW_US");
  static const double microseconds = text ? std::atof(text) : 0.0;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() <
         microseconds) {
  }
}

#ifdef STUB_IDLE
std::int32_t nrec_simulate(const double*, std::uint32_t, double*) { return 0; }
#else
std::int32_t nrec_simulate(const double* theta, std::uint32_t seed, double* x) {
  const int code = stub::code_of(theta[0]);
  if (code == stub::text_before) std::cout << "printed by the library" << std::endl;
  if (code == stub::twice) return 5;
  if (code == stub::refuse_in_words) return NREC_SIMULATOR_REFUSED;
  if (code == stub::close_stdout_and_run_on) close(1);
  if (code == stub::flood_stdout) stub::flood(1, stub::flood_megabytes());
  if (code == stub::a_line_too_many) throw std::string("not caught");
  work();
  stub::misbehave(code);
  const auto right = stub::right_x(theta[0], theta[1], seed);
  for (std::size_t i = 0; i < right.size(); ++i) x[i] = right[i];
  if (code == stub::nan_value) x[1] = std::nan("");
  if (code == stub::infinite_value) x[1] = INFINITY;
  return 0;
}
#endif
#endif
}
