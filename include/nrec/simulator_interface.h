/* The interface of a simulator in a shared library, in C (C99 and later, C++, Fortran by bind(c)).
 *
 *     cc -shared -fPIC -o libsimulator.so simulator.c
 *
 * nrec loads the library in worker processes of its own: a crash costs one row, and the function need not be
 * thread-safe. See docs/howto/simulators.md and examples/simulators. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: return NREC_SIMULATOR_INTERFACE_VERSION. */
#define NREC_SIMULATOR_INTERFACE_VERSION 1
int32_t nrec_simulator_version(void);

/* Number of parameters and of data. */
int64_t nrec_simulator_dim_theta(void);
int64_t nrec_simulator_dim_x(void);

/* Simulates one row. All randomness must come from `seed` (0 .. 2^31 - 1), so that a row can be made again.
 *
 *   theta    [dim_theta] in
 *   x        [dim_x] out
 *   returns  0: done; NREC_SIMULATOR_REFUSED: this theta is not simulated; anything else: failed */
#define NREC_SIMULATOR_REFUSED 1
int32_t nrec_simulate(const double* theta, uint32_t seed, double* x);

#ifdef __cplusplus
}
#endif
