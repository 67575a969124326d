#include "nrec/io/hdf5.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>

#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/tables.h"

namespace nrec {
namespace {

// Writes datasets straight with the library.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::filesystem::path& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Hdf5Writer() { H5Fclose(file_); }
  hid_t file() const { return file_; }
  void add(const char* name, hid_t file_type, hid_t memory_type, std::vector<hsize_t> shape, const void* data,
           hid_t creation = H5P_DEFAULT) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t dataset = H5Dcreate2(file_, name, file_type, space, links, creation, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    if (data) {
      ASSERT_GE(H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    }
    H5Dclose(dataset);
    H5Pclose(links);
    H5Sclose(space);
  }

 private:
  hid_t file_;
};

NumericArray read_one(const std::filesystem::path& path, const std::string& name) {
  const std::vector<std::string> names = {name};
  return read_hdf5(path, names).at(0).second;
}

template <class E = IoError>
std::string refusal(const TemporaryFolder& folder, const std::string& name) {
  return without_path(message_of<E>([&] { read_one(folder / "f.h5", name); }), folder);
}

constexpr double kValues[] = {1, 2.5, -3, 4, 5, 6};

TEST(Hdf5, ReadsNumbersOfEveryKindInBothByteOrders) {
  const TemporaryFolder folder;
  {
    Hdf5Writer writer(folder / "f.h5");
    writer.add("f8", H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, {2, 3}, kValues);
    writer.add("f4", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, {6}, kValues);
    writer.add("group/i2", H5T_STD_I16BE, H5T_NATIVE_DOUBLE, {2}, kValues + 2);
    const std::int64_t whole[] = {-9007199254740992, 7};
    writer.add("i8", H5T_STD_I64BE, H5T_NATIVE_INT64, {2}, whole);
    writer.add("u8", H5T_STD_U64LE, H5T_NATIVE_INT64, {1}, whole + 1);
    writer.add("one", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {}, kValues);
    writer.add("none", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {0, 3}, nullptr);
    const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    writer.add("f2", half, H5T_NATIVE_DOUBLE, {6}, kValues);
    H5Tclose(half);
    const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
    signed char flags[] = {0, 1};
    H5Tenum_insert(boolean, "FALSE", flags);
    H5Tenum_insert(boolean, "TRUE", flags + 1);
    writer.add("flag", boolean, boolean, {2}, flags);
    H5Tclose(boolean);
  }
  const NumericArray f8 = read_one(folder / "f.h5", "f8");
  EXPECT_EQ(f8.shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(f8.values, std::vector<double>(kValues, kValues + 6));
  EXPECT_EQ(f8.dtype, ">f8");
  EXPECT_EQ(read_one(folder / "f.h5", "f4").values, f8.values);
  EXPECT_EQ(read_one(folder / "f.h5", "f2").values, f8.values);
  EXPECT_EQ(read_one(folder / "f.h5", "f2").dtype, "<f2");
  EXPECT_EQ(read_one(folder / "f.h5", "group/i2").values, (std::vector<double>{-3, 4}));
  EXPECT_EQ(read_one(folder / "f.h5", "i8").values, (std::vector<double>{-9007199254740992.0, 7}));
  EXPECT_EQ(read_one(folder / "f.h5", "u8").dtype, "<u8");
  EXPECT_EQ(read_one(folder / "f.h5", "flag").values, (std::vector<double>{0, 1}));
  EXPECT_TRUE(read_one(folder / "f.h5", "one").shape.empty());
  EXPECT_TRUE(read_one(folder / "f.h5", "none").values.empty());
  EXPECT_EQ(hdf5_names(folder / "f.h5"),
            (std::vector<std::string>{"f2", "f4", "f8", "flag", "group/i2", "i8", "none", "one", "u8"}));
}

TEST(Hdf5, RefusesWhatIsNoNumberWithTheReason) {
  const TemporaryFolder folder;
  {
    Hdf5Writer writer(folder / "f.h5");
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    writer.add("text", text, text, {1}, "abc");
    H5Tclose(text);
    const hid_t compound = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(compound, "r", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(compound, "i", 8, H5T_NATIVE_DOUBLE);
    writer.add("complex", compound, compound, {1}, kValues);
    H5Tclose(compound);
    const hid_t list = H5Tvlen_create(H5T_NATIVE_DOUBLE);
    writer.add("list", list, list, {1}, nullptr);
    H5Tclose(list);
    const hid_t colours = H5Tenum_create(H5T_STD_I8LE);
    signed char red = 3;
    H5Tenum_insert(colours, "RED", &red);
    writer.add("colour", colours, colours, {1}, &red);
    H5Tclose(colours);
    writer.add("reference", H5T_STD_REF_OBJ, H5T_STD_REF_OBJ, {1}, nullptr);
    writer.add("long", H5T_NATIVE_LDOUBLE, H5T_NATIVE_DOUBLE, {1}, kValues);
    const std::int64_t large = 9007199254740993;
    writer.add("large", H5T_STD_I64LE, H5T_NATIVE_INT64, {1}, &large);
  }
  EXPECT_EQ(refusal<UnsupportedError>(folder, "text"), "f.h5: \"text\": holds text; store numbers");
  EXPECT_EQ(refusal<UnsupportedError>(folder, "complex"),
            "f.h5: \"complex\": holds compound records (or complex numbers); store its fields as separate "
            "datasets");
  EXPECT_EQ(refusal<UnsupportedError>(folder, "list"),
            "f.h5: \"list\": holds lists of variable length; store a rectangular array");
  EXPECT_EQ(refusal<UnsupportedError>(folder, "colour"),
            "f.h5: \"colour\": holds an enumeration other than false and true; store numbers");
  EXPECT_EQ(refusal<UnsupportedError>(folder, "reference"),
            "f.h5: \"reference\": holds references; store the data themselves");
  EXPECT_EQ(refusal<UnsupportedError>(folder, "long"), "f.h5: \"long\": holds long doubles; store float64");
  EXPECT_EQ(refusal<DomainError>(folder, "large"),
            "f.h5: \"large\": the whole number 9007199254740993 (element 0) is beyond 2^53 and float64 "
            "cannot hold it exactly; subtract an "
            "offset or store it as float64 yourself");
}

TEST(Hdf5, RefusesDataThatAreNotThere) {
  const TemporaryFolder folder;
  {
    Hdf5Writer writer(folder / "f.h5");
    writer.add("theta", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, kValues);
    writer.add("unwritten", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {3}, nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {16};
    H5Pset_chunk(creation, 1, chunk);
    writer.add("huge", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {hsize_t{1} << 60}, nullptr, creation);
    writer.add("large", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {1 << 20}, nullptr, creation);
    H5Pclose(creation);
    H5Lcreate_external((folder / "other.h5").c_str(), "x", writer.file(), "elsewhere", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("elsewhere", writer.file(), "indirect", H5P_DEFAULT, H5P_DEFAULT);
    Hdf5Writer other(folder / "other.h5");
    other.add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, kValues);
  }
  const std::string all =
      " (links into other files are not followed); it holds: huge, large, theta, unwritten";
  EXPECT_EQ(refusal(folder, "thetas"), "f.h5: has no dataset \"thetas\"" + all + "; did you mean \"theta\"?");
  EXPECT_EQ(refusal(folder, "elsewhere"), "f.h5: has no dataset \"elsewhere\"" + all);
  EXPECT_EQ(refusal(folder, "indirect"), "f.h5: has no dataset \"indirect\"" + all);
  EXPECT_EQ(refusal(folder, ""), "f.h5: has no dataset \"\"" + all);
  EXPECT_EQ(refusal(folder, "unwritten"),
            "f.h5: \"unwritten\": was created but never written; write the data");
  EXPECT_EQ(refusal(folder, "huge"),
            "f.h5: \"huge\": shape (1152921504606846976,) needs more than the 17179869184 bytes allowed; "
            "split the file");
  EXPECT_EQ(refusal(folder, "large"), "f.h5: \"large\": was created but never written; write the data");
}

TEST(Hdf5, RefusesOtherFilesWithoutAWordOfTheLibrary) {
  const TemporaryFolder folder;
  write_file(folder / "f.h5", "no hdf5");
  testing::internal::CaptureStderr();
  const std::string text = refusal(folder, "x");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(text.starts_with("f.h5: cannot be opened as HDF5: ")) << text;
  EXPECT_TRUE(text.ends_with("; it is truncated or of another format, write it again")) << text;
  EXPECT_EQ(without_path(message_of<IoError>([&] { read_one(folder / "g.h5", "x"); }), folder),
            "g.h5: no such file; did you mean \"f.h5\"?");
}

TEST(Hdf5, TellsALinkThatCannotBeFollowedFromNothing) {
  const TemporaryFolder folder;
  const double value = 1;
  {
    Hdf5Writer writer(folder / "f.h5");
    writer.add("a", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {1}, &value);
    writer.add("group/b", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {1}, &value);
    H5Lcreate_external("elsewhere.h5", "a", writer.file(), "outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", writer.file(), "dangling", H5P_DEFAULT, H5P_DEFAULT);
  }
  for (const char* name : {"a", "group", "outside", "dangling"})
    EXPECT_TRUE(hdf5_has(folder / "f.h5", name)) << name;
  EXPECT_FALSE(hdf5_has(folder / "f.h5", "b"));
}

TEST(Pairs, OfHdf5WithAStatusThatCannotBeReadAreRefused) {
  const TemporaryFolder folder;
  const double values[] = {1, 2};
  {
    Hdf5Writer writer(folder / "f.h5");
    writer.add("theta", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, values);
    writer.add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, values);
    H5Lcreate_external("elsewhere.h5", "a", writer.file(), "status", H5P_DEFAULT, H5P_DEFAULT);
  }
  {
    Hdf5Writer writer(folder / "b.h5");
    const hid_t boolean = H5Tenum_create(H5T_NATIVE_INT8);
    const std::int8_t no = 0, yes = 1, both[] = {1, 0};
    H5Tenum_insert(boolean, "FALSE", &no);
    H5Tenum_insert(boolean, "TRUE", &yes);
    writer.add("theta", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, values);
    writer.add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, values);
    writer.add("status", boolean, boolean, {2}, both);
    H5Tclose(boolean);
  }
  const auto message = [&](const char* name) {
    const std::filesystem::path file[] = {folder / name};
    return message_of<Error>([&] { read_pairs(file); });
  };
  EXPECT_NE(message("f.h5").find("has no dataset \"status\" (links into other files"), std::string::npos);
  EXPECT_NE(message("b.h5").find("b.h5: \"status\" holds true and false, which do not say"),
            std::string::npos);
}

TEST(Hdf5, RefusesATruncatedFile) {
  const TemporaryFolder folder;
  { Hdf5Writer(folder / "f.h5").add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {6}, kValues); }
  const std::string bytes = read_file(folder / "f.h5");
  write_file(folder / "f.h5", bytes.substr(0, bytes.size() - 20));
  EXPECT_TRUE(refusal(folder, "x").starts_with("f.h5: cannot be opened as HDF5: truncated file"))
      << refusal(folder, "x");
}

TEST(Hdf5, RefusesNamesThatATerminalWouldObey) {
  const TemporaryFolder folder;
  const double value = 1;
  Hdf5Writer(folder / "f.h5").add("a\x1b[2Jb", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {1}, &value);
  EXPECT_EQ(
      without_path(message_of<IoError>([&] { hdf5_names(folder / "f.h5"); }), folder),
      "f.h5: holds a dataset named \"a\\x1b[2Jb\", which holds a control character; write it again under "
      "another name");
}

}  // namespace
}  // namespace nrec
