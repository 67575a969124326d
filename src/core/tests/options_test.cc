#include "nrec/core/options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"

namespace nrec {
namespace {

struct Options {
  int num_classes = 99;
  double gamma = 1.0;
  std::string norm = "batch";
  bool early = true;
  std::vector<std::string> files;
};

OptionTable table_of(Options& options) {
  OptionTable table;
  table.add("training", "num_classes", &options.num_classes, {.low = 1}, "K").aliases = {"K"};
  table.add("training", "gamma", &options.gamma, {.low = 0, .low_open = true}, "odds");
  table.add("network", "norm", &options.norm, {"batch", "layer", "none"}, "normalisation");
  table.add("training", "early", &options.early, "stop early");
  table.add("simulations", "files", &options.files, "files");
  return table;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OptionTable, StoresTypedValuesAndAliases) {
  Options options;
  const OptionTable table = table_of(options);
  table.set("training", "K", std::int64_t{9}, "f");
  table.set("training", "gamma", std::int64_t{2}, "f");
  table.set_from_text("training", "num-classes", "1e2", "--num-classes");
  table.set_from_text("training", "early", "no", "--early");
  table.set_from_text("simulations", "files", "a.npz,b.npz", "--files");
  EXPECT_EQ(options.num_classes, 100);
  EXPECT_EQ(options.gamma, 2.0);
  EXPECT_FALSE(options.early);
  EXPECT_EQ(options.files, (std::vector<std::string>{"a.npz", "b.npz"}));
  table.set_from_text("training", "gamma", "inf", "--gamma");
  EXPECT_TRUE(std::isinf(options.gamma));
}

TEST(OptionTable, MessagesNameTheRuleAndTheNearestWord) {
  Options options;
  const OptionTable table = table_of(options);
  EXPECT_EQ(message_of([&] { table.set("training", "gama", 1.0, "p.toml: [training]"); }),
            "p.toml: [training]: unknown key \"gama\"; did you mean \"gamma\"?");
  EXPECT_EQ(message_of([&] { table.set_from_text("training", "gamma", "nan", "--gamma"); }),
            "--gamma: gamma = nan must be a number > 0");
  EXPECT_EQ(message_of([&] { table.set("training", "gamma", 0.0, "f"); }),
            "f: gamma = 0 must be a number > 0");
  EXPECT_EQ(message_of([&] { table.set("training", "gamma", -1.0, "f"); }),
            "f: gamma = -1 must be a number > 0");
  EXPECT_EQ(message_of([&] { table.set("training", "K", 1.5, "f"); }),
            "f: num_classes = 1.5 must be an integer in [1, 2147483647]");
  EXPECT_EQ(message_of([&] { table.set("network", "norm", std::string("bach"), "f"); }),
            "f: norm = \"bach\" must be one of batch | layer | none; did you mean \"batch\"?");
  EXPECT_EQ(message_of([&] { table.set("training", "early", std::int64_t{1}, "f"); }),
            "f: early = 1 must be true or false");
}

TEST(OptionTable, KnowsDefaults) {
  Options options;
  const OptionTable table = table_of(options);
  EXPECT_EQ(table.find("training", "gamma")->default_text, "1");
  EXPECT_EQ(table.find("network", "norm")->default_text, "\"batch\"");
  EXPECT_EQ(table.find("network", "nothing"), nullptr);
}

TEST(OptionTable, AListThatNamesNothingIsRefused) {
  Options options;
  options.files = {"a.npz"};
  const OptionTable table = table_of(options);
  for (const char* text : {"", ",", ",,"}) {
    EXPECT_EQ(message_of([&] { table.set_from_text("simulations", "files", text, "--files"); }),
              "--files: \"" + std::string(text) +
                  "\" names nothing; give one or several, with commas between them, or leave it out");
  }
  EXPECT_EQ(options.files, std::vector<std::string>{"a.npz"});
}

TEST(OptionTable, ValuesAreShownWithoutControlCharacters) {
  Options options;
  EXPECT_EQ(message_of([&] { table_of(options).set("network", "norm", std::string("\x1b[1m"), "f"); }),
            "f: norm = \"\\x1b[1m\" must be one of batch | layer | none");
}

}  // namespace
}  // namespace nrec
