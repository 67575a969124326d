#include "nrec/diagnostics/sharpness_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nrec {

namespace {
// Of the validation loss; docs/methods/calibration.md says where it is from.
constexpr double kLargeGap = 0.15;
// Of the validation loss, that the gap must be worth, too.
constexpr double kStandardErrors = 2.0;
// Of the validation loss, by which it rises after the kept epoch.
constexpr double kLargeRise = 0.5;
}  // namespace

std::optional<CheckItem> sharpness_item(const RatioEstimator& estimator, Record& record) {
  const auto kept = static_cast<std::size_t>(estimator.best_epoch);
  if (kept < 1 || kept > estimator.history.size()) return std::nullopt;
  const EpochRecord& epoch = estimator.history[kept - 1];
  if (!std::isfinite(epoch.training_loss) || !(epoch.validation_loss > 0.0)) return std::nullopt;
  const double difference = epoch.validation_loss - epoch.training_loss;
  const double gap = difference / epoch.validation_loss;
  record.set("sharpness.training_loss", epoch.training_loss);
  record.set("sharpness.validation_loss", epoch.validation_loss);
  record.set("sharpness.gap", gap);
  CheckItem item{"sharpness", Verdict::trusted, ""};
  item.sentence = fmt::format("the loss is {:.3g} on training rows and {:.3g} on validation rows",
                              epoch.training_loss, epoch.validation_loss);
  const EpochRecord& end = estimator.history.back();
  const double rise = end.validation_loss / epoch.validation_loss - 1.0;
  record.set("sharpness.rise", rise);
  const bool is_significant = !(difference < kStandardErrors * epoch.validation_loss_se);
  if (gap > kLargeGap && is_significant) {
    item.verdict = Verdict::cannot_tell;
    item.sentence +=
        ": the network had learnt its simulations by heart before it was done, so that posteriors may be "
        "wider than x allows, calibrated or not; simulate more";
  } else if (rise > kLargeRise &&
             !(end.validation_loss - epoch.validation_loss <
               kStandardErrors * std::max(epoch.validation_loss_se, end.validation_loss_se))) {
    item.caveat = fmt::format(
        "posteriors may be wider than x allows: after epoch {} the validation loss rose from {:.3g} to "
        "{:.3g}, "
        "because the network went on to learn its simulations by heart; more of them would make posteriors "
        "sharper",
        kept, epoch.validation_loss, end.validation_loss);
    item.sentence += "; " + item.caveat;
  }
  return item;
}

}  // namespace nrec
