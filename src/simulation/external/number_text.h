#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nrec::simulation {

// Appends the shortest decimal that reads back as `value`, whatever the locale: "0.1", "1e-05", "nan".
void append_number(std::string& text, double value);
// All values, a blank between two.
void append_numbers(std::string& text, std::span<const double> values);

// Reads numbers separated by blanks, tabs and line ends into `values`, which is cleared first: decimals as C writes
// them, nan and inf in any spelling of C. Returns "" or, at the first word that is no number, what is wrong with it.
std::string read_numbers(std::string_view text, std::vector<double>& values);

// The first word of `text`, which is moved behind it; "" when none is left.
std::string_view next_word(std::string_view& text);

}  // namespace nrec::simulation
