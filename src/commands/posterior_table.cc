#include "nrec/commands/posterior_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nrec/core/printable_text.h"

namespace nrec {

namespace {

/// Numbers of one row with the decimals that show the sd to three digits; powers of ten where that gets
/// unwieldy.
std::string number_cell(double value, double sd) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double size = std::isfinite(sd) && sd > 0 ? sd : std::fabs(value);
  const int decimals = size > 0 ? 2 - static_cast<int>(std::floor(std::log10(size))) : 0;
  if (decimals > 8 || std::fabs(value) >= 1e9) return fmt::format("{:.4g}", value);
  return fmt::format("{:.{}f}", value, std::max(0, decimals));
}

/// Letters on the screen: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string posterior_table(std::span<const MarginalSummary> marginals) {
  std::vector<std::vector<std::string>> rows = {{"", "mean", "sd", "5%", "50%", "95%", "ESS"}};
  for (const MarginalSummary& m : marginals) {
    rows.push_back({one_line_text(m.name), number_cell(m.mean, m.sd), number_cell(m.sd, m.sd),
                    number_cell(m.quantile05, m.sd), number_cell(m.quantile50, m.sd),
                    number_cell(m.quantile95, m.sd), std::isnan(m.ess) ? "-" : fmt::format("{:.0f}", m.ess)});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) widths[j] = std::max(widths[j], width_of(row[j]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::string space(widths[j] - width_of(row[j]), ' ');
      text += j == 0 ? row[j] + space : "  " + space + row[j];
    }
    text += "\n";
  }
  return text;
}

std::string verdict_text(const SaidVerdict& said) {
  std::string text = "verdict: " + said.verdict + "\n";
  if (!said.sentence.empty()) text += "  " + said.sentence + "\n";
  for (const SaidVerdict::Item& item : said.items) {
    // The deciding one has been said.
    if (said.sentence.find(item.sentence) != std::string::npos) continue;
    text += "  " + item.name + ": " + item.verdict + ": " + item.sentence + "\n";
  }
  return text;
}

}  // namespace nrec
