#include "nrec/io/netcdf.h"

#include <gtest/gtest.h>

#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/hdf5.h"

namespace nrec {
namespace {

NetcdfGroup posterior() {
  return {.name = "posterior",
          .dimensions = {{"chain", 2}, {"draw", 3}, {"x_dim", 2, std::vector<std::string>{"a", "b"}}},
          .variables = {{"mass", {"chain", "draw"}, std::vector<double>{1, 2, 3, 4, 5, 6}},
                        {"diverging", {"chain"}, std::vector<bool>{false, true}},
                        {"names", {"x_dim"}, std::vector<std::string>{"\xce\xb1", ""}}},
          .attributes = {{"seed", std::vector<std::int64_t>{7}},
                         {"sample_dims", std::vector<std::string>{"chain", "draw"}},
                         {"library", std::vector<std::string>{"nrec"}}}};
}

template <class Exception>
void expect_refused(const std::vector<NetcdfGroup>& groups, const std::string& part) {
  const TemporaryFolder folder;
  const std::string text = message_of<Exception>([&] { write_netcdf(folder.path() / "a.nc", groups); });
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.nc"));
}

TEST(Netcdf, WritesGroupsThatAnHdf5ReaderSees) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.nc";
  write_netcdf(path, {posterior(),
                      {.name = "observed_data",
                       .dimensions = {{"x_dim_0", 1}},
                       .variables = {{"x", {"x_dim_0"}, std::vector<double>{2.5}}}}});
  const std::vector<std::string> wanted = {"posterior/mass", "posterior/draw", "observed_data/x"};
  const NamedArrays arrays = read_hdf5(path, wanted);
  EXPECT_EQ(arrays[0].second.shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(arrays[0].second.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(arrays[1].second.values, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(arrays[2].second.values, (std::vector<double>{2.5}));
}

TEST(Netcdf, ReplacesAFileInOnePiece) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.nc";
  write_file(path, "old");
  write_netcdf(path, {posterior()});
  EXPECT_TRUE(read_file(path).starts_with("\x89HDF"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Netcdf, RefusesWhatDoesNotFit) {
  expect_refused<ConfigError>({}, "at least one group");
  NetcdfGroup group = posterior();
  group.variables[0].values = std::vector<double>{1, 2};
  expect_refused<ShapeError>({group}, "variable mass of group posterior has 2 values, its axes ask for 6");
  group = posterior();
  group.variables[0].dimensions[1] = "time";
  expect_refused<ConfigError>({group}, "has the axis time, which the group has not");
  group = posterior();
  group.variables[0].name = "draw";
  expect_refused<ConfigError>({group}, "\"draw\" in group posterior is there twice");
  group.variables[0].name = "a/b";
  expect_refused<ConfigError>({group}, "use a_b");
  group = posterior();
  group.dimensions[2].coordinate = std::vector<double>{1};
  expect_refused<ShapeError>({group}, "variable x_dim");
}

TEST(Netcdf, AFolderThatIsNotThereIsAnIoError) {
  EXPECT_THROW(write_netcdf("/not/there/a.nc", {posterior()}), IoError);
}

TEST(NetcdfName, KeepsWhatItCanAndStaysUnique) {
  EXPECT_EQ(netcdf_name("mass", {}), "mass");
  EXPECT_EQ(netcdf_name("\xce\xb1_1", {}), "\xce\xb1_1");
  EXPECT_EQ(netcdf_name("a/b", {}), "a_b");
  EXPECT_EQ(netcdf_name("", {}), "_");
  EXPECT_EQ(netcdf_name("$x", {}), "_$x");
  EXPECT_EQ(netcdf_name("x ", {}), "x_");
  EXPECT_EQ(netcdf_name("draw", {"chain", "draw", "draw_"}), "draw__");
}

}  // namespace
}  // namespace nrec
