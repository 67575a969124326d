// Simulators in shared libraries.
#include "nrec/core/error.h"
#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

ExternalSimulatorOptions library(const std::string& file) {
  ExternalSimulatorOptions options;
  options.library = file;
  options.worker_program = NREC_STUB_WORKER;
  return options;
}

std::string refusal(const std::string& file, const std::vector<std::string>& names = {"a", "b"}) {
  ExternalSimulator simulator(library(file), names);
  Matrix<double> theta(8, names.size());
  return text_of<ConfigError>([&] { fly(simulator, theta); });
}

TEST(Library, IsRefusedWhenItDoesNotFit) {
  expect_in(refusal(NREC_STUB_LIBRARY_WITHOUT_SIMULATE),
            "the function nrec_simulate is missing; define what nrec/simulator_interface.h declares (in C++ "
            "inside extern "
            "\"C\", in Fortran with bind(c))");
  expect_in(refusal(NREC_STUB_LIBRARY_OF_VERSION_9),
            "nrec_simulator_version() = 9, this nrec calls version 1; build it with the "
            "nrec/simulator_interface.h of this "
            "nrec");
  EXPECT_EQ(refusal(NREC_STUB_LIBRARY, {"a"}),
            "library " NREC_STUB_LIBRARY ": nrec_simulator_dim_theta() = 2, but there are 1 parameters");
  const WorkFolder work;
  const std::string text = work.write("text.so", "no library");
  expect_in(refusal(text), "library " + text + ": cannot be loaded: ");
  expect_in(refusal(text), "8 x failed: exit code 3");
}

TEST(Library, NeedsAWorkerThatIsOne) {
  ExternalSimulatorOptions options = library(NREC_STUB_LIBRARY);
  options.worker_program = "/bin/echo";
  ExternalSimulator simulator(options, {"a", "b"});
  expect_in(text_of<ConfigError>([&] { fly(simulator, preflight_theta({})); }),
            "/bin/echo is no worker of this version of nrec");
}

TEST(Library, ThatLeavesXUnsetGivesNonFiniteRows) {
  ExternalSimulator simulator(library(NREC_STUB_LIBRARY_IDLE), {"a", "b"});
  simulator.set_x_shape({3});
  const RowResult result = run_rows(*simulator.make_runner(), Rows({1.5}))[0];
  EXPECT_EQ(result.status, RowStatus::non_finite);
  EXPECT_EQ(result.reason, "x[0] = nan");
}

TEST(Library, LosesOneRowByACrashAndKnowsWhich) {
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i) values.push_back(i % 900);
  values[1234] = stub::first_value(stub::segmentation_fault);
  const Rows rows(values);
  ExternalSimulator simulator(library(NREC_STUB_LIBRARY), {"a", "b"});
  simulator.set_x_shape({3});
  const std::vector<RowResult> results = run_rows(*simulator.make_runner(), rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 1234) expect_right(rows, results, i);
  }
  EXPECT_EQ(results[1234].reason, "signal 11 (SIGSEGV)");
}

}  // namespace
}  // namespace nrec
