#include "priors/empirical.h"

#include <algorithm>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {

namespace {

class Empirical final : public Distribution {
 public:
  explicit Empirical(const Matrix<double>& table)
      : table_(table), bounds_(table.cols(), {kInfinity, -kInfinity}) {
    for (std::size_t i = 0; i < table.rows(); ++i) {
      for (std::size_t d = 0; d < table.cols(); ++d) {
        bounds_[d].first = std::min(bounds_[d].first, table(i, d));
        bounds_[d].second = std::max(bounds_[d].second, table(i, d));
      }
    }
  }

  std::size_t dim() const override { return table_.cols(); }
  std::pair<double, double> bounds(std::size_t d) const override { return bounds_[d]; }

  void sample(std::span<RandomStream> random, MatrixView<double> theta) const override {
    for (std::size_t i = 0; i < random.size(); ++i) {
      const auto picked = table_.row(random[i].integer(table_.rows()));
      std::copy(picked.begin(), picked.end(), theta.row(i).begin());
    }
  }

  void add_log_prob(MatrixView<const double>, std::span<double>) const override { refuse(); }
  void add_gradient(MatrixView<const double>, MatrixView<const double>, MatrixView<double>) const override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw UnsupportedError(
        "prior given by samples: it has no density, so log_prob cannot be computed; state the prior by its "
        "families "
        "([parameters] with prior = \"uniform\" and so on), or use a method that only draws from the prior "
        "(importance "
        "resampling or rejection).");
  }

  const Matrix<double>& table_;
  std::vector<std::pair<double, double>> bounds_;
};

}  // namespace

std::unique_ptr<const Distribution> make_empirical(const Matrix<double>& table) {
  return std::make_unique<Empirical>(table);
}

}  // namespace nrec
