/* A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, as a shared library:
 *
 *     cc -shared -fPIC -O2 -I ../../include -o libline.so line.c -lm
 */
#include <math.h>

#include "nrec/simulator_interface.h"

/* A small generator of our own: the library's own state would outlive the row. [Steele2014, SplitMix64] */
static uint64_t next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static double uniform(uint64_t* state) { return ((double)(next(state) >> 12) + 0.5) / 4503599627370496.0; }

static double normal(uint64_t* state) {
  double radius = sqrt(-2.0 * log(uniform(state)));
  return radius * cos(6.283185307179586 * uniform(state));
}

int32_t nrec_simulator_version(void) { return NREC_SIMULATOR_INTERFACE_VERSION; }
int64_t nrec_simulator_dim_theta(void) { return 2; }
int64_t nrec_simulator_dim_x(void) { return 3; }

int32_t nrec_simulate(const double* theta, uint32_t seed, double* x) {
  uint64_t state = seed;
  for (int j = 0; j < 3; ++j) x[j] = theta[0] + theta[1] * (j - 1) + 0.5 * normal(&state);
  return 0;
}
