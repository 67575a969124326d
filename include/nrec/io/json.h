#pragma once

#include <string>
#include <string_view>

#include "nrec/core/record.h"

namespace nrec {

/// JSON text of a record: one flat object, names in the record's order, numbers as short as they read back
/// the same, UTF-8. JSON has no words for nan and infinity: they are written as the strings "nan", "inf" and
/// "-inf". `indent` spaces per level and one entry per line; -1 puts all on one line.
///
/// Errors   IoError: text that is not UTF-8
std::string record_to_json(const Record& record, int indent = 2);

/// The record of such a text. The strings "nan", "inf" and "-inf" become numbers again, alone and in a list
/// of numbers; numbers without point or exponent become integers; a list with any other number becomes a list
/// of float64; [] becomes an empty list of float64.
///
/// Errors   IoError: no JSON (with line and column), nested objects or lists, null, lists of mixed kinds, a
///          name twice or with a control character, a whole number beyond 64 bits, a schema_version that is
///          none; UnsupportedError: a newer schema_version; `where` starts the messages
Record record_from_json(std::string_view text, std::string_view where);

}  // namespace nrec
