#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nrec::simulation {

// What stands between the braces of a placeholder.
enum class Blank { literal, parameter, theta, seed, row, theta_file, theta_file_npy, x_file, x_file_npy };

struct WordPart {
  Blank kind = Blank::literal;
  std::string text;           // of a literal
  std::size_t parameter = 0;  // column of theta
};

// A word with its placeholders.
using WordTemplate = std::vector<WordPart>;

// What is put into the placeholders of one row.
struct BlankValues {
  std::span<const double> theta;
  std::uint32_t seed = 0;
  std::uint64_t row = 0;
  std::string_view theta_file;
  std::string_view x_file;
};

// A command cut into words as a shell would: blanks separate, '...' and "..." and backslashes keep together; nothing
// else has a meaning. {name} is a placeholder, also inside quotes; {{ and }} are braces.
//
// Errors   ConfigError: empty, quote or brace left open, unknown placeholder (with the nearest known one)
std::vector<WordTemplate> split_command(std::string_view command, std::span<const std::string> parameters);

// The template of a request line: placeholders {theta} {seed} {row} {name}; no quotes.
// Errors as split_command
WordTemplate read_line_template(std::string_view line, std::span<const std::string> parameters);

bool uses(const WordTemplate& word, Blank kind);
bool uses(std::span<const WordTemplate> words, Blank kind);
// Parameters that no placeholder hands over; empty when {theta} or {theta_file} hands over all of them.
std::vector<std::string> parameters_left_out(std::span<const WordTemplate> words,
                                             std::span<const std::string> parameters);

void append_filled(std::string& text, const WordTemplate& word, const BlankValues& values);

}  // namespace nrec::simulation
