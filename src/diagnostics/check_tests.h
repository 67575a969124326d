#pragma once

#include <string>
#include <vector>

#include "nrec/core/record.h"
#include "nrec/diagnostics/quick_check.h"

namespace nrec {

/// One test of the full check, before and after the correction for their number.
struct CheckTest {
  std::string item;       // name of the CheckItem that it belongs to
  std::string name;       // unique: "mean rank of rate"
  double p_value = 1.0;   // nan: not tested
  bool is_large = false;  // whether the effect is worth mentioning
  bool decides = true;    // false: at worst "cannot tell"
  std::string effect;     // in words, with its numbers: "the posterior of rate is 23 % too narrow"
  std::string advice;     // what to do about it
  bool is_vague = false;  // says that something is wrong, not what: others speak first
  double adjusted = 1.0;
};

/// What the stages of the full check collect.
struct CheckFindings {
  std::vector<CheckTest> tests;
  std::vector<CheckItem> items;  // of what could not be tested
  Record record;
  bool is_complete = true;  // false: something was cut short
};

namespace advice {
inline constexpr const char* kNarrow =
    "simulate more, lower gamma or num_classes, or take fewer epochs; also check that theta comes from this "
    "prior";
inline constexpr const char* kWide =
    "train longer or with a larger network; also check that theta comes from this prior";
inline constexpr const char* kShifted =
    "simulate more or train a larger network; check the order and units of the columns of theta, and the "
    "prior";
inline constexpr const char* kShape = "simulate more, train longer or with a larger network";
inline constexpr const char* kRatio =
    "posteriors at fixed x do not feel it, evidences and comparisons between observations do: simulate more, "
    "train "
    "longer, or try gamma nearer to 1";
inline constexpr const char* kFar =
    "check the order and units of x_o, widen the prior or mend the simulator; or simulate nearer to x_o, "
    "from a "
    "narrower prior";
inline constexpr const char* kPredictive =
    "the simulator at the posterior does not make data like x_o: check x_o and the simulator, or the "
    "posterior at x_o by "
    "more simulations from a narrower prior";
}  // namespace advice

/// printf-style text of numbers.
std::string check_text(const char* format, double a, double b = 0.0, double c = 0.0);

}  // namespace nrec
