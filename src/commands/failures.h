#pragma once

#include "nrec/core/record.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/training/success_model.h"

namespace nrec {

/// How many rows failed, in which ways, and how many were dropped; names as in docs/formats/record.md after
/// "simulations.".
Record failure_record(const SimulationSet& simulations);

/// What P(ok | theta) rests on and how it does on held-out rows; names after "training.success.".
Record success_record(const SuccessModel& model);

}  // namespace nrec
