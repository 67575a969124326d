#include "experiments/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/run_program.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr int kPanelWidth = 420, kPanelHeight = 330, kTitleHeight = 40;  // pixels
constexpr double kDrawingSeconds = 120.0;
// Distinguishable with any colour vision: the palette of Okabe and Ito, black last.
constexpr std::array kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#8b6914", "#000000"};
// Dark blue to yellow, in equal steps of lightness.
constexpr const char* kHeatColours =
    "0 \"#440154\", 1 \"#3b528b\", 2 \"#21918c\", 3 \"#5ec962\", 4 \"#fde725\"";
constexpr double kBandOpacity = 0.18;

/// Text inside double quotes of gnuplot, where the terminals take every character as it is (noenhanced).
std::string gnuplot_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`' || c == '$') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "NaN"; }

void check(const Figure& figure) {
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      const bool has_band = !series.low.empty() || !series.high.empty();
      if (series.x.size() != series.y.size() ||
          (has_band && (series.low.size() != series.x.size() || series.high.size() != series.x.size())))
        throw ShapeError(fmt::format("figure: series \"{}\" has {} x, {} y, {} and {} ends of its band",
                                     series.label, series.x.size(), series.y.size(), series.low.size(),
                                     series.high.size()));
    }
    bool fits = panel.heat.value.size() == panel.heat.x.size();
    for (const auto& row : panel.heat.value) fits = fits && row.size() == panel.heat.y.size();
    if (!fits)
      throw ShapeError(
          fmt::format("figure: heat map of panel \"{}\": values do not fit its axes", panel.title));
  }
}

/// Builds the script panel by panel.
class Script {
 public:
  Script(const Figure& figure, std::string_view name) : figure_(figure), name_(name) {}

  std::string text() {
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) add_data(i);
    const std::size_t columns = std::max<std::size_t>(1, std::min(figure_.columns, figure_.panels.size()));
    const std::size_t rows = (figure_.panels.size() + columns - 1) / columns;
    const int width = kPanelWidth * static_cast<int>(columns);
    const int height = kTitleHeight + kPanelHeight * static_cast<int>(std::max<std::size_t>(rows, 1));
    add_pass(fmt::format("svg noenhanced size {},{} background \"white\"", width, height), "svg", rows,
             columns);
    add_pass(fmt::format("pngcairo noenhanced size {},{} background \"white\"", 2 * width, 2 * height) +
                 " fontscale 1.6 linewidth 1.6 pointscale 1.6",
             "png", rows, columns);
    return std::move(text_);
  }

 private:
  void add_data(std::size_t panel_index) {
    const Panel& panel = figure_.panels[panel_index];
    for (std::size_t s = 0; s < panel.series.size(); ++s) {
      const Series& series = panel.series[s];
      text_ += fmt::format("$p{}s{} << EOD\n", panel_index, s);
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        text_ += number(series.x[i]) + " " + number(series.y[i]);
        if (!series.low.empty()) text_ += " " + number(series.low[i]) + " " + number(series.high[i]);
        text_ += "\n";
      }
      text_ += "EOD\n";
    }
    if (panel.heat.x.empty()) return;
    text_ += fmt::format("$p{}heat << EOD\n", panel_index);
    for (std::size_t i = 0; i < panel.heat.x.size(); ++i) {
      for (std::size_t j = 0; j < panel.heat.y.size(); ++j)
        text_ += fmt::format("{} {} {}\n", number(panel.heat.x[i]), number(panel.heat.y[j]),
                             number(panel.heat.value[i][j]));
      text_ += "\n";  // gnuplot's mark of a new row
    }
    text_ += "EOD\n";
  }

  void add_pass(const std::string& terminal, std::string_view ending, std::size_t rows, std::size_t columns) {
    text_ += fmt::format("reset\nset terminal {}\nset output \"{}.{}\"\n", terminal, name_, ending);
    text_ += fmt::format("set multiplot layout {},{} rowsfirst title {}\n", std::max<std::size_t>(rows, 1),
                         columns, gnuplot_text(figure_.title));
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) add_panel(i);
    text_ += "unset multiplot\nunset output\n";
  }

  void add_panel(std::size_t index) {
    const Panel& panel = figure_.panels[index];
    text_ += fmt::format("reset\nset title {}\nset xlabel {}\nset ylabel {}\n", gnuplot_text(panel.title),
                         gnuplot_text(panel.x_label), gnuplot_text(panel.y_label));
    text_ += "set key noenhanced samplen 1.5 spacing 0.9\nset grid back linecolor rgb \"#dddddd\"\n";
    // Powers of ten where an axis is logarithmic.
    if (panel.log_x) text_ += "set logscale x\nset format x \"%g\"\n";
    if (panel.log_y) text_ += "set logscale y\nset format y \"%g\"\n";
    add_range("xrange", panel.x_range);
    add_range("yrange", panel.y_range);
    if (!has_points(panel)) {
      text_ += "set label 1 \"nothing to draw\" at graph 0.5,0.5 center\n";
      text_ +=
          "unset logscale\nunset key\nset xrange [0:1]\nset yrange [0:1]\nplot NaN notitle\nunset label 1\n";
      return;
    }
    panel.heat.x.empty() ? add_curves(index) : add_heat(index);
  }

  void add_range(std::string_view axis, const std::array<double, 2>& range) {
    if (range[0] != range[1]) text_ += fmt::format("set {} [{}:{}]\n", axis, range[0], range[1]);
  }

  static bool has_points(const Panel& panel) {
    if (!panel.heat.x.empty()) return true;
    return std::any_of(panel.series.begin(), panel.series.end(), [&](const Series& series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (std::isfinite(series.x[i]) && std::isfinite(series.y[i]) && (!panel.log_x || series.x[i] > 0) &&
            (!panel.log_y || series.y[i] > 0))
          return true;
      }
      return false;
    });
  }

  static std::string style_of(const Series& series) {
    const char* colour = kPalette[static_cast<std::size_t>(series.colour) % kPalette.size()];
    switch (series.style) {
      case SeriesStyle::dashed:
        return fmt::format("with lines linewidth 1.8 dashtype 2 linecolor rgb \"{}\"", colour);
      case SeriesStyle::points:
        return fmt::format("with points pointtype 7 pointsize 0.6 linecolor rgb \"{}\"", colour);
      case SeriesStyle::line_points:
        return fmt::format("with linespoints linewidth 1.5 pointtype 7 pointsize 0.5 linecolor rgb \"{}\"",
                           colour);
      case SeriesStyle::steps:
        return fmt::format("with histeps linewidth 1.2 linecolor rgb \"{}\"", colour);
      case SeriesStyle::line:
        break;
    }
    return fmt::format("with lines linewidth 1.5 linecolor rgb \"{}\"", colour);
  }

  void add_curves(std::size_t index) {
    std::vector<std::string> terms;
    const std::vector<Series>& all = figure_.panels[index].series;
    for (std::size_t s = 0; s < all.size(); ++s) {
      if (all[s].x.empty()) continue;
      if (!all[s].low.empty())
        terms.push_back(fmt::format(
            "$p{}s{} using 1:3:4 with filledcurves fillstyle transparent solid {} noborder linecolor rgb "
            "\"{}\" notitle",
            index, s, kBandOpacity, kPalette[static_cast<std::size_t>(all[s].colour) % kPalette.size()]));
      terms.push_back(fmt::format("$p{}s{} using 1:2 {} {}", index, s, style_of(all[s]), title_of(all[s])));
    }
    text_ += fmt::format("plot {}\n", fmt::join(terms, ", \\\n  "));
  }

  void add_heat(std::size_t index) {
    const Panel& panel = figure_.panels[index];
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& row : panel.heat.value) {
      for (const double value : row) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    // Points on top would widen the range of colours to their own height.
    if (low < high) text_ += fmt::format("set cbrange [{}:{}]\n", low, high);
    text_ += fmt::format(
        "unset key\nset view map\nset pm3d interpolate 12,12\nset palette defined ({})\nset cblabel {}\n",
        kHeatColours, gnuplot_text(panel.heat.label));
    std::vector<std::string> terms = {fmt::format("$p{}heat using 1:2:3 with pm3d notitle", index)};
    for (std::size_t s = 0; s < panel.series.size(); ++s)
      terms.push_back(fmt::format("$p{}s{} using 1:2:(0) {} {}", index, s, style_of(panel.series[s]),
                                  title_of(panel.series[s])));
    text_ += fmt::format("splot {}\n", fmt::join(terms, ", \\\n  "));
  }

  static std::string title_of(const Series& series) {
    return series.label.empty() ? "notitle" : "title " + gnuplot_text(series.label);
  }

  const Figure& figure_;
  std::string_view name_;
  std::string text_;
};

}  // namespace

std::string gnuplot_script(const Figure& figure, std::string_view name) {
  check(figure);
  return Script(figure, name).text();
}

std::string draw_figure(const Figure& figure, const fs::path& folder, const std::string& name,
                        const RunContext& run) {
  const std::string script = name + ".gp";
  write_file(folder / script, gnuplot_script(figure, name));
  const ProgramEnd end = run_program({"gnuplot", script}, folder, kDrawingSeconds, run.stop);
  std::error_code code;
  if (end.started && !end.timed_out && end.exit_code == 0 && fs::exists(folder / (name + ".svg"), code))
    return {};
  if (!end.started)
    return fmt::format(
        "{}: is not drawn, because gnuplot is not installed (Debian: gnuplot-nox); install it "
        "and run gnuplot {} in that folder",
        (folder / script).string(), script);
  return fmt::format("{}: is not drawn: gnuplot {}; run gnuplot {} in that folder to see why",
                     (folder / script).string(),
                     end.timed_out ? "was stopped, or took too long"
                                   : fmt::format("ended with code {}: {}", end.exit_code, end.error_text),
                     script);
}

}  // namespace nrec
