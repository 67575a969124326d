#include "io/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nrec/core/error.h"

namespace nrec::io {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// Tab before semicolon before comma: whichever of them stands outside quotes on the first line that is not
// blank.
char separator_of(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(text.substr(0, first).rfind('\n') + 1);  // npos + 1 = 0
  bool quoted = false, semicolon = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    if (c == '\t') return '\t';
    if (c == ';') semicolon = true;
  }
  return semicolon ? ';' : ',';
}

// Position of the leading digit that is not zero, as a power of ten, of a number in decimal notation.
long decimal_exponent(std::string_view number) {
  const std::size_t letter = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, letter);
  const auto point = static_cast<long>(std::min(digits.find('.'), digits.size()));
  const auto leading = static_cast<long>(std::min(digits.find_first_of("123456789"), digits.size()));
  std::string_view power = number.substr(std::min(letter + 1, number.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  int exponent = 0;
  const auto code = std::from_chars(power.data(), power.data() + power.size(), exponent).ec;
  if (code == std::errc::result_out_of_range) return power.starts_with('-') ? -1 : 1;
  return point - leading + exponent;
}

}  // namespace

std::optional<double> parse_number(std::string_view cell) {
  if (cell.starts_with('+') && !cell.starts_with("+-")) cell.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (end != cell.data() + cell.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc()) return value;
  // Out of range: too small a magnitude is 0 to float64's precision, too large a one is refused.
  if (decimal_exponent(cell) > 0) return std::nullopt;
  return cell.starts_with('-') ? -0.0 : 0.0;
}

CsvLines::CsvLines(std::string_view text, std::string_view where) : text_(text), where_(where) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF")) {
    throw IoError(
        fmt::format("{}: is text in UTF-16; save it as UTF-8 (plain \"CSV\" in a spreadsheet)", where));
  }
  separator_ = separator_of(text_);
}

void CsvLines::fail(std::string_view what) const {
  throw IoError(fmt::format("{}: line {}: {}", where_, line_, what));
}

bool CsvLines::next(std::vector<std::string_view>& cells) {
  const std::size_t first_line = line_;
  bool met_blank = false;
  while (position_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    if (!trimmed(text_.substr(position_, end - position_)).empty()) break;
    met_blank = true;
    position_ = end + 1;
    ++line_;
  }
  if (position_ >= text_.size()) return false;
  if (met_blank && row_line_ > 0) {
    line_ = first_line;
    fail("is blank between rows; remove it, or write nan for a missing value");
  }
  row_line_ = line_;
  cells.clear();
  unquoted_.clear();
  for (;;) {
    std::size_t start = position_;
    while (start < text_.size() && text_[start] == ' ') ++start;
    if (start < text_.size() && text_[start] == '"') {
      position_ = start;
      cells.push_back(quoted_cell());
    } else {
      cells.push_back(plain_cell());
    }
    if (position_ < text_.size() && text_[position_] == separator_) {
      ++position_;
      continue;
    }
    if (position_ < text_.size()) ++position_;  // the line end
    ++line_;
    return true;
  }
}

std::string_view CsvLines::plain_cell() {
  const std::size_t start = position_;
  while (position_ < text_.size() && text_[position_] != separator_ && text_[position_] != '\n') ++position_;
  return trimmed(text_.substr(start, position_ - start));
}

std::string_view CsvLines::quoted_cell() {
  std::string cell;
  for (++position_;; ++position_) {
    if (position_ >= text_.size()) {
      line_ = row_line_;
      fail("a quote is opened and never closed");
    }
    const char c = text_[position_];
    if (c == '"') {
      if (position_ + 1 >= text_.size() || text_[position_ + 1] != '"') break;
      ++position_;  // "" inside quotes is one quote
    }
    if (c == '\n') ++line_;
    cell += c;
  }
  ++position_;
  if (!plain_cell().empty()) fail("text follows a closing quote; write \"\" for a quote inside quotes");
  unquoted_.push_back(std::move(cell));
  return unquoted_.back();
}

}  // namespace nrec::io
