// Draws from a prior: the smallest program that uses the installed library.
#include <cstddef>
#include <exception>
#include <iostream>

#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/priors/prior.h"

int main() {
  try {
    const auto prior = nrec::Prior::from_terms({
        {.names = {"mass"}, .family = "uniform", .parameters = {{"low", {0.1}}, {"high", {10.0}}}},
        {.names = {"rate"}, .family = "log_normal", .parameters = {{"location", {-0.125}}, {"scale", {0.5}}}},
    });
    nrec::Matrix<double> theta(10000, prior.dim());
    prior.sample(/*seed=*/1, nrec::Stream::prior, /*first_row=*/0, theta);
    double sum = 0.0;
    for (std::size_t i = 0; i < theta.rows(); ++i) sum += theta(i, 1);
    std::cout << "mean of rate: " << sum / static_cast<double>(theta.rows()) << " (exactly 1)\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
