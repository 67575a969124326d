#include "nrec/io/toml.h"

#include <gtest/gtest.h>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

std::string config_message(const std::string& text) {
  return message_of<ConfigError>([&] { parse_toml(text, "p.toml"); });
}

std::string keys_of(const TomlValue& value) {
  std::string keys;
  for (const auto& [name, ignored] : std::get<TomlTable>(value.value)) keys += name + " ";
  return keys;
}

const char* const kProblem = R"(
[parameters]
rate = { prior = "log_normal", location = -0.125, scale = 5e-1 }
mass = { prior = "uniform", low = 1, high = inf }

[network]
norm = "batch"
deep.b = true
deep.a = [1, 2.5, "x"]

[a]
)";

TEST(Toml, KeepsTheOrderOfTheFileAndThePlaces) {
  const TomlValue root = parse_toml(kProblem, "p.toml");
  EXPECT_EQ(keys_of(root), "parameters network a ");
  const TomlValue* parameters = root.find("parameters");
  ASSERT_TRUE(parameters);
  EXPECT_EQ(keys_of(*parameters), "rate mass ");
  EXPECT_EQ(keys_of(*parameters->find("mass")), "prior low high ");
  EXPECT_EQ(parameters->find("mass")->find("low")->line, 4);
  EXPECT_EQ(parameters->find("mass")->find("low")->column, 35);
  EXPECT_EQ(keys_of(*root.find("network")), "norm deep ");
  EXPECT_EQ(keys_of(*root.find("network")->find("deep")), "b a ");
  EXPECT_EQ(root.find("nothing"), nullptr);
  EXPECT_EQ(root.find("network")->find("norm")->find("x"), nullptr);
}

TEST(Toml, GivesTypedValues) {
  const TomlValue root = parse_toml(kProblem, "p.toml");
  const TomlValue* rate = root.find("parameters")->find("rate");
  EXPECT_EQ(std::get<std::string>(rate->find("prior")->value), "log_normal");
  EXPECT_EQ(std::get<double>(rate->find("scale")->value), 0.5);
  EXPECT_EQ(std::get<std::int64_t>(root.find("parameters")->find("mass")->find("low")->value), 1);
  EXPECT_TRUE(std::get<bool>(root.find("network")->find("deep")->find("b")->value));
  const auto& list = std::get<TomlArray>(root.find("network")->find("deep")->find("a")->value);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_STREQ(list[0].kind(), "integer");
  EXPECT_STREQ(list[1].kind(), "number");
  EXPECT_STREQ(list[2].kind(), "text");
  EXPECT_STREQ(root.kind(), "table");
}

TEST(Toml, OrdersSubtablesByTheirFirstAppearance) {
  const TomlValue root = parse_toml("[z.y]\nb = 1\n[m]\n[z.a]\n[[list]]\nq = 1\nc = 2\n[[list]]\n", "p.toml");
  EXPECT_EQ(keys_of(root), "z m list ");
  EXPECT_EQ(keys_of(*root.find("z")), "y a ");
  EXPECT_EQ(keys_of(std::get<TomlArray>(root.find("list")->value).at(0)), "q c ");
  EXPECT_TRUE(std::get<TomlTable>(parse_toml("", "p.toml").value).empty());
}

TEST(Toml, SaysWhereAndWhyAFileIsRefused) {
  EXPECT_EQ(config_message("a = 1\nb = 2020-01-01\n"),
            "p.toml:2:5: dates and times have no meaning here; write a number, or a text in quotes");
  EXPECT_EQ(config_message("a = [07:32:00]\n"),
            "p.toml:1:6: dates and times have no meaning here; write a number, or a text in quotes");
  EXPECT_TRUE(config_message("a = 1\na = 2\n").starts_with("p.toml:2:")) << config_message("a = 1\na = 2\n");
  EXPECT_NE(config_message("a = 1\na = 2\n").find("redefine"), std::string::npos)
      << config_message("a = 1\na = 2\n");
  EXPECT_TRUE(config_message("[a]\n[a]\n").starts_with("p.toml:2:")) << config_message("[a]\n[a]\n");
  EXPECT_TRUE(config_message("a = \n").starts_with("p.toml:1:")) << config_message("a = \n");
  std::string deep = "\na";
  for (int i = 0; i < 1000000; ++i) deep += ".a";
  EXPECT_EQ(config_message(deep + " = 1\n"),
            "p.toml:2:1: more than 1000 dots in a row of words; shorten the key or the text");
  EXPECT_NO_THROW(parse_toml(deep.substr(0, 2000) + " = 1\n", "p.toml"));
  EXPECT_TRUE(config_message("a = " + std::string(100000, '[')).starts_with("p.toml:1:"));
}

TEST(Toml, ReadsAFileAndNamesIt) {
  const TemporaryFolder folder;
  write_file(folder / "p.toml", "a = 1,5\n");
  EXPECT_TRUE(without_path(message_of<ConfigError>([&] { read_toml(folder / "p.toml"); }), folder)
                  .starts_with("p.toml:1:6: "));
  EXPECT_EQ(without_path(message_of<IoError>([&] { read_toml(folder / "problem.toml"); }), folder),
            "problem.toml: no such file; check the name and the folder");
}

TEST(Toml, QuotesTextSoThatItReadsBack) {
  const std::string text = "a \"b\" \\ \n\t\x7f \xC3\xA9";
  EXPECT_EQ(toml_text("a\"\n"), "\"a\\\"\\u000A\"");
  EXPECT_EQ(std::get<std::string>(parse_toml("a = " + toml_text(text), "f").find("a")->value), text);
}

TEST(Toml, SurvivesEveryDamagedByte) {
  const std::string text = kProblem;
  int refusals = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int replacement : {0x00, 0x22, 0x5b, 0x7b, 0x80, 0xff}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(replacement);
      try {
        parse_toml(damaged, "f");
      } catch (const ConfigError&) {
        ++refusals;
      }
    }
  }
  EXPECT_GT(refusals, 500);
}

TEST(Toml, RefusesNamesThatATerminalWouldObey) {
  EXPECT_EQ(config_message("[parameters]\n\"a\\u001b[31mb\" = 1\n"),
            "p.toml:2:1: the name \"a\\x1b[31mb\" holds a control character; rename it");
  EXPECT_EQ(config_message("a = { \"b\\nc\" = 1 }\n"),
            "p.toml:1:7: the name \"b\\x0ac\" holds a control character; rename it");
  EXPECT_NO_THROW(parse_toml("a = \"\\n\"", "p.toml")) << "texts may have several lines";
}

}  // namespace
}  // namespace nrec
