#include "nrec/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

std::string io_message(const TemporaryFolder& folder, const std::function<void()>& action) {
  return without_path(message_of<IoError>(action), folder);
}

std::size_t num_files(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

TEST(File, ReplacesContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old and longer");
  fs::permissions(folder / "a.txt", fs::perms::owner_read | fs::perms::owner_write);
  write_file(folder / "a.txt", std::string("new\0", 4));
  EXPECT_EQ(read_file(folder / "a.txt"), std::string("new\0", 4));
  EXPECT_EQ(fs::status(folder / "a.txt").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(File, KeepsTheOldContentWhenTheWriterFails) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "old");
  EXPECT_THROW(replace_file(folder / "a.txt", [](const fs::path&) { throw DomainError("no"); }), DomainError);
  EXPECT_EQ(read_file(folder / "a.txt"), "old");
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(File, WritesThroughASymbolicLink) {
  const TemporaryFolder folder;
  write_file(folder / "target.txt", "old");
  fs::create_symlink("target.txt", folder / "link.txt");
  write_file(folder / "link.txt", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link.txt"));
  EXPECT_EQ(read_file(folder / "target.txt"), "new");
}

TEST(File, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  write_file(folder / "sims.npz", "123");
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "sim.npz"); }),
            "sim.npz: no such file; did you mean \"sims.npz\"?");
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "quite_other.csv"); }),
            "quite_other.csv: no such file; check the name and the folder");
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "none/a"); }),
            "none/a: no such file; there is no folder none");
  fs::create_symlink("gone.npz", folder / "link.npz");
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "link.npz"); }),
            "link.npz: is a link to gone.npz, which is not there");
  EXPECT_EQ(message_of<IoError>([] { read_file(""); }), "the name of a file is empty; name the file");
  EXPECT_EQ(message_of<IoError>([&] { read_file(folder.path()); }),
            folder.path().string() + ": is a folder; give a file in it");
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "sims.npz", 2); }),
            "sims.npz: has 3 bytes, more than the 2 allowed here; is it the right file?");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "pipe"); }),
            "pipe: is not a regular file; write the data to a file first");
}

TEST(File, SaysWhyAFileCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(io_message(folder, [&] { write_file(folder / "none/a", ""); }),
            "none/a: cannot be written: No such file or directory; create its folder first");
  EXPECT_EQ(message_of<IoError>([&] { write_file(folder.path(), ""); }),
            folder.path().string() + ": is a folder; give the name of a file");
  EXPECT_EQ(message_of<IoError>([&] { write_file("/dev/null", ""); }),
            "/dev/null: is not a regular file and cannot be replaced; give the name of a file");
  EXPECT_EQ(message_of<IoError>([&] { write_file("", ""); }), "\"\": is not the name of a file");
}

TEST(File, SaysThatPermissionIsMissing) {
  if (::geteuid() == 0) GTEST_SKIP() << "the administrator may read and write everything";
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "1");
  fs::permissions(folder / "a.txt", fs::perms::none);
  EXPECT_EQ(io_message(folder, [&] { read_file(folder / "a.txt"); }),
            "a.txt: cannot be read: Permission denied; allow reading it (chmod u+r) or copy it");
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(
      io_message(folder, [&] { write_file(folder / "b.txt", "1"); }),
      "b.txt: cannot be written: Permission denied; choose another folder or allow writing (chmod u+w)");
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(File, HashesAreTheKnownOnes) {
  // Test vectors of the FNV authors.
  EXPECT_EQ(content_hash(""), "fnv1a64:cbf29ce484222325");
  EXPECT_EQ(content_hash("a"), "fnv1a64:af63dc4c8601ec8c");
  EXPECT_EQ(content_hash("foobar"), "fnv1a64:85944171f73967e8");
  const TemporaryFolder folder;
  const std::string large(3 << 20, 'x');
  write_file(folder / "a", large);
  EXPECT_EQ(file_hash(folder / "a"), content_hash(large));
}

}  // namespace
}  // namespace nrec
