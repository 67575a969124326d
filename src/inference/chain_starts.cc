#include "inference/chain_starts.h"

namespace nrec {

std::vector<TemperedPoint> chain_starts(const TemperedPopulation& population, std::size_t num_chains) {
  std::vector<TemperedPoint> starts;
  for (std::size_t c = 0; c < num_chains; ++c)
    starts.push_back(population.points[c * population.points.size() / num_chains]);
  return starts;
}

ModeJumps mode_jumps(const TemperedPopulation& population) {
  Matrix<double> archive(population.points.size(), population.width.size());
  for (std::size_t i = 0; i < archive.rows(); ++i) {
    const std::vector<double>& u = population.points[i].u;
    std::copy(u.begin(), u.end(), archive.row(i).begin());
  }
  return ModeJumps(std::move(archive));
}

}  // namespace nrec
