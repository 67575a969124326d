#include "simulation/external/command_words.h"

#include "nrec/core/error.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec::simulation {
namespace {

const std::vector<std::string> kNames = {"mass", "rate"};

std::vector<std::string> filled(std::string_view command, const BlankValues& values = {}) {
  std::vector<std::string> words;
  for (const WordTemplate& word : split_command(command, kNames))
    append_filled(words.emplace_back(), word, values);
  return words;
}

using Words = std::vector<std::string>;

TEST(CommandWords, AreCutAsAShellWould) {
  EXPECT_EQ(filled("./sim  -v\t--x 1\n"), (Words{"./sim", "-v", "--x", "1"}));
  EXPECT_EQ(filled("'a b' \"c d\" e\\ f g'h i'j"), (Words{"a b", "c d", "e f", "gh ij"}));
  EXPECT_EQ(filled("a '' \"\""), (Words{"a", "", ""}));
  EXPECT_EQ(filled(R"(a 'b\c' "d\e" "f\"g" \\ \')"), (Words{"a", "b\\c", "d\\e", "f\"g", "\\", "'"}));
  EXPECT_EQ(filled("a $HOME *.c ; | > ~ #"), (Words{"a", "$HOME", "*.c", ";", "|", ">", "~", "#"}));
}

TEST(CommandWords, PutValuesIntoPlaceholders) {
  const std::vector<double> theta = {0.1, 1e-300};
  const BlankValues values{theta, 7, 18446744073709551615u, "/s/theta.txt", "/s/x.txt"};
  EXPECT_EQ(filled("sim --mass={mass} '{rate}' {seed} {row}", values),
            (Words{"sim", "--mass=0.1", "1e-300", "7", "18446744073709551615"}));
  EXPECT_EQ(filled("sim {theta} {theta_file} {x_file:npy}", values),
            (Words{"sim", "0.1 1e-300", "/s/theta.txt", "/s/x.txt"}));
  EXPECT_EQ(filled("sim '{{\"mass\": {mass}}}' \\{x\\}", values), (Words{"sim", "{\"mass\": 0.1}", "{x}"}));
}

TEST(CommandWords, RefuseWhatIsNotFinished) {
  const auto text = [](std::string_view command) {
    return text_of<ConfigError>([&] { split_command(command, kNames); });
  };
  EXPECT_EQ(text("  "), "command: is empty; give the program and its words");
  EXPECT_EQ(text("a 'b"), "command = \"a 'b\": the quote ' is not closed");
  EXPECT_EQ(text("a \\"), "command = \"a \\\": ends with a backslash; write two for one");
  EXPECT_EQ(text("a {mass"),
            "command = \"a {mass\": the brace { at letter 3 has no partner; write {{ for a brace that is no "
            "placeholder");
  EXPECT_EQ(text("a }"),
            "command = \"a }\": the brace } at letter 3 has no partner; write }} for a brace that is no "
            "placeholder");
}

TEST(CommandWords, NameTheNearestPlaceholder) {
  EXPECT_EQ(text_of<ConfigError>([] { split_command("a {mas}", kNames); }),
            "command: unknown placeholder {mas}; is it {mass}? Known are {mass} {rate} {theta} {seed} {row} "
            "{theta_file} "
            "{theta_file:npy} {x_file} {x_file:npy}; {{ and }} stand for braces");
  EXPECT_EQ(text_of<ConfigError>([] { read_line_template("{x_file}", kNames); }),
            "line: unknown placeholder {x_file}; known are {mass} {rate} {theta} {seed} {row}; {{ and }} "
            "stand for braces");
  EXPECT_EQ(text_of<ConfigError>([] { split_command("a {mass:.3f}", kNames); }).substr(0, 55),
            "command: unknown placeholder {mass:.3f}; is it {mass}? ");
}

TEST(CommandWords, RefuseParametersThatAreCalledAsPlaceholders) {
  const std::vector<std::string> names = {"seed", "b"};
  EXPECT_EQ(text_of<ConfigError>([&] { split_command("a {seed} {b}", names); }),
            "command: {seed} is a placeholder of its own and the name of a parameter; call the parameter "
            "otherwise");
  const std::vector<std::string> theta = {"theta"};
  const double value = 2.5;
  std::string text;
  append_filled(text, split_command("{theta}", theta)[0], {std::span(&value, 1), 0, 0, "", ""});
  EXPECT_EQ(text, "2.5");
}

TEST(CommandWords, KnowWhichParametersAreLeftOut) {
  const auto left_out = [](std::string_view command) {
    return parameters_left_out(split_command(command, kNames), kNames);
  };
  EXPECT_EQ(left_out("a {rate}"), Words{"mass"});
  EXPECT_EQ(left_out("a {rate} {mass}"), Words());
  EXPECT_EQ(left_out("a {rate} {theta_file}"), Words());
  EXPECT_EQ(left_out("a {theta}"), Words());
}

TEST(LineTemplate, KeepsQuotesAndBackslashes) {
  const std::vector<double> theta = {1.0, 2.5};
  std::string text;
  append_filled(text, read_line_template("{row} \"{seed}\" \\{{ {theta} {mass}", kNames),
                {theta, 3, 4, "", ""});
  EXPECT_EQ(text, "4 \"3\" \\{ 1 2.5 1");
}

}  // namespace
}  // namespace nrec::simulation
