#include "nrec/io/hdf5.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <mutex>

#include "io/byte_source.h"
#include "io/hdf5_type.h"
#include "io/npy_stream.h"
#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"

namespace nrec {

namespace {

using io::Hdf5Handle;

// The library is entered by one thread at a time, and keeps its error texts to itself meanwhile.
class Hdf5Session {
 public:
  Hdf5Session() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;
  ~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

 private:
  static std::mutex& mutex() {
    static std::mutex only;
    return only;
  }
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// The innermost text of the library's error stack: the reason nearest to the cause.
std::string last_hdf5_error() {
  std::string reason = "unknown reason";
  const auto keep = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    if (error->desc && *error->desc) *static_cast<std::string*>(data) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep, &reason);
  return reason;
}

Hdf5Handle open_file(const std::filesystem::path& path) {
  io::checked_file_size(path);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), true, true);  // file systems without locks are fine: nothing is written
#endif
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file.valid())
    throw IoError(
        fmt::format("{}: cannot be opened as HDF5: {}; it is truncated or of another format, write it again",
                    path.string(), last_hdf5_error()));
  return file;
}

// Access rules that follow no link into another file: a data file must not make us read elsewhere.
Hdf5Handle access_without_external_links(hid_t list_class) {
  Hdf5Handle access(H5Pcreate(list_class), H5Pclose);
  const auto refuse = [](const char*, const char*, const char*, const char*, unsigned*, hid_t,
                         void*) -> herr_t { return -1; };
  H5Pset_elink_cb(access.get(), refuse, nullptr);
  return access;
}

std::vector<std::string> dataset_names(hid_t file, const std::string& where) {
  constexpr std::size_t kMostObjects = 10000;
  struct Visit {
    std::vector<std::string> names;
    std::size_t objects = 0;
  } visit;
  const auto note = [](hid_t root, const char* name, const H5L_info_t*, void* data) -> herr_t {
    auto& state = *static_cast<Visit*>(data);
    if (++state.objects > kMostObjects) return 1;
    const Hdf5Handle access = access_without_external_links(H5P_LINK_ACCESS);
    const Hdf5Handle object(H5Oopen(root, name, access.get()), H5Oclose);
    if (object.valid() && H5Iget_type(object.get()) == H5I_DATASET) state.names.emplace_back(name);
    return 0;
  };
  const herr_t code = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, note, &visit);
  if (code > 0)
    throw IoError(fmt::format("{}: holds more than {} objects; store few large arrays", where, kMostObjects));
  if (code < 0)
    throw IoError(
        fmt::format("{}: its list of datasets is damaged: {}; write it again", where, last_hdf5_error()));
  const auto unprintable = std::ranges::find_if(visit.names, has_control_character);
  if (unprintable != visit.names.end()) {
    throw IoError(fmt::format(
        "{}: holds a dataset named {}, which holds a control character; write it again under another name",
        where, quoted_text(*unprintable)));
  }
  std::sort(visit.names.begin(), visit.names.end());
  return visit.names;
}

Hdf5Handle open_dataset(hid_t file, const std::string& name, const std::string& where) {
  const Hdf5Handle access = access_without_external_links(H5P_DATASET_ACCESS);
  Hdf5Handle dataset(name.empty() ? -1 : H5Dopen2(file, name.c_str(), access.get()), H5Dclose);
  if (dataset.valid()) return dataset;
  const std::vector<std::string> known = dataset_names(file, where);
  const std::string nearest = nearest_word(name, known);
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    throw IoError(fmt::format("{}: dataset \"{}\" is damaged: {}; write the file again", where, name,
                              last_hdf5_error()));
  }
  throw IoError(
      fmt::format("{}: has no dataset \"{}\" (links into other files are not followed); it holds: {}{}",
                  where, name, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                  nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
}

std::vector<std::size_t> shape_of(hid_t dataset, const std::string& where) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const int dimensions = H5Sget_simple_extent_ndims(space.get());
  if (dimensions < 0 || H5Sget_simple_extent_type(space.get()) == H5S_NULL)
    throw IoError(where + ": is empty (a null dataspace); store an array");
  std::vector<hsize_t> extents(static_cast<std::size_t>(dimensions));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

// Compares what a dataset claims with what the file holds for it, before memory is asked for.
void check_storage(hid_t dataset, std::size_t count, std::size_t element_bytes, const std::string& where) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0) {
    throw IoError(where +
                  ": its data lie in other files (virtual or external storage); copy them into this file");
  }
  if (count == 0) return;
  const hsize_t stored = H5Dget_storage_size(dataset);
  if (stored == 0) throw IoError(where + ": was created but never written; write the data");
  constexpr std::size_t kMaxRatio = 1032;  // of deflate, the strongest usual filter
  const bool filtered = H5Pget_nfilters(creation.get()) > 0;
  if (count * element_bytes / (filtered ? kMaxRatio : 1) > stored) {
    throw IoError(fmt::format(
        "{}: claims {} bytes but the file stores {} for it; it was not written completely, write it again",
        where, count * element_bytes, stored));
  }
}

template <class T>
void read_whole_numbers(hid_t dataset, hid_t memory_type, std::vector<double>& values,
                        const std::string& where, herr_t& code) {
  std::vector<T> whole(values.size());
  code = H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, whole.data());
  for (std::size_t i = 0; code >= 0 && i < whole.size(); ++i)
    values[i] = io::exact_double(whole[i], i, where);
}

void read_values(hid_t dataset, hid_t file_type, const io::Hdf5Type& type, std::vector<double>& values,
                 const std::string& where) {
  herr_t code = 0;
  switch (type.kind) {
    case io::Hdf5Kind::real:
    case io::Hdf5Kind::small_integer:
      code = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      break;
    case io::Hdf5Kind::int64:
      read_whole_numbers<std::int64_t>(dataset, H5T_NATIVE_INT64, values, where, code);
      break;
    case io::Hdf5Kind::uint64:
      read_whole_numbers<std::uint64_t>(dataset, H5T_NATIVE_UINT64, values, where, code);
      break;
    case io::Hdf5Kind::boolean: {
      std::vector<unsigned char> flags(values.size());
      code = H5Dread(dataset, file_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, flags.data());
      std::transform(flags.begin(), flags.end(), values.begin(),
                     [](unsigned char flag) { return flag != 0 ? 1.0 : 0.0; });
      break;
    }
  }
  if (code < 0)
    throw IoError(fmt::format("{}: cannot be read: {}; it is damaged or needs a filter that is not installed",
                              where, last_hdf5_error()));
}

}  // namespace

std::vector<std::string> hdf5_names(const std::filesystem::path& path) {
  const Hdf5Session session;
  const Hdf5Handle file = open_file(path);
  return dataset_names(file.get(), path.string());
}

bool hdf5_has(const std::filesystem::path& path, const std::string& name) {
  const Hdf5Session session;
  const Hdf5Handle file = open_file(path);
  return H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) > 0;
}

NamedArrays read_hdf5(const std::filesystem::path& path, std::span<const std::string> names,
                      const Hdf5Limits& limits) {
  const Hdf5Session session;
  const Hdf5Handle file = open_file(path);
  NamedArrays arrays;
  std::uint64_t allowed = limits.max_bytes;
  for (const std::string& name : names) {
    const std::string where = fmt::format("{}: \"{}\"", path.string(), name);
    const Hdf5Handle dataset = open_dataset(file.get(), name, path.string());
    const Hdf5Handle file_type(H5Dget_type(dataset.get()), H5Tclose);
    const io::Hdf5Type type = io::hdf5_type_of(file_type.get(), where);
    NumericArray array{shape_of(dataset.get(), where), {}, type.dtype};
    const auto count = io::element_count(array.shape, type.bytes);
    if (!count || *count > allowed / sizeof(double)) {
      throw IoError(fmt::format("{}: shape {} needs more than the {} bytes allowed; split the file", where,
                                shape_text(array.shape), limits.max_bytes));
    }
    allowed -= *count * sizeof(double);
    check_storage(dataset.get(), *count, type.bytes, where);
    array.values.resize(*count);
    if (*count > 0) read_values(dataset.get(), file_type.get(), type, array.values, where);
    arrays.emplace_back(name, std::move(array));
  }
  return arrays;
}

}  // namespace nrec
