#include "nrec/io/netcdf.h"

#include <fmt/format.h>
#include <netcdf.h>

#include <algorithm>
#include <numeric>

#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::size_t size_of(const NetcdfValues& values) {
  return std::visit([](const auto& list) { return list.size(); }, values);
}

nc_type type_of(const NetcdfValues& values) {
  constexpr nc_type kTypes[] = {NC_DOUBLE, NC_INT64, NC_STRING, NC_BYTE};
  return kTypes[values.index()];
}

/// The open file. Every call of the library goes through check().
class File {
 public:
  /// `shown` is the file's name in messages: `path` itself may be a temporary one.
  File(const fs::path& path, std::string shown) : shown_(std::move(shown)) {
    check(nc_create(path.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_));
  }
  ~File() {
    if (id_ >= 0) nc_close(id_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void close() {
    const int id = std::exchange(id_, -1);
    check(nc_close(id));
  }
  void check(int code) const {
    if (code != NC_NOERR)
      throw IoError(
          fmt::format("{}: cannot be written as NetCDF: {}; free disk space or choose another folder", shown_,
                      nc_strerror(code)));
  }
  int id() const { return id_; }
  const std::string& shown() const { return shown_; }

 private:
  std::string shown_;
  int id_ = -1;
};

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

void put_attribute(const File& file, int group, int variable, const std::string& name,
                   const NetcdfValues& values) {
  if (const auto* reals = std::get_if<std::vector<double>>(&values)) {
    file.check(nc_put_att_double(group, variable, name.c_str(), NC_DOUBLE, reals->size(), reals->data()));
  } else if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&values)) {
    const std::vector<long long> copy(wholes->begin(), wholes->end());
    file.check(nc_put_att_longlong(group, variable, name.c_str(), NC_INT64, copy.size(), copy.data()));
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&values)) {
    if (texts->size() == 1) {
      file.check(
          nc_put_att_text(group, variable, name.c_str(), texts->front().size(), texts->front().c_str()));
    } else {
      auto list = pointers(*texts);
      file.check(nc_put_att_string(group, variable, name.c_str(), list.size(), list.data()));
    }
  } else {
    const auto& truths = std::get<std::vector<bool>>(values);
    const std::vector<signed char> bytes(truths.begin(), truths.end());
    file.check(nc_put_att_schar(group, variable, name.c_str(), NC_BYTE, bytes.size(), bytes.data()));
  }
}

void put_values(const File& file, int group, int variable, const NetcdfValues& values) {
  if (size_of(values) == 0) return;
  if (const auto* reals = std::get_if<std::vector<double>>(&values)) {
    file.check(nc_put_var_double(group, variable, reals->data()));
  } else if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&values)) {
    const std::vector<long long> copy(wholes->begin(), wholes->end());
    file.check(nc_put_var_longlong(group, variable, copy.data()));
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&values)) {
    auto list = pointers(*texts);
    file.check(nc_put_var_string(group, variable, list.data()));
  } else {
    const auto& truths = std::get<std::vector<bool>>(values);
    const std::vector<signed char> bytes(truths.begin(), truths.end());
    file.check(nc_put_var_schar(group, variable, bytes.data()));
  }
}

/// An axis that has no coordinate is numbered.
NetcdfVariable coordinate_of(const NetcdfDimension& dimension) {
  NetcdfVariable variable = {
      .name = dimension.name, .dimensions = {dimension.name}, .values = dimension.coordinate};
  if (size_of(dimension.coordinate) == 0 && dimension.size > 0) {
    std::vector<std::int64_t> numbers(dimension.size);
    std::iota(numbers.begin(), numbers.end(), 0);
    variable.values = std::move(numbers);
  }
  return variable;
}

void check_variable(const NetcdfGroup& group, const NetcdfVariable& variable, const std::string& shown) {
  std::size_t size = 1;
  for (const std::string& name : variable.dimensions) {
    const auto found = std::ranges::find(group.dimensions, name, &NetcdfDimension::name);
    if (found == group.dimensions.end())
      throw ConfigError(fmt::format("{}: variable {} of group {} has the axis {}, which the group has not",
                                    shown, variable.name, group.name, name));
    size *= found->size;
  }
  if (size_of(variable.values) != size)
    throw ShapeError(fmt::format("{}: variable {} of group {} has {} values, its axes ask for {}", shown,
                                 variable.name, group.name, size_of(variable.values), size));
}

void check_group(const NetcdfGroup& group, const std::string& shown) {
  std::vector<std::string> names;
  const auto check_name = [&](const std::string& name) {
    if (netcdf_name(name, names) != name)
      throw ConfigError(
          fmt::format("{}: \"{}\" in group {} is there twice or no name that NetCDF can hold; use {}", shown,
                      name, group.name, netcdf_name(name, names)));
    names.push_back(name);
  };
  for (const NetcdfDimension& dimension : group.dimensions) {
    check_name(dimension.name);
    check_variable(group, coordinate_of(dimension), shown);
  }
  for (const NetcdfVariable& variable : group.variables) {
    check_name(variable.name);
    check_variable(group, variable, shown);
  }
}

void write_group(const File& file, const NetcdfGroup& group) {
  int id = -1;
  file.check(nc_def_grp(file.id(), group.name.c_str(), &id));
  std::vector<int> axes;
  for (const NetcdfDimension& dimension : group.dimensions)
    file.check(nc_def_dim(id, dimension.name.c_str(), dimension.size, &axes.emplace_back()));
  std::vector<NetcdfVariable> variables;
  for (const NetcdfDimension& dimension : group.dimensions) variables.push_back(coordinate_of(dimension));
  variables.insert(variables.end(), group.variables.begin(), group.variables.end());
  for (const NetcdfVariable& variable : variables) {
    std::vector<int> own;
    for (const std::string& name : variable.dimensions)
      own.push_back(axes[static_cast<std::size_t>(
          std::ranges::find(group.dimensions, name, &NetcdfDimension::name) - group.dimensions.begin())]);
    int variable_id = -1;
    file.check(nc_def_var(id, variable.name.c_str(), type_of(variable.values), static_cast<int>(own.size()),
                          own.data(), &variable_id));
    if (std::holds_alternative<std::vector<bool>>(variable.values))
      put_attribute(file, id, variable_id, "dtype", std::vector<std::string>{"bool"});
    for (const auto& [name, values] : variable.attributes) put_attribute(file, id, variable_id, name, values);
    put_values(file, id, variable_id, variable.values);
  }
  for (const auto& [name, values] : group.attributes) put_attribute(file, id, NC_GLOBAL, name, values);
}

}  // namespace

std::string netcdf_name(std::string_view name, const std::vector<std::string>& taken) {
  std::string result(name);
  for (char& c : result) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  }
  const auto is_start = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
  };
  if (result.empty() || !is_start(static_cast<unsigned char>(result.front()))) result = "_" + result;
  while (result.back() == ' ') result.back() = '_';
  if (result.size() > NC_MAX_NAME / 2) result.resize(NC_MAX_NAME / 2);
  while (std::ranges::find(taken, result) != taken.end()) result += '_';
  return result;
}

void write_netcdf(const fs::path& path, const std::vector<NetcdfGroup>& groups) {
  const std::string shown = path.string();
  if (groups.empty()) throw ConfigError(shown + ": a NetCDF file needs at least one group");
  for (const NetcdfGroup& group : groups) check_group(group, shown);
  replace_file(path, [&](const fs::path& temporary) {
    File file(temporary, shown);
    for (const NetcdfGroup& group : groups) write_group(file, group);
    file.close();
  });
}

}  // namespace nrec
