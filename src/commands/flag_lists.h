#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nrec {

/// Whole numbers of a flag that takes a list: numbers, 1e4 too, and ranges first-last, each once.
/// Errors   UsageError: no number, out of [low, high], given twice; names the flag and the word
std::vector<std::int64_t> whole_numbers(std::string_view flag, const std::vector<std::string>& words,
                                        double low, double high);

/// Positive numbers, `inf` not among them, each once.
/// Errors   UsageError, as above
std::vector<double> positive_numbers(std::string_view flag, const std::vector<std::string>& words);

/// Words of a list that are all in `known`, each once.
/// Errors   UsageError: none, unknown (with the nearest known one), given twice
std::vector<std::string> known_words(std::string_view flag, const std::vector<std::string>& words,
                                     std::span<const std::string> known);

/// Names of tasks, or `all`.
/// Errors   UsageError: none, given twice; ConfigError: unknown
std::vector<std::string> task_list(const std::vector<std::string>& words);

}  // namespace nrec
