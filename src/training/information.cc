#include "training/information.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/random.h"
#include "nrec/training/contrastive_batch.h"

namespace nrec {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kEveryEpochUntil = 8;
constexpr double kEpochsPerDoubling = 8.0;
constexpr std::uint64_t kInformationRow = 1;  // of Stream::validation; row 0 draws the sets of the loss

}  // namespace

void InformationMoments::add(float own, std::span<const float> others) {
  double top = -kInfinity;
  for (const float h : others) top = std::max(top, static_cast<double>(h));
  double sum = 0.0;
  for (const float h : others) {
    sum += std::exp(h - top);
    ratio.add(std::exp(static_cast<double>(h)));
  }
  const double z = top + std::log(sum) - std::log(static_cast<double>(others.size()));
  log_z.add(z);
  i0.add(own - z);
  i1.add(own - std::exp(z) + 1.0);
}

void InformationMoments::add(float own, double log_z_of_row) {
  ratio.add(std::exp(log_z_of_row));
  log_z.add(log_z_of_row);
  i0.add(own - log_z_of_row);
  i1.add(own - std::exp(log_z_of_row) + 1.0);
}

void InformationMoments::fill(EpochRecord& record) const {
  record.mean_ratio = ratio.mean;
  record.mean_log_z = log_z.mean;
  record.sd_log_z = log_z.sd();
  record.i0 = i0.mean;
  record.i1 = i1.mean;
}

void leave_out_information(EpochRecord& record) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  record.mean_ratio = record.mean_log_z = record.sd_log_z = record.i0 = record.i1 = kNan;
}

bool measures_information(std::string_view information_epochs, int epoch, int max_num_epochs) {
  if (information_epochs != "log" || epoch <= kEveryEpochUntil || epoch == max_num_epochs) return true;
  const double steps = kEpochsPerDoubling * std::log2(static_cast<double>(epoch) / kEveryEpochUntil);
  // Rounding an epoch moves it by less than one step as long as steps are wider than half an epoch.
  for (double k = std::floor(steps) - 1; k <= std::ceil(steps) + 1; ++k) {
    if (std::lround(kEveryEpochUntil * std::exp2(k / kEpochsPerDoubling)) == epoch) return true;
  }
  return false;
}

InformationSet::InformationSet(std::size_t rows, std::size_t thetas_per_row, std::uint64_t seed)
    : top_(rows), sum_(rows) {
  RandomStream random(seed, Stream::validation, kInformationRow);
  shifts_ = distinct_numbers(thetas_per_row, rows - 1, random);
  // Equal parts, so that none is narrow.
  const std::size_t parts = (thetas_per_row + kMostColumns - 1) / kMostColumns;
  columns_ = (thetas_per_row + parts - 1) / parts;
  candidates_.resize(std::min(rows, kMostRows) * columns_);
  logits_.resize(candidates_.size());
}

void InformationSet::add_block(PairNetworkStep& step, const PairNetwork& network,
                               MatrixView<const float> theta, MatrixView<const float> x, std::size_t first,
                               std::size_t first_shift, std::size_t columns) {
  const std::size_t rows = x.rows;
  const std::size_t count = std::min(kMostRows, rows - first);
  const MatrixView<std::uint32_t> candidates(candidates_.data(), count, columns);
  for (std::size_t b = 0; b < count; ++b) {
    for (std::size_t j = 0; j < columns; ++j)
      candidates(b, j) = static_cast<std::uint32_t>((first + b + shifts_[first_shift + j]) % rows);
  }
  const MatrixView<float> logits(logits_.data(), count, columns);
  step.logits(network, {theta, x.middle_rows(first, count), candidates}, logits);
  for (std::size_t b = 0; b < count; ++b) {
    double& top = top_[first + b];
    double& sum = sum_[first + b];
    const double before = top;
    for (const float h : logits.row(b)) top = std::max(top, static_cast<double>(h));
    sum *= std::exp(before - top);
    for (const float h : logits.row(b)) sum += std::exp(h - top);
  }
}

void InformationSet::measure(PairNetworkStep& step, const PairNetwork& network, MatrixView<const float> theta,
                             MatrixView<const float> x, std::span<const float> own, EpochRecord& record) {
  std::ranges::fill(top_, -kInfinity);
  std::ranges::fill(sum_, 0.0);
  for (std::size_t first = 0; first < x.rows; first += kMostRows) {
    for (std::size_t shift = 0; shift < shifts_.size(); shift += columns_)
      add_block(step, network, theta, x, first, shift, std::min(columns_, shifts_.size() - shift));
  }
  InformationMoments moments;
  const double log_count = std::log(static_cast<double>(shifts_.size()));
  for (std::size_t b = 0; b < x.rows; ++b) moments.add(own[b], top_[b] + std::log(sum_[b]) - log_count);
  moments.fill(record);
}

}  // namespace nrec
