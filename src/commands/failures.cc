#include "commands/failures.h"

#include <algorithm>

namespace nrec {

Record failure_record(const SimulationSet& simulations) {
  Record record;
  record.set("num_dropped", simulations.num_dropped);
  record.set("num_failed", simulations.num_failed());
  for (std::size_t i = 0; i < simulations.status_counts.size(); ++i) {
    std::string name(row_status_name(static_cast<RowStatus>(i)));
    for (char& letter : name) letter = letter == ' ' || letter == '-' ? '_' : letter;
    record.set("status." + name, simulations.status_counts[i]);
  }
  return record;
}

Record success_record(const SuccessModel& model) {
  Record record;
  record.set("kind", success_kind_name(model.kind));
  record.set("num_ok", model.num_ok);
  record.set("num_failed", model.num_failed);
  const SuccessCalibration& held_out = model.calibration;
  record.set("num_held_out", held_out.num_rows);
  record.set("mean_predicted", held_out.mean_predicted);
  record.set("observed_rate", held_out.observed_rate);
  record.set("brier_score", held_out.brier_score);
  record.set("constant_brier_score", held_out.constant_brier_score);
  record.set("log_score", held_out.log_score);
  record.set("constant_log_score", held_out.constant_log_score);
  record.set("gain", held_out.gain);
  record.set("gain_se", held_out.gain_se);
  return record;
}

}  // namespace nrec
