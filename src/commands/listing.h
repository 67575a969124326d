#pragma once

#include <string>

#include "nrec/commands/info.h"

namespace nrec {

/// "name   value", with the number of values in place of long lists.
std::string info_line(const std::string& name, const RecordValue& value);

/// What info() finds: every entry goes into the record and becomes a line for people.
struct Listing {
  InfoResult result;
  void add(const std::string& name, RecordValue value);
};

}  // namespace nrec
