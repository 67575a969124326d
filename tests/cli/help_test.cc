// One table of options feeds the file, the flags, the help and the documentation.
#include <fstream>
#include <sstream>

#include "nrec/commands/problem.h"
#include "program.h"

namespace nrec::cli {
namespace {

class Help : public ProgramTest {};

TEST_F(Help, EveryVerbHasOneAndVersionIsShort) {
  const Outcome all = run({"--help"});
  EXPECT_EQ(all.code, 0);
  for (const char* verb : {"infer", "train", "sample", "check", "compare", "info"}) {
    expect_in(all.out, std::string("nrec ") + verb);
    const Outcome one = run({verb, "--help"});
    EXPECT_EQ(one.code, 0) << verb;
    EXPECT_EQ(one.err, "");
    expect_in(one.out, std::string("nrec ") + verb);
    EXPECT_EQ(run({"help", verb}).out, one.out);
  }
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.substr(0, 5), "nrec ");
}

TEST_F(Help, NamesEveryOptionOfTheProblemFile) {
  const std::string help = run({"infer", "--help"}).out;
  Problem problem;
  OptionTable table;
  describe(table, problem);
  for (const OptionEntry& entry : table.entries()) {
    std::string flag = "--" + entry.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    expect_in(help, flag);
  }
}

TEST_F(Help, TheDocumentationNamesEveryOptionWithItsDefaultAndItsChoices) {
  std::ifstream file(NREC_SOURCE_DIR "/docs/howto/infer.md");
  std::ostringstream text;
  text << file.rdbuf();
  Problem problem;
  OptionTable table;
  describe(table, problem);
  for (const OptionEntry& entry : table.entries()) {
    const bool has_default = entry.default_text != "\"\"" && entry.default_text != "[]";
    const std::string start = "| `" + entry.name + "` | " +
                              (has_default ? "`" + entry.default_text + "`" : std::string("-")) + " |";
    expect_in(text.str(), start);
    const std::size_t at = text.str().find(start);
    if (at == std::string::npos) continue;
    const std::string line = text.str().substr(at, text.str().find('\n', at) - at);
    for (const std::string& choice : entry.choices) {
      if (entry.name != "isa") expect_in(line, choice);  // depends on the build
    }
  }
}

}  // namespace
}  // namespace nrec::cli
