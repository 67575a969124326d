#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nrec/commands/check_command.h"

namespace nrec {

namespace {

const std::vector<double>* list(const Record& record, std::string_view name) {
  const RecordValue* value = record.find(name);
  return value ? std::get_if<std::vector<double>>(value) : nullptr;
}

double number(const Record& record, std::string_view name) {
  const RecordValue* value = record.find(name);
  const double* real = value ? std::get_if<double>(value) : nullptr;
  return real ? *real : std::nan("");
}

std::string parameter_rows(const Record& record) {
  const auto& names = std::get<std::vector<std::string>>(*record.find("check.parameters"));
  std::size_t width = 9;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "parameter", width,
                                 "mean rank", "shift/sd", "width", "p (KS)", "p (chi2)");
  for (std::size_t j = 0; j < names.size(); ++j) {
    text += fmt::format("{:<{}} {:>10.3f} {:>10.2f} {:>10.2f} {:>10.2g} {:>10.2g}\n", names[j], width,
                        (*list(record, "check.ranks.mean"))[j], (*list(record, "check.ranks.shift"))[j],
                        (*list(record, "check.ranks.width"))[j], (*list(record, "check.ranks.ks_p_value"))[j],
                        (*list(record, "check.ranks.chi_squared_p_value"))[j]);
  }
  return text;
}

std::string coverage_rows(const Record& record) {
  const std::vector<double>& levels = *list(record, "check.levels");
  const std::vector<double>& covered = *list(record, "check.coverage.highest_density");
  const std::vector<double>& tarp = *list(record, "check.tarp.coverage");
  const std::vector<double>& low = *list(record, "check.coverage.band_low");
  const std::vector<double>& high = *list(record, "check.coverage.band_high");
  std::string text =
      fmt::format("{:<9} {:>14} {:>10} {:>17}\n", "level", "highest density", "TARP", "95 % band");
  for (const double wanted : {0.5, 0.7, 0.9, 0.95}) {
    for (std::size_t g = 0; g < levels.size(); ++g) {
      if (std::fabs(levels[g] - wanted) > 1e-9) continue;
      text += fmt::format("{:<9} {:>15.3f} {:>10.3f} {:>8.3f} .. {:.3f}\n", wanted, covered[g], tarp[g],
                          low[g], high[g]);
    }
  }
  return text;
}

std::string ratio_rows(const Record& record) {
  std::string text = fmt::format(
      "information: I0 {:.3f} +- {:.3f}, I1 {:.3f} +- {:.3f} nats; mean ratio {:.3g} +- {:.2g}, mean log Z "
      "{:.3f}\n",
      number(record, "check.information.i0"), number(record, "check.information.i0_se"),
      number(record, "check.information.i1"), number(record, "check.information.i1_se"),
      number(record, "check.normalisation.mean_ratio"), number(record, "check.normalisation.mean_ratio_se"),
      number(record, "check.normalisation.mean_log_z"));
  if (!record.find("check.classifier.auc")) return text;
  text += fmt::format("classifier: area {:.3f} +- {:.3f} against posterior draws",
                      number(record, "check.classifier.auc"), number(record, "check.classifier.auc_se"));
  if (record.find("check.ratio.auc"))
    text += fmt::format(", {:.3f} +- {:.3f} weighted by the ratio", number(record, "check.ratio.auc"),
                        number(record, "check.ratio.auc_se"));
  return text + fmt::format("; {:.3f} against prior draws\n", number(record, "check.power.prior.auc"));
}

}  // namespace

std::string check_table(const Record& record) {
  if (!list(record, "check.ranks.mean")) return "";
  return parameter_rows(record) + "\n" + coverage_rows(record) + "\n" + ratio_rows(record);
}

}  // namespace nrec
