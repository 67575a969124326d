#pragma once

#include <optional>

#include "nrec/diagnostics/quick_check.h"

namespace nrec {

/// The item "sharpness": whether the loss on the training rows was already far below that on validation rows when the kept epoch
/// ended. Then more simulations would make posteriors sharper, which no test of calibration can see. Nothing where the history
/// does not hold both losses. Where the validation loss rises by more than half of itself after the kept epoch, the item is trusted with
/// a caveat: that network could have learnt its simulations by heart, but the kept one may be good (of problems that are nearly linear
/// it is).
///
/// Writes sharpness.training_loss, .validation_loss [nats] and .gap, their difference over the latter, and .rise, that of the validation loss
/// to the last epoch as a share of itself, into `record`.
/// Source   docs/methods/calibration.md, Sharpness
std::optional<CheckItem> sharpness_item(const RatioEstimator& estimator, Record& record);

}  // namespace nrec
