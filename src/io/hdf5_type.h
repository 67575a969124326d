#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

namespace nrec::io {

// An HDF5 identifier that is closed with the object.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// How the elements of a dataset are to be read.
enum class Hdf5Kind { real, small_integer, int64, uint64, boolean };

struct Hdf5Type {
  Hdf5Kind kind = Hdf5Kind::real;
  std::string dtype;  // NumPy's word
  std::size_t bytes = 8;
};

// Errors: UnsupportedError: the type is no number; the text says what it is.
Hdf5Type hdf5_type_of(hid_t type, std::string_view where);

}  // namespace nrec::io
