#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "experiments/findings.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLogTwo = 0.6931471805599453;

using Quantity = std::function<double(const EpochRecord&)>;

/// A value per epoch; epochs where it was not measured are left out.
Series curve(const CellResult& result, const Quantity& quantity, int colour) {
  Series series{.label = fmt::format("{}", result.cell->count), .colour = colour};
  if (result.cell->architecture == "small") series.style = SeriesStyle::dashed;
  for (std::size_t e = 0; e < result.history.size(); ++e) {
    const double value = quantity(result.history[e]);
    if (!std::isfinite(value)) continue;
    series.x.push_back(static_cast<double>(e) + 1.0);
    series.y.push_back(value);
  }
  return series;
}

/// Lowest value with its epoch, and the last one; nan where there are none.
struct Course {
  double lowest = kNan, first = kNan, last = kNan;
  double epoch = kNan;

  explicit Course(const Series& series) {
    if (series.y.empty()) return;
    const auto at = std::min_element(series.y.begin(), series.y.end());
    lowest = *at;
    epoch = series.x[static_cast<std::size_t>(at - series.y.begin())];
    first = series.y.front();
    last = series.y.back();
  }
};

std::map<int, int> count_colours(const CellResults& results) {
  std::set<int> counts;
  for (const CellResult& result : results.cells) counts.insert(result.cell->count);
  std::map<int, int> colours;
  for (const int count : counts) colours[count] = static_cast<int>(colours.size());
  return colours;
}

std::vector<double> gammas_of(const CellResults& results) {
  std::set<double> gammas;
  for (const CellResult& result : results.cells) gammas.insert(result.cell->gamma);
  return {gammas.begin(), gammas.end()};
}

std::string family_name(double gamma) { return std::isinf(gamma) ? "NRE-B" : fmt::format("gamma {}", gamma); }

TidyTable epoch_table(const CellResults& results, const char* suffix = "") {
  TidyTable table(suffix, {"task", "regime", "architecture", "algorithm", "gamma", "count", "gradients",
                           "seed", "epoch", "training_loss", "validation_loss", "nre_a_loss", "i0", "i1",
                           "mean_log_z", "sd_log_z", "mean_log_ratio", "kld"});
  for (const CellResult& result : results.cells) {
    const ExperimentCell& cell = *result.cell;
    for (std::size_t e = 0; e < result.history.size(); ++e) {
      const EpochRecord& epoch = result.history[e];
      table.add({cell.cell.task, cell.regime, cell.architecture, cell.cell.algorithm,
                 cell.is_nre_b() ? "inf" : cell_text(cell.gamma), fmt::format("{}", cell.count),
                 cell.options.training.gradients, fmt::format("{}", cell.cell.seed), fmt::format("{}", e + 1),
                 cell_text(epoch.training_loss), cell_text(epoch.validation_loss),
                 cell_text(epoch.nre_a_loss), cell_text(epoch.i0), cell_text(epoch.i1),
                 cell_text(epoch.mean_log_z), cell_text(epoch.sd_log_z), cell_text(epoch.mean_log_ratio),
                 cell_text(epoch.kld)});
    }
  }
  return table;
}

/// One panel: all curves of a family, one colour per count.
Panel family_panel(const CellResults& results, double gamma, const char* label, const Quantity& quantity) {
  Panel panel{.title = family_name(gamma), .x_label = "epoch", .y_label = label, .log_x = true};
  const std::map<int, int> colours = count_colours(results);
  for (const CellResult& result : results.cells) {
    if (result.cell->gamma == gamma)
      panel.series.push_back(curve(result, quantity, colours.at(result.cell->count)));
  }
  return panel;
}

double negative_i0(const EpochRecord& epoch) { return -epoch.i0; }
double negative_i1(const EpochRecord& epoch) { return -epoch.i1; }
double log_z(const EpochRecord& epoch) { return epoch.mean_log_z; }
double validation_loss(const EpochRecord& epoch) { return epoch.validation_loss; }
double nre_a_loss(const EpochRecord& epoch) { return epoch.nre_a_loss; }

/// Courses of a quantity by gamma, of networks that `wanted` accepts.
std::map<double, std::vector<Course>> courses(const CellResults& results, const Quantity& quantity,
                                              const std::function<bool(const ExperimentCell&)>& wanted) {
  std::map<double, std::vector<Course>> by_gamma;
  for (const CellResult& result : results.cells) {
    if (wanted(*result.cell) && !result.history.empty())
      by_gamma[result.cell->gamma].emplace_back(curve(result, quantity, 0));
  }
  return by_gamma;
}

double mean_course(const std::vector<Course>& list, double Course::*member) {
  std::vector<double> values;
  for (const Course& course : list) values.push_back(course.*member);
  return mean_of(values);
}

std::vector<Claim> information_claims(const CellResults& results) {
  const auto by_gamma =
      courses(results, negative_i0, [](const ExperimentCell& cell) { return cell.count > 2; });
  const auto get = [&](double gamma, double Course::*member) {
    const auto found = by_gamma.find(gamma);
    return found == by_gamma.end() ? kNan : mean_course(found->second, member);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double low = get(1e-3, &Course::lowest), one = get(1.0, &Course::lowest),
               high = get(100.0, &Course::lowest), b = get(infinity, &Course::lowest);
  std::vector<Claim> claims;
  claims.push_back(
      claim("gamma = 0.001 ends lowest in -I0", low <= std::min(one, high),
            std::isfinite(low) && std::isfinite(one) && std::isfinite(high),
            fmt::format("lowest -I0, mean over counts above 2: {:.2f} (0.001), {:.2f} (1), {:.2f} "
                        "(100)",
                        low, one, high),
            "-5.2 to -5.4, -4.6 to -5.0, -4.1 to -4.7 at 1000 epochs"));
  claims.push_back(
      claim("gamma = 0.001 descends slowest: its minimum comes last",
            get(1e-3, &Course::epoch) >= std::max(get(1.0, &Course::epoch), get(100.0, &Course::epoch)),
            std::isfinite(low) && std::isfinite(one) && std::isfinite(high),
            fmt::format("epoch of the minimum: {:.0f} (0.001), {:.0f} (1), {:.0f} (100)",
                        get(1e-3, &Course::epoch), get(1.0, &Course::epoch), get(100.0, &Course::epoch)),
            "500 to 1000, 250 to 400, 100 to 300"));
  claims.push_back(claim("NRE-B drops fastest, to a higher minimum, and rises again",
                         get(infinity, &Course::epoch) <= get(1.0, &Course::epoch) && b > one &&
                             get(infinity, &Course::last) > b,
                         std::isfinite(b) && std::isfinite(one),
                         fmt::format("NRE-B: {:.2f} at epoch {:.0f}, {:.2f} at the end; gamma 1: {:.2f} at "
                                     "epoch {:.0f}",
                                     b, get(infinity, &Course::epoch), get(infinity, &Course::last), one,
                                     get(1.0, &Course::epoch)),
                         "-3.2 to -3.5 near epoch 50"));
  const auto i1 = courses(results, negative_i1, [](const ExperimentCell& cell) { return cell.count > 2; });
  const auto last_i1 = [&](double gamma) {
    const auto found = i1.find(gamma);
    return found == i1.end() ? kNan : mean_course(found->second, &Course::last);
  };
  claims.push_back(claim(
      "-I1 is tame for gamma <= 0.1 and off scale for NRE-B", last_i1(1e-3) < 0 && last_i1(infinity) > 10.0,
      std::isfinite(last_i1(1e-3)) && std::isfinite(last_i1(infinity)),
      fmt::format("-I1 at the end: {:.2f} (0.001), {:.3g} (NRE-B)", last_i1(1e-3), last_i1(infinity))));
  return claims;
}

}  // namespace

Findings information_curves(const CellResults& results) {
  Findings findings;
  const std::vector<double> gammas = gammas_of(results);
  findings.figure = {
      .title = "Bounds on the mutual information against epoch; colour: contrastive parameters",
      .columns = gammas.size()};
  for (const double gamma : gammas)
    findings.figure.panels.push_back(family_panel(results, gamma, "-I0, nats", negative_i0));
  for (const double gamma : gammas) {
    Panel panel = family_panel(results, gamma, "-I1, nats", negative_i1);
    panel.y_range = {-6.0, 10.0};  // what leaves it is off scale in the published figure, too
    findings.figure.panels.push_back(std::move(panel));
  }
  findings.claims = information_claims(results);
  findings.tables.push_back(epoch_table(results).file());
  return findings;
}

Findings partition_curves(const CellResults& results) {
  Findings findings;
  const std::vector<double> gammas = gammas_of(results);
  findings.figure = {.title = "Mean log Z against epoch; colour: contrastive parameters",
                     .columns = std::min<std::size_t>(gammas.size(), 4)};
  for (const double gamma : gammas)
    findings.figure.panels.push_back(family_panel(results, gamma, "mean log Z, nats", log_z));
  constexpr double kBand = 2.5;
  std::size_t inside = 0, networks = 0, b_outside = 0, b_networks = 0;
  double widest = 0.0, b_narrowest = std::numeric_limits<double>::infinity();
  for (const CellResult& result : results.cells) {
    const Series series = curve(result, log_z, 0);
    double extreme = 0.0;
    for (const double value : series.y) extreme = std::max(extreme, std::fabs(value));
    if (series.y.empty()) continue;
    if (result.cell->is_nre_b()) {
      ++b_networks;
      b_outside += extreme > kBand;
      b_narrowest = std::min(b_narrowest, extreme);
    } else {
      ++networks;
      inside += std::fabs(series.y.back()) <= kBand;
      widest = std::max(widest, std::fabs(series.y.back()));
    }
  }
  findings.claims.push_back(claim(
      "NRE-C keeps log Z within 2.5 of 0", inside == networks, networks > 0,
      fmt::format("{} of {} networks at their last epoch; the farthest {:.2f}", inside, networks, widest),
      "within 1 to 2.5"));
  findings.claims.push_back(
      claim("NRE-B leaves that band", b_outside == b_networks, b_networks > 0,
            fmt::format("{} of {} networks; the least far {:.2f}", b_outside, b_networks, b_narrowest),
            "+5 to +14, later below -80"));
  findings.tables.push_back(epoch_table(results).file());
  return findings;
}

Findings loss_curves(const ExperimentPlan& plan, const CellResults& results) {
  const bool same_loss = plan.name == "fig11";
  const Quantity quantity = same_loss ? nre_a_loss : validation_loss;
  Findings findings;
  const std::vector<double> gammas = gammas_of(results);
  std::set<std::string> tasks;
  for (const CellResult& result : results.cells) tasks.insert(result.cell->cell.task);
  findings.figure = {
      .title = same_loss
                   ? "Validation loss with gamma = 1, K = 1 against epoch; colour: contrastive parameters"
                   : "Validation loss against epoch; colour: contrastive parameters; dashed: small",
      .columns = gammas.size()};
  const std::map<int, int> colours = count_colours(results);
  for (const std::string& task : tasks) {
    for (const double gamma : gammas) {
      Panel panel{
          .title = task + ", " + family_name(gamma), .x_label = "epoch", .y_label = "nats", .log_x = true};
      for (const CellResult& result : results.cells) {
        if (result.cell->gamma == gamma && result.cell->cell.task == task)
          panel.series.push_back(curve(result, quantity, colours.at(result.cell->count)));
      }
      findings.figure.panels.push_back(std::move(panel));
    }
  }
  std::size_t rising = 0, networks = 0, from_log_two = 0;
  for (const CellResult& result : results.cells) {
    const Course course(curve(result, quantity, 0));
    if (!std::isfinite(course.lowest)) continue;
    ++networks;
    // A rise that is more than noise: a hundredth of the whole descent.
    rising +=
        course.last - course.lowest > 0.01 * (course.first - course.lowest) && course.last > course.lowest;
    from_log_two += course.lowest < kLogTwo;
  }
  const std::string found = fmt::format("{} of {} networks end above their minimum", rising, networks);
  const bool can_test = networks > 0;
  if (plan.name == "fig7")
    findings.claims.push_back(
        claim("new simulations all the time: no overfitting", rising == 0, can_test, found));
  if (plan.name == "fig9" || plan.name == "fig10")
    findings.claims.push_back(claim("fixed simulations: overfitting turns the loss upwards in some networks",
                                    rising > 0, can_test, found));
  if (plan.name == "fig8")
    findings.claims.push_back(claim("new thetas do not prevent overfitting", rising > 0, can_test, found));
  if (same_loss)
    findings.claims.push_back(
        claim("with one loss for all, curves are comparable and lie below log 2", from_log_two == networks,
              networks > 0, fmt::format("{} of {} networks reach less than 0.693", from_log_two, networks),
              "start 0.693"));
  findings.tables.push_back(epoch_table(results).file());
  return findings;
}

Findings convergence_curves(const CellResults& results) {
  Findings findings;
  Panel i0{.title = "", .x_label = "epoch", .y_label = "I0, nats", .log_x = true};
  TidyTable summary("", {"algorithm", "gradients", "count", "seed", "i0_epoch_20", "i0_epoch_50",
                         "i0_epoch_100", "largest_i0", "epoch_of_largest", "last_i0"});
  std::map<std::string, std::vector<double>> early;  // I0 near epoch 20
  std::map<std::string, int> colours;
  for (const CellResult& result : results.cells) {
    const ExperimentCell& cell = *result.cell;
    const std::string what = (cell.is_nre_b() ? "NRE-B, " : "NRE-C, ") + cell.options.training.gradients;
    Series series = curve(
        result, [](const EpochRecord& epoch) { return epoch.i0; }, 0);
    const auto near = [&](double epoch) {  // the last measured epoch up to this one
      double value = kNan;
      for (std::size_t i = 0; i < series.x.size() && series.x[i] <= epoch; ++i) value = series.y[i];
      return static_cast<double>(result.history.size()) >= epoch ? value : kNan;
    };
    const auto top = std::max_element(series.y.begin(), series.y.end());
    const bool any = top != series.y.end();
    summary.add({cell.cell.algorithm, cell.options.training.gradients, fmt::format("{}", cell.count),
                 fmt::format("{}", cell.cell.seed), cell_text(near(20)), cell_text(near(50)),
                 cell_text(near(100)), any ? cell_text(*top) : "",
                 any ? cell_text(series.x[static_cast<std::size_t>(top - series.y.begin())]) : "",
                 any ? cell_text(series.y.back()) : ""});
    early[what].push_back(near(20));
    colours.try_emplace(what, static_cast<int>(colours.size()));
    series.label = what;
    series.colour = colours.at(what);
    i0.series.push_back(std::move(series));
  }
  const double reset = mean_of(early["NRE-C, reset"]), accumulated = mean_of(early["NRE-C, accumulate"]),
               b = mean_of(early["NRE-B, reset"]);
  findings.claims.push_back(
      claim("gradients that are reset for every mini-batch converge faster than the published "
            "accumulation within an epoch",
            reset > accumulated, std::isfinite(reset) && std::isfinite(accumulated),
            fmt::format("I0 at epoch 20: {:.2f} reset, {:.2f} accumulated", reset, accumulated),
            "2.16 against 1.58 in another network"));
  findings.claims.push_back(claim("NRE-B converges faster than NRE-C, when both reset their gradients",
                                  b > reset, std::isfinite(b) && std::isfinite(reset),
                                  fmt::format("I0 at epoch 20: {:.2f} NRE-B, {:.2f} NRE-C", b, reset)));
  findings.figure = {.title = "Convergence with and without accumulated gradients",
                     .panels = {std::move(i0)}};
  findings.tables.push_back(summary.file());
  findings.tables.push_back(epoch_table(results, "_epochs").file());
  return findings;
}

}  // namespace nrec
