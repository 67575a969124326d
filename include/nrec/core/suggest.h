#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nrec {

/// The known word nearest to `word` (edit distance, dashes and underscores equal), or "" when none is near
/// (more than a third of its letters differ).
std::string nearest_word(std::string_view word, std::span<const std::string> known);

/// Edit distance with insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace nrec
