#pragma once

#include <string>
#include <string_view>

namespace nrec {

/// Whether `text` holds a control character: one of 0x00 to 0x1F (newline and tab among them), delete, or U+0080 to
/// U+009F. A terminal obeys them, so no name may hold one. Marks that change the direction of writing are not among them.
bool has_control_character(std::string_view text);

/// `bytes` for people: valid UTF-8 stays, with newlines and tabs; other control characters, and bytes that are no
/// UTF-8, become \xNN.
std::string printable_text(std::string_view bytes);

/// The same on one line: newlines and tabs become \x0a and \x09, too.
std::string one_line_text(std::string_view bytes);

/// one_line_text() in quotes, for names and words in messages.
std::string quoted_text(std::string_view bytes);

/// The same, cut after about forty letters.
std::string quoted_excerpt(std::string_view bytes);

}  // namespace nrec
