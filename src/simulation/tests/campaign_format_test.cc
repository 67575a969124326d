#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "nrec/io/file.h"
#include "simulation/tests/campaign_examples.h"

namespace nrec::simulation {
namespace {

// The lines of docs/formats/campaign.md that are indented by four blanks, without them.
std::string program_in_the_document() {
  std::istringstream document(read_file(std::string(NREC_SOURCE_DIR) + "/docs/formats/campaign.md"));
  std::string program;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("    ") || (line.empty() && !program.empty()))
      program += line.substr(line.empty() ? 0 : 4) + "\n";
  }
  return program;
}

TEST(CampaignFormat, IsReadByThePythonProgramInItsDocument) {
  if (std::system("python3 -c 'import sqlite3' 2>/dev/null") != 0)
    GTEST_SKIP() << "there is no python3 with sqlite3";
  const TemporaryFolder folder;
  for (std::uint64_t shard = 0; shard < 2; ++shard) make_shard(folder / "campaign", {shard, 2}, 14);
  std::ofstream(folder / "read.py") << program_in_the_document();
  const std::string command = "cd '" + folder.path().string() + "' && python3 read.py > out.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(folder / "out.txt"),
            "['mass', 'rate'] 12 rows, the first: [0.0, -0.0] [0.0, 0.0, 1.0]\n");
}

}  // namespace
}  // namespace nrec::simulation
