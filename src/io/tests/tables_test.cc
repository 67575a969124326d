#include "nrec/io/tables.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/csv.h"
#include "nrec/io/file.h"
#include "nrec/io/npy.h"
#include "nrec/io/npz.h"

namespace nrec {
namespace {

using Names = std::vector<std::string>;
using Files = std::vector<std::filesystem::path>;

const Matrix<double> kTheta(2, 2, {1, 2, 3, 4});
const Matrix<double> kX(2, 1, {5, 6});

std::string refusal_of(const TemporaryFolder& folder, const std::function<void()>& action) {
  return without_path(message_of<Error>(action), folder);
}

// An HDF5 file with arrays theta [2, 2] and x [2].
void write_hdf5_pairs(const std::filesystem::path& path) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t shape[] = {2, 2};
  for (const auto& [name, dimensions, data] :
       {std::tuple("theta", 2, kTheta.data()), std::tuple("x", 1, kX.data())}) {
    const hid_t space = H5Screate_simple(dimensions, shape, nullptr);
    const hid_t dataset =
        H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    H5Dclose(dataset);
    H5Sclose(space);
  }
  H5Fclose(file);
}

TEST(Samples, AreReadFromEveryFormat) {
  const TemporaryFolder folder;
  write_csv(folder / "s.csv", Names{"a", "b"}, kTheta);
  write_npy(folder / "s.npy", kTheta);
  write_npy(folder / "list.npy", NumericArray{{3}, {1, 2, 3}});
  write_npz(folder / "one.npz", {{"anything", to_array(kTheta)}});
  write_npz(folder / "two.npz", {{"theta", to_array(kX)}, {"samples", to_array(kTheta)}});
  write_hdf5_pairs(folder / "s.h5");
  EXPECT_EQ(read_samples(folder / "s.csv").names, (Names{"a", "b"}));
  EXPECT_EQ(read_samples(folder / "s.csv").values, kTheta);
  EXPECT_EQ(read_samples(folder / "s.npy").values, kTheta);
  EXPECT_FALSE(read_samples(folder / "s.npy").one_dimensional);
  EXPECT_TRUE(read_samples(folder / "list.npy").one_dimensional);
  EXPECT_EQ(read_samples(folder / "list.npy").values, Matrix<double>(3, 1, {1, 2, 3}));
  EXPECT_EQ(read_samples(folder / "one.npz").array, "anything");
  EXPECT_EQ(read_samples(folder / "two.npz", Names{"x_o", "samples", "theta"}).values, kTheta);
  EXPECT_EQ(read_samples(folder / "s.h5", Names{"theta"}).values, kTheta);
  // The content decides: an archive with a wrong extension is still an archive.
  std::filesystem::copy(folder / "one.npz", folder / "one.csv");
  EXPECT_EQ(read_samples(folder / "one.csv").values, kTheta);
}

TEST(NamedArrays, ComeFromArchivesOnly) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", {{"x", to_array(kX)}, {"theta", to_array(kTheta)}});
  write_hdf5_pairs(folder / "s.h5");
  write_npy(folder / "s.npy", kX);
  const Names names = {"theta"};
  EXPECT_EQ(read_named(folder / "s.npz", names).at(0).second.values, kTheta.values());
  EXPECT_EQ(read_named(folder / "s.h5", names).at(0).second.values, kTheta.values());
  EXPECT_EQ(refusal_of(folder, [&] { read_named(folder / "s.npy", names); }),
            "s.npy: has no named arrays (theta); give a .npz or .h5 file");
}

TEST(Samples, RefuseWhatIsAmbiguousOrEmpty) {
  const TemporaryFolder folder;
  write_npz(folder / "two.npz", {{"a", to_array(kX)}, {"b", to_array(kTheta)}});
  EXPECT_EQ(refusal_of(folder,
                       [&] {
                         read_samples(folder / "two.npz", Names{"theta", "x_o"});
                       }),
            "two.npz: holds several arrays (a, b) and none is called theta or x_o; store the samples alone "
            "or under that name");
  write_file(folder / "t.csv", "a,b\n");
  EXPECT_EQ(refusal_of(folder, [&] { read_samples(folder / "t.csv"); }),
            "t.csv: has 0 rows and 2 columns of numbers; at least one of each is needed");
  write_file(folder / "t.npy", "1,2\n");
  EXPECT_EQ(refusal_of(folder, [&] { read_samples(folder / "t.npy"); }),
            "t.npy: is not a .npy file (its first bytes differ); write it with numpy.save");
}

TEST(Pairs, AreReadFromArchivesAndTwoFiles) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", {{"x", to_array(kX)}, {"theta", to_array(kTheta)}});
  write_hdf5_pairs(folder / "s.h5");
  write_npy(folder / "my_theta.npy", kTheta);
  write_npy(folder / "my_data.npy", kX);
  for (const Files& files : {Files{folder / "s.npz"}, Files{folder / "s.h5"},
                             Files{folder / "my_theta.npy", folder / "my_data.npy"},
                             Files{folder / "my_data.npy", folder / "my_theta.npy"}}) {
    const PairTable pairs = read_pairs(files);
    EXPECT_EQ(pairs.theta, kTheta) << files[0];
    EXPECT_EQ(pairs.x, kX) << files[0];
  }
}

TEST(Pairs, AreToldApartByColumnNames) {
  const TemporaryFolder folder;
  write_csv(folder / "s.csv", Names{"x_1", "theta_2", "theta_1"}, Matrix<double>(1, 3, {1, 2, 3}));
  const PairTable pairs = read_pairs(Files{folder / "s.csv"});
  EXPECT_EQ(pairs.theta_names, (Names{"theta_2", "theta_1"}));
  EXPECT_EQ(pairs.theta, Matrix<double>(1, 2, {2, 3}));
  EXPECT_EQ(pairs.x, Matrix<double>(1, 1, {1}));
  write_csv(folder / "s.csv", Names{"mass", "y", "rate"}, Matrix<double>(1, 3, {1, 2, 3}));
  const PairTable named = read_pairs(Files{folder / "s.csv"}, Names{"rate", "mass"});
  EXPECT_EQ(named.theta, Matrix<double>(1, 2, {3, 1}));
  EXPECT_EQ(named.x_names, (Names{"y"}));
}

TEST(Pairs, RefuseWhatDoesNotFit) {
  const TemporaryFolder folder;
  const Files csv = {folder / "s.csv"};
  write_csv(csv[0], Names{"mass", "y"}, Matrix<double>(1, 2, {1, 2}));
  EXPECT_EQ(refusal_of(folder, [&] { read_pairs(csv); }),
            "s.csv: column \"mass\" is neither a parameter nor data; call it theta_... or x_..., or name the "
            "parameters");
  EXPECT_EQ(refusal_of(folder, [&] { read_pairs(csv, Names{"mas"}); }),
            "s.csv: has no column \"mas\" for that parameter; it holds: mass, y; did you mean \"mass\"?");
  EXPECT_EQ(refusal_of(folder,
                       [&] {
                         read_pairs(csv, Names{"mass", "y"});
                       }),
            "s.csv: x: has 1 rows and 0 columns of numbers; at least one of each is needed");
  write_file(csv[0], "1,2\n");
  EXPECT_EQ(refusal_of(folder, [&] { read_pairs(csv); }),
            "s.csv: has no header line, so parameters and data cannot be told apart; name the columns, or "
            "give two files theta.csv and x.csv");
  write_npy(folder / "t.npy", kTheta);
  EXPECT_EQ(refusal_of(folder, [&] { read_pairs(Files{folder / "t.npy"}); }),
            "t.npy: holds one array where theta and x are needed; give two files, theta.npy and x.npy");
  write_npy(folder / "x.npy", Matrix<double>(3, 1, {1, 2, 3}));
  EXPECT_EQ(
      refusal_of(folder,
                 [&] {
                   read_pairs(Files{folder / "t.npy", folder / "x.npy"});
                 }),
      "t.npy and x.npy: theta has 2 rows but x has 3; row i of both must belong to the same simulation");
  EXPECT_EQ(message_of<ConfigError>([] { read_pairs({}); }),
            "files: 0 names where one file with theta and x, or two files (theta, x) are needed");
}

TEST(Pairs, HaveTheStatusOfTheirRowsWhereAFileHasOne) {
  const TemporaryFolder folder;
  const Files file = {folder / "s.npz"};
  const auto write = [&](NumericArray status) {
    write_npz(file[0], {{"theta", to_array(kTheta)}, {"x", to_array(kX)}, {"status", std::move(status)}});
  };
  write({{2}, {0, 3}});
  EXPECT_EQ(read_pairs(file).status, (std::vector<double>{0, 3}));
  write({{2, 1}, {2, 0}});
  EXPECT_EQ(read_pairs(file).status, (std::vector<double>{2, 0}));
  write({{3}, {0, 0, 0}});
  EXPECT_NE(message_of<ShapeError>([&] {
              read_pairs(file);
            }).find("s.npz: \"status\" has the shape (3,) but theta has 2 rows"),
            std::string::npos);
  write_npz(file[0], {{"theta", to_array(kTheta)}, {"x", to_array(kX)}});
  EXPECT_TRUE(read_pairs(file).status.empty());
}

}  // namespace
}  // namespace nrec
