#include "nrec/io/npz.h"

#include <gtest/gtest.h>
#include <zip.h>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/npy.h"

namespace nrec {
namespace {

const NamedArrays kArrays = {{"theta", {{2, 2}, {1, 2, 3, 4}, "<f8"}}, {"x", {{2}, {0.5, -0.5}, "<f4"}}};

std::string io_message(const TemporaryFolder& folder, const std::function<void()>& action) {
  return without_path(message_of<IoError>(action), folder);
}

// An archive with arbitrary entry names and contents, by the library directly.
void write_archive(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, std::string>>& entries) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, content] : entries) {
    zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
    ASSERT_GE(zip_file_add(archive, name.c_str(), source, 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

TEST(Npz, GivesBackWhatWasWrittenInOrder) {
  const TemporaryFolder folder;
  for (const bool compressed : {true, false}) {
    write_npz(folder / "s.npz", kArrays, compressed);
    const NamedArrays arrays = read_npz(folder / "s.npz");
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_EQ(arrays[0].first, "theta");
    EXPECT_EQ(arrays[0].second.values, kArrays[0].second.values);
    EXPECT_EQ(arrays[1].second.shape, (std::vector<std::size_t>{2}));
    EXPECT_EQ(arrays[1].second.dtype, "<f4");
  }
  const std::vector<std::string> names = {"x"};
  EXPECT_EQ(read_npz(folder / "s.npz", names).at(0).second.values, (std::vector<double>{0.5, -0.5}));
  EXPECT_EQ(npz_names(folder / "s.npz"), (std::vector<std::string>{"theta", "x"}));
}

TEST(Npz, EqualInputGivesEqualBytes) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", kArrays);
  write_npz(folder / "b.npz", kArrays);
  EXPECT_EQ(read_file(folder / "a.npz"), read_file(folder / "b.npz"));
  // The stamp of the first local header: midnight, 1 January 1980.
  EXPECT_EQ(read_file(folder / "a.npz").substr(10, 4), std::string("\x00\x00\x21\x00", 4));
}

TEST(Npz, NamesWhatIsThereWhenANameIsMissing) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", kArrays);
  const std::vector<std::string> names = {"thetas"};
  EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "s.npz", names); }),
            "s.npz: has no array \"thetas\"; it holds: theta, x; did you mean \"theta\"?");
  EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "t.npz"); }),
            "t.npz: no such file; did you mean \"s.npz\"?");
}

TEST(Npz, RefusesUnsafeRepeatedAndTooManyEntries) {
  const TemporaryFolder folder;
  const std::string array = npy_bytes({{1}, {1}});
  for (const std::string name : {"../x.npy", "/x.npy", "a/../../x.npy", "C:/x.npy", "a\\x.npy"}) {
    write_archive(folder / "s.npz", {{name, array}});
    EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "s.npz"); }),
              "s.npz: the archive has an entry with the unsafe name \"" + name +
                  "\"; write it again with numpy.savez");
  }
  write_archive(folder / "s.npz", {{"x.npy", array}, {"x", array}});
  EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "s.npz"); }),
            "s.npz: the name \"x\" appears twice in the archive; write it again");
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 1001; ++i) many.emplace_back(std::to_string(i), "");
  write_archive(folder / "s.npz", many);
  EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "s.npz"); }),
            "s.npz: has 1001 entries, more than the 1000 allowed; store few large arrays");
}

TEST(Npz, CapsTheInflatedSize) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", {{"zeros", {{1000}, std::vector<double>(1000)}}});
  EXPECT_LT(read_file(folder / "s.npz").size(), 1000u);
  EXPECT_EQ(io_message(folder, [&] { read_npz(folder / "s.npz", {.max_bytes = 8000}); }),
            "s.npz: its arrays inflate to more than the 8000 bytes allowed (at \"zeros\"); split the file");
  EXPECT_EQ(read_npz(folder / "s.npz", {.max_bytes = 8128}).size(), 1u);
}

TEST(Npz, RefusesAClaimThatItsStoredBytesCannotMeet) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", {{"x", {{1}, {1}}}});
  std::string bytes = read_file(folder / "s.npz");
  const std::size_t directory = bytes.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  bytes.replace(directory + 24, 4, "\xff\xff\xff\x7f", 4);  // the inflated size in the central directory
  write_file(folder / "s.npz", bytes);
  const std::string text = io_message(folder, [&] { read_npz(folder / "s.npz"); });
  EXPECT_TRUE(text.starts_with("s.npz: \"x\" claims 2147483647 bytes from ")) << text;
}

TEST(Npz, RefusesTruncatedAndDamagedArchives) {
  const TemporaryFolder folder;
  write_npz(folder / "s.npz", kArrays, false);
  const std::string bytes = read_file(folder / "s.npz");
  write_file(folder / "t.npz", bytes.substr(0, bytes.size() / 2));
  const std::string text = io_message(folder, [&] { read_npz(folder / "t.npz"); });
  EXPECT_TRUE(text.starts_with("t.npz: is not a complete .npz archive: ")) << text;
  EXPECT_TRUE(text.ends_with("; it is truncated or of another format, write it again with numpy.savez"))
      << text;
  std::string flipped = bytes;
  flipped[30 + 9 + 130] ^= 1;  // a data byte of the first entry
  write_file(folder / "t.npz", flipped);
  const std::string damage = io_message(folder, [&] { read_npz(folder / "t.npz"); });
  EXPECT_TRUE(damage.starts_with("t.npz: \"theta\": this entry of the archive is damaged: CRC error"))
      << damage;
}

TEST(Npz, SurvivesEveryDamagedByte) {
  const TemporaryFolder folder;
  for (const bool compressed : {true, false}) {
    write_npz(folder / "s.npz", kArrays, compressed);
    const std::string bytes = read_file(folder / "s.npz");
    EXPECT_GT(count_refusals(bytes, bytes.size(),
                             [&](const std::string& damaged) {
                               // Not write_file, and no truncation: thousands of syncs to disk would take
                               // minutes.
                               std::filesystem::remove(folder / "d.npz");
                               FILE* file = std::fopen((folder / "d.npz").c_str(), "wb");
                               std::fwrite(damaged.data(), 1, damaged.size(), file);
                               std::fclose(file);
                               read_npz(folder / "d.npz");
                             }),
              static_cast<int>(bytes.size()));
  }
}

TEST(Npz, RefusesNamesThatDoNotFitAnArchive) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<ConfigError>([&] {
              write_npz(folder / "s.npz", {{"a/b", {{1}, {1}}}});
            }),
            "write_npz: \"a/b\" cannot be the name of an array; use letters, digits and underscores");
  EXPECT_EQ(message_of<ConfigError>([&] {
              write_npz(folder / "s.npz", {{"a", {{1}, {1}}}, {"a", {{1}, {1}}}});
            }),
            "write_npz: the name \"a\" is used twice; rename one");
  EXPECT_EQ(message_of<ConfigError>([&] { write_npz(folder / "s.npz", {}); }),
            "write_npz: no arrays to write; an archive holds at least one");
  EXPECT_FALSE(std::filesystem::exists(folder / "s.npz"));
}

TEST(Npz, RefusesNamesThatATerminalWouldObey) {
  const TemporaryFolder folder;
  write_archive(folder / "s.npz", {{"a\nb.npy", "x"}});
  const auto names = [&] { npz_names(folder / "s.npz"); };
  EXPECT_EQ(
      io_message(folder, names),
      "s.npz: the archive has an entry named \"a\\x0ab.npy\", which holds a control character; write it "
      "again under another name");
  EXPECT_EQ(message_of<ConfigError>([&] {
              write_npz(folder / "t.npz", {{"a\nb", {{1}, {1}}}});
            }),
            "write_npz: the name \"a\\x0ab\" holds a control character; rename the array");
}

}  // namespace
}  // namespace nrec
