// A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, as a program that answers line after line:
// "row seed shift slope" comes in, "row x_1 x_2 x_3" goes out.
//
//     c++ -O2 -o line line.cc
#include <iomanip>
#include <iostream>
#include <random>

int main() {
  std::uint64_t row = 0;
  unsigned seed = 0;
  double shift = 0, slope = 0;
  std::cout << std::setprecision(17);
  while (std::cin >> row >> seed >> shift >> slope) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0.0, 0.5);
    std::cout << row;
    for (int t = -1; t <= 1; ++t) std::cout << ' ' << shift + slope * t + noise(random);
    std::cout << std::endl;  // flushes: nrec waits for the answer
  }
}
