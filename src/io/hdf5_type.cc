#include "io/hdf5_type.h"

#include <fmt/format.h>

#include "nrec/core/error.h"

namespace nrec::io {

namespace {

const char* reason_against(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_STRING:
      return "holds text; store numbers";
    case H5T_COMPOUND:
      return "holds compound records (or complex numbers); store its fields as separate datasets";
    case H5T_REFERENCE:
      return "holds references; store the data themselves";
    case H5T_VLEN:
      return "holds lists of variable length; store a rectangular array";
    case H5T_OPAQUE:
      return "holds opaque bytes; store numbers";
    case H5T_ENUM:
      return "holds an enumeration other than false and true; store numbers";
    case H5T_ARRAY:
      return "holds arrays as elements; store one array with more dimensions";
    case H5T_TIME:
      return "holds dates; store seconds or days as float";
    case H5T_BITFIELD:
      return "holds bit fields; store numbers";
    default:
      return "holds a type that is no number; store float64";
  }
}

std::string member_name(hid_t type, unsigned index) {
  char* name = H5Tget_member_name(type, index);
  const std::string result = name ? name : "";
  if (name) H5free_memory(name);
  return result;
}

// h5py stores bool as an enumeration of one byte with FALSE = 0 and TRUE = 1.
bool is_boolean(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  for (unsigned i = 0; i < 2; ++i) {
    signed char value = -1;
    if (H5Tget_member_value(type, i, &value) < 0) return false;
    if (member_name(type, i) != (value == 0 ? "FALSE" : "TRUE") || (value != 0 && value != 1)) return false;
  }
  return true;
}

}  // namespace

Hdf5Type hdf5_type_of(hid_t type, std::string_view where) {
  const H5T_class_t type_class = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  if (type_class == H5T_ENUM && is_boolean(type)) return {Hdf5Kind::boolean, "|b1", 1};
  if (type_class != H5T_FLOAT && type_class != H5T_INTEGER) {
    throw UnsupportedError(fmt::format("{}: {}", where, reason_against(type_class)));
  }
  const char order = bytes == 1 ? '|' : H5Tget_order(type) == H5T_ORDER_BE ? '>' : '<';
  if (type_class == H5T_FLOAT) {
    if (bytes > 8) throw UnsupportedError(fmt::format("{}: holds long doubles; store float64", where));
    return {Hdf5Kind::real, fmt::format("{}f{}", order, bytes), bytes};
  }
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  if (bytes > 8)
    throw UnsupportedError(
        fmt::format("{}: holds integers of {} bytes; store int64 or float64", where, bytes));
  const Hdf5Kind kind = bytes <= 4 ? Hdf5Kind::small_integer : is_signed ? Hdf5Kind::int64 : Hdf5Kind::uint64;
  return {kind, fmt::format("{}{}{}", order, is_signed ? 'i' : 'u', bytes), bytes};
}

}  // namespace nrec::io
