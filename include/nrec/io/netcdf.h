#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace nrec {

/// Values of a variable or an attribute. Truth values are written as xarray writes them: bytes with the attribute
/// dtype = "bool".
using NetcdfValues =
    std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>, std::vector<bool>>;
/// Names and values in the order of the file. One value is written as a scalar.
using NetcdfAttributes = std::vector<std::pair<std::string, NetcdfValues>>;

/// An axis; every axis has a coordinate of its own name, 0, 1, ... where none is given.
struct NetcdfDimension {
  std::string name;
  std::size_t size = 0;
  NetcdfValues coordinate = std::vector<std::int64_t>();  // [size], or empty
};

/// An array over some of its group's axes, in C order.
struct NetcdfVariable {
  std::string name;
  std::vector<std::string> dimensions;
  NetcdfValues values;  // as many as the product of the axes
  NetcdfAttributes attributes = {};
};

/// One topic of a file.
struct NetcdfGroup {
  std::string name;
  std::vector<NetcdfDimension> dimensions;
  std::vector<NetcdfVariable> variables;
  NetcdfAttributes attributes = {};
};

/// Writes a NetCDF-4 file of groups with the care of write_file: what xarray's open_datatree and ArviZ's from_netcdf open.
///
/// Errors   ConfigError: no groups, a name that NetCDF cannot hold or that is there twice, an axis that is not in the
///          group; ShapeError: a number of values that does not fit; IoError: as write_file
void write_netcdf(const std::filesystem::path& path, const std::vector<NetcdfGroup>& groups);

/// `name` as NetCDF can hold it: characters that it cannot become "_", and one of `taken` gets "_" behind it.
std::string netcdf_name(std::string_view name, const std::vector<std::string>& taken);

}  // namespace nrec
