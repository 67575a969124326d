#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "nrec/core/record.h"

namespace nrec {

/// Records of equal things as one: every name with the list of their values, row after row; lists of numbers one behind the
/// other. Where a record lacks a name there is nan, -1 (whole numbers, which here are counts) or "". Truth values become 0 and 1.
Record record_columns(std::span<const Record> rows);

/// Entry `row` of `count` of what record_columns() made; names that this row lacked are left out. `lists` are the names that
/// held lists, which may have had one element.
Record record_row(const Record& columns, std::size_t row, std::size_t count,
                  std::span<const std::string_view> lists);

}  // namespace nrec
