#include "nrec/io/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/json_error.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/printable_text.h"

namespace nrec {

namespace {

using Json = nlohmann::ordered_json;

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

/// Delete and U+0080 to U+009F, which JSON allows in texts and terminals obey, as \u escapes.
std::string without_terminal_controls(std::string json) {
  constexpr std::string_view kDelete = "\x7f", kFirstOfTwo = "\xc2";
  if (json.find(kDelete) == std::string::npos && json.find(kFirstOfTwo) == std::string::npos) return json;
  std::string result;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto second = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : '\0');
    if (json[i] == kDelete[0]) {
      result += "\\u007f";
    } else if (json[i] == kFirstOfTwo[0] && second >= 0x80 && second < 0xa0) {
      result += fmt::format("\\u{:04x}", second);
      ++i;
    } else {
      result += json[i];
    }
  }
  return result;
}

Json value_json(const RecordValue& value) {
  return std::visit(
      [](const auto& item) -> Json {
        using T = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<T, double>) {
          return number_json(item);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          Json list = Json::array();
          for (const double number : item) list.push_back(number_json(number));
          return list;
        } else {
          return item;
        }
      },
      value);
}

bool special_number(const std::string& text, double& value) {
  if (text == "nan") value = std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") value = std::numeric_limits<double>::infinity();
  if (text == "-inf") value = -std::numeric_limits<double>::infinity();
  return text == "nan" || text == "inf" || text == "-inf";
}

// Receives the events of the parser and fills a record: what does not fit a flat record is refused where it
// is met.
class RecordReader final : public nlohmann::json_sax<Json> {
 public:
  RecordReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Record take() { return std::move(record_); }

  bool null() override {
    require_object();
    fail(fmt::format("\"{}\" is null; leave it out or write \"nan\"", name_));
  }
  bool boolean(bool value) override {
    if (in_list_)
      fail(fmt::format("the list \"{}\" holds true or false; only numbers or texts can be listed", name_));
    return store(value);
  }
  bool number_integer(std::int64_t value) override {
    if (!in_list_) return store(value);
    integers_.push_back(value);
    return add_number(static_cast<double>(value), true);
  }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format(
          "\"{}\" holds the whole number {}, which is beyond 64 bits with sign; write it as a text", name_,
          value));
    }
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) {
      fail(fmt::format(
          "\"{}\" holds the whole number {}, which is beyond 64 bits with sign; write it as a text", name_,
          digits));
    }
    return in_list_ ? add_number(value, false) : store(value);
  }
  bool string(std::string& value) override {
    double number = 0;
    const bool special = special_number(value, number);
    if (!in_list_) return special ? store(number) : store(std::move(value));
    texts_.push_back(value);
    all_integers_ = false;
    // A special number may be either kind until another element decides.
    if (special) {
      numbers_.push_back(number);
      return true;
    }
    seen_text_ = true;
    if (seen_number_) fail_mixed();
    return true;
  }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (depth_++ > 0)
      fail(fmt::format("\"{}\" is an object inside the object; use flat dotted names", name_));
    return true;
  }
  bool key(std::string& name) override {
    if (has_control_character(name))
      fail(fmt::format("the name {} holds a control character; rename it", quoted_text(name)));
    if (!names_.insert(name).second) fail(fmt::format("the name \"{}\" appears twice; remove one", name));
    name_ = name;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override {
    if (depth_ == 0) fail("the text is a list; a record is one object {...}");
    if (in_list_) fail(fmt::format("\"{}\" is a list inside a list; only flat lists are read", name_));
    in_list_ = true;
    seen_number_ = seen_text_ = false;
    all_integers_ = true;
    numbers_.clear();
    integers_.clear();
    texts_.clear();
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    if (seen_text_) return store(std::move(texts_));
    if (all_integers_ && !integers_.empty()) return store(std::move(integers_));
    return store(std::move(numbers_));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    io::throw_json_error(text_, position, error.what(), where_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { throw IoError(fmt::format("{}: {}", where_, what)); }
  void require_object() const {
    if (depth_ == 0) fail("the text is a single value; a record is one object {...}");
  }
  [[noreturn]] void fail_mixed() const {
    fail(fmt::format("the list \"{}\" mixes numbers and texts; use one kind", name_));
  }
  bool store(RecordValue value) {
    require_object();
    record_.set(name_, std::move(value));
    return true;
  }
  bool add_number(double value, bool integer) {
    if (seen_text_) fail_mixed();
    seen_number_ = true;
    if (!integer) all_integers_ = false;
    numbers_.push_back(value);
    return true;
  }

  std::string_view text_;
  std::string_view where_;
  Record record_;
  std::set<std::string> names_;
  std::string name_;
  int depth_ = 0;
  bool in_list_ = false, seen_number_ = false, seen_text_ = false, all_integers_ = true;
  std::vector<double> numbers_;
  std::vector<std::int64_t> integers_;
  std::vector<std::string> texts_;
};

}  // namespace

namespace io {

void throw_json_error(std::string_view text, std::size_t position, std::string_view reason,
                      std::string_view where) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < position && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    if (text[i] == '\n') ++line;
  }
  // The library's text starts with its own code and place; what follows the last ": " of that start is the
  // reason.
  const std::size_t start = reason.find("column ");
  const std::size_t colon = start == std::string_view::npos ? start : reason.find(": ", start);
  if (colon != std::string_view::npos) reason.remove_prefix(colon + 2);
  throw IoError(fmt::format("{}:{}:{}: is not valid JSON: {}", where, line, column, reason));
}

}  // namespace io

namespace {

/// A newer program may mean something else by a name that this one knows.
void check_schema_version(const Record& record, std::string_view where) {
  const RecordValue* value = record.find("schema_version");
  if (!value) return;
  const auto* version = std::get_if<std::int64_t>(value);
  if (!version || *version < 1) {
    throw IoError(fmt::format(
        "{}: schema_version must be a whole number from 1; the record is damaged, write it again", where));
  }
  if (*version <= Record::kSchemaVersion) return;
  const RecordValue* writer = record.find("nrec_version");
  const auto* name = writer ? std::get_if<std::string>(writer) : nullptr;
  throw UnsupportedError(fmt::format(
      "{}: schema_version = {}, but this program knows records up to version {}; use the nrec that "
      "wrote it{} or a newer one, or start anew in another folder",
      where, *version, Record::kSchemaVersion, name ? " (" + one_line_text(*name) + ")" : ""));
}

}  // namespace

std::string record_to_json(const Record& record, int indent) {
  Json object = Json::object();
  // The names of a record differ, so the slow search for a key is not needed.
  auto& entries = object.get_ref<Json::object_t&>();
  for (const auto& [name, value] : record.entries()) entries.push_back({name, value_json(value)});
  try {
    return without_terminal_controls(object.dump(indent)) + (indent >= 0 ? "\n" : "");
  } catch (const nlohmann::json::exception&) {
    throw IoError("record: a text in it is not UTF-8; convert it before it is put into the record");
  }
}

Record record_from_json(std::string_view text, std::string_view where) {
  RecordReader reader(text, where);
  const bool complete = Json::sax_parse(text, &reader);
  require_internal(complete, "the JSON parser stopped without a reason");
  Record record = reader.take();
  check_schema_version(record, where);
  return record;
}

}  // namespace nrec
