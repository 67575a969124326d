#include "simulation/external/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "nrec/core/error.h"
#include "nrec/simulator_interface.h"

namespace nrec::simulation {
namespace {

// No x of one row has more; beyond it a dimension is a mistake (an uninitialised number, another return type).
constexpr std::int64_t kMostValues = std::int64_t{1} << 30;

template <class Function>
Function* find_function(void* handle, const std::filesystem::path& path, const char* name) {
  void* address = dlsym(handle, name);
  if (address == nullptr) {
    throw ConfigError(
        fmt::format("library {}: the function {} is missing; define what nrec/simulator_interface.h declares "
                    "(in C++ inside extern \"C\", in Fortran with bind(c))",
                    path.string(), name));
  }
  return reinterpret_cast<Function*>(address);
}

std::size_t dimension(std::int64_t value, const std::filesystem::path& path, const char* name) {
  if (value < 1 || value > kMostValues)
    throw ConfigError(
        fmt::format("library {}: {}() = {}; must be in 1 .. {}", path.string(), name, value, kMostValues));
  return static_cast<std::size_t>(value);
}

}  // namespace

SimulatorLibrary load_simulator(const std::filesystem::path& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw IoError(
        fmt::format("library {}: cannot be loaded: {}", path.string(), reason ? reason : "no reason given"));
  }
  const auto version = find_function<std::int32_t()>(handle, path, "nrec_simulator_version")();
  if (version != NREC_SIMULATOR_INTERFACE_VERSION) {
    throw ConfigError(fmt::format(
        "library {}: nrec_simulator_version() = {}, this nrec calls version {}; build it with the "
        "nrec/simulator_interface.h of this nrec",
        path.string(), version, NREC_SIMULATOR_INTERFACE_VERSION));
  }
  SimulatorLibrary library;
  library.dim_theta = dimension(find_function<std::int64_t()>(handle, path, "nrec_simulator_dim_theta")(),
                                path, "nrec_simulator_dim_theta");
  library.dim_x = dimension(find_function<std::int64_t()>(handle, path, "nrec_simulator_dim_x")(), path,
                            "nrec_simulator_dim_x");
  library.simulate =
      find_function<std::int32_t(const double*, std::uint32_t, double*)>(handle, path, "nrec_simulate");
  return library;
}

}  // namespace nrec::simulation
