#include "nrec/diagnostics/c2st.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

#include "diagnostics/c2st_fold.h"
#include "diagnostics/two_sample.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/stop.h"

namespace nrec {
namespace {

// Both sets stacked, scaled and rounded to float32; label 0 = reference, 1 = samples.
struct LabelledRows {
  Matrix<float> features;
  std::vector<std::uint8_t> labels;
};

two_sample::Scaling scaling_of(MatrixView<const double> reference, MatrixView<const double> samples,
                               bool z_score, LogSink& log) {
  if (!z_score) return two_sample::identity_scaling(reference.cols);
  std::vector<std::size_t> uninformative;
  two_sample::Scaling scaling = two_sample::reference_scaling("c2st", reference, samples, &uninformative);
  for (const std::size_t column : uninformative) {
    log.warning("c2st: column " + std::to_string(column) + " (counted from 0) holds the same number (" +
                number_text(reference(0, column)) +
                ") in every row of both sets; it says nothing and is left unscaled");
  }
  return scaling;
}

LabelledRows stack(MatrixView<const double> reference, MatrixView<const double> samples,
                   const two_sample::Scaling& scaling) {
  LabelledRows all{Matrix<float>(reference.rows + samples.rows, reference.cols), {}};
  all.labels.assign(reference.rows, 0);
  all.labels.resize(reference.rows + samples.rows, 1);
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    const bool is_sample = i >= reference.rows;
    const auto row = is_sample ? samples.row(i - reference.rows) : reference.row(i);
    for (std::size_t j = 0; j < row.size(); ++j) {
      all.features(i, j) = static_cast<float>(scaling.apply(row[j], j));
      if (std::isfinite(all.features(i, j))) continue;
      throw DomainError(
          std::string("c2st: ") + (is_sample ? "samples" : "reference") + " holds " + number_text(row[j]) +
          " in row " + std::to_string(is_sample ? i - reference.rows : i) + ", column " + std::to_string(j) +
          " (counted from 0), which after scaling is beyond float32; rescale the column or remove the row");
    }
  }
  return all;
}

// Consecutive blocks of a shuffled 0 .. n - 1 are the test rows; the training rows are all others in
// increasing order.
std::vector<C2stFold> make_folds(const LabelledRows& all, const C2stOptions& options) {
  const auto n = static_cast<std::uint32_t>(all.labels.size());
  const auto num_folds = static_cast<std::uint32_t>(options.num_folds);
  std::vector<std::uint32_t> permutation(n);
  std::iota(permutation.begin(), permutation.end(), 0u);
  Mt19937Stream(options.seed).shuffle(permutation);
  std::vector<C2stFold> folds;
  folds.reserve(num_folds);
  std::uint32_t first = 0;
  for (std::uint32_t fold = 0; fold < num_folds; ++fold) {
    const std::uint32_t count = n / num_folds + (fold < n % num_folds ? 1 : 0);
    std::vector<std::uint32_t> test_rows(permutation.begin() + first, permutation.begin() + first + count);
    std::sort(test_rows.begin(), test_rows.end());
    std::vector<std::uint32_t> train_rows;
    train_rows.reserve(n - count);
    for (std::uint32_t row = 0, next = 0; row < n; ++row) {
      if (next < count && test_rows[next] == row) {
        ++next;
      } else {
        train_rows.push_back(row);
      }
    }
    folds.emplace_back(all.features.view(), all.labels, std::move(train_rows), std::move(test_rows), options);
    first += count;
  }
  return folds;
}

// Hands out the folds an epoch at a time, the least advanced first, so that all finish at about the same time
// however few threads there are. The result of a fold depends on itself alone.
class FoldQueue {
 public:
  explicit FoldQueue(std::vector<C2stFold>& folds) : folds_(folds), is_taken_(folds.size(), false) {}

  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex_);
    std::optional<std::size_t> best;
    for (std::size_t fold = 0; fold < folds_.size(); ++fold) {
      if (is_taken_[fold] || folds_[fold].is_finished()) continue;
      if (!best || folds_[fold].epochs() < folds_[*best].epochs()) best = fold;
    }
    if (best) is_taken_[*best] = true;
    return best;
  }

  // Returns the epochs done so far in all folds.
  int give_back(std::size_t fold, int epochs_before) {
    const std::lock_guard lock(mutex_);
    is_taken_[fold] = false;
    return total_epochs_ += folds_[fold].epochs() - epochs_before;
  }

 private:
  std::vector<C2stFold>& folds_;
  std::vector<bool> is_taken_;
  int total_epochs_ = 0;
  std::mutex mutex_;
};

void train_all(std::vector<C2stFold>& folds, const StopRequest* stop, ThreadPool& pool, LogSink& log) {
  constexpr double kSecondsBetweenReports = 0.5;
  FoldQueue queue(folds);
  const Stopwatch clock;
  double last_report = 0.0;
  const std::size_t num_workers = std::min(folds.size(), static_cast<std::size_t>(pool.num_threads()));
  pool.run(num_workers, [&](std::size_t /*task*/, int worker) {
    // A worker that finds no free fold may leave: each unfinished fold is then with a worker that comes back
    // for it.
    while (const auto fold = stop && stop->requested() ? std::nullopt : queue.take()) {
      const int before = folds[*fold].epochs();
      folds[*fold].advance_epoch();
      const int epochs = queue.give_back(*fold, before);
      if (worker == 0 &&
          clock.seconds() > last_report + kSecondsBetweenReports) {  // worker 0 is the caller's thread
        last_report = clock.seconds();
        log.progress({"c2st", static_cast<double>(epochs), 0.0, "epoch"});
      }
    }
  });
}

double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0.0;
  double count = 0.0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    count += 1.0;
  }
  return sum / count;
}

}  // namespace

void C2stOptions::validate() const {
  std::string broken;
  if (num_folds < 2) broken += " num_folds = " + std::to_string(num_folds) + " must be at least 2;";
  if (max_iterations < 1)
    broken += " max_iterations = " + std::to_string(max_iterations) + " must be at least 1;";
  if (broken.empty()) return;
  broken.pop_back();
  throw ConfigError("c2st:" + broken);
}

bool C2stSummary::all_converged() const {
  return std::all_of(fold_status.begin(), fold_status.end(),
                     [](C2stFoldStatus s) { return s == C2stFoldStatus::converged; });
}

C2stSummary c2st(MatrixView<const double> reference, MatrixView<const double> samples,
                 const C2stOptions& options, ThreadPool& pool, LogSink& log) {
  options.validate();
  two_sample::check("c2st", reference, samples, static_cast<std::size_t>(options.num_folds), "(num_folds)");
  const LabelledRows all = stack(reference, samples, scaling_of(reference, samples, options.z_score, log));
  std::vector<C2stFold> folds = make_folds(all, options);
  train_all(folds, options.stop, pool, log);

  C2stSummary summary;
  for (C2stFold& fold : folds) {
    fold.stop_if_unfinished();
    const C2stFold::Score score = fold.score();
    summary.fold_accuracy.push_back(score.accuracy);
    summary.fold_auc.push_back(score.auc);
    summary.epochs.push_back(fold.epochs());
    summary.final_loss.push_back(fold.loss());
    summary.fold_status.push_back(fold.status());
    if (options.keep_loss_curves) summary.loss_curves.push_back(fold.loss_curve());
  }
  const double sum = std::accumulate(summary.fold_accuracy.begin(), summary.fold_accuracy.end(), 0.0);
  summary.accuracy = sum / static_cast<double>(folds.size());
  summary.auc = mean_of_numbers(summary.fold_auc);
  summary.chance =
      static_cast<double>(std::max(reference.rows, samples.rows)) / static_cast<double>(all.labels.size());
  return summary;
}

}  // namespace nrec
