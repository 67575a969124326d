#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/run_context.h"

namespace nrec {

/// How the points of a series are drawn.
enum class SeriesStyle { line, dashed, points, line_points, steps };

/// A curve, a cloud of points, or a curve with a band.
struct Series {
  std::string label;  // empty: not in the key
  std::vector<double> x, y;
  std::vector<double> low, high;  // of a band around y; empty: none
  SeriesStyle style = SeriesStyle::line;
  int colour = 0;  // number in the palette; equal numbers look equal in every panel
};

/// Values on a rectangle: value[i][j] at (x[i], y[j]), drawn as colours that are interpolated between the points.
struct HeatMap {
  std::vector<double> x, y;
  std::vector<std::vector<double>> value;
  std::string label;  // of the colour bar
};

/// Axes with what is drawn in them. Not finite values leave gaps.
struct Panel {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::array<double, 2> x_range = {0.0, 0.0}, y_range = {0.0, 0.0};  // equal ends: from the data
  std::vector<Series> series;
  HeatMap heat;  // empty: none; the series lie on top of it
};

/// Panels in rows of `columns`.
struct Figure {
  std::string title;
  std::size_t columns = 1;
  std::vector<Panel> panels;
};

/// The figure as a gnuplot script that holds its data and writes NAME.svg and NAME.png in the current folder.
///
/// Errors   ShapeError: lengths of a series or a heat map differ
std::string gnuplot_script(const Figure& figure, std::string_view name);

/// Writes NAME.gp into the folder and lets gnuplot make NAME.svg and NAME.png of it. Returns what went wrong, with what to
/// do about it, or an empty text; a figure that cannot be drawn is no reason to lose the tables beside it.
///
/// Errors   IoError: the script cannot be written
std::string draw_figure(const Figure& figure, const std::filesystem::path& folder, const std::string& name,
                        const RunContext& run);

}  // namespace nrec
