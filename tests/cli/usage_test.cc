// What the program says to wrong words: on the command line (2) and in the problem file (3).
#include "nrec/io/csv.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

class Usage : public ToyTest {};

TEST_F(Usage, UnknownVerbsAndFlagsNameTheNearest) {
  const Outcome verb = run({"infr", "p.toml"});
  EXPECT_EQ(verb.code, 2);
  expect_in(verb.err, "unknown verb \"infr\"; did you mean \"infer\"?");
  write("p.toml", whole_);
  const Outcome flag = run({"infer", "p.toml", "--num-clases", "9"});
  EXPECT_EQ(flag.code, 2);
  expect_in(flag.err, "unknown flag --num-clases; did you mean --num-classes?");
  const std::pair<const char*, const char*> familiar[] = {
      {"--num-sims", "--num-simulations"}, {"--epochs", "--max-num-epochs"}, {"--lr", "--learning-rate"}};
  for (const auto& [name, ours] : familiar)
    expect_in(run({"train", "p.toml", name, "3"}).err, std::string("did you mean ") + ours + "?");
  const Outcome without_value = run({"infer", "p.toml", "--seed"});
  EXPECT_EQ(without_value.code, 2);
  expect_in(without_value.err, "--seed: its value is missing");
  const Outcome empty = run({"info", "--json=", "p.toml"});
  EXPECT_EQ(empty.code, 2);
  expect_in(empty.err, "--json= has no value behind its =; leave the = out");
  EXPECT_EQ(run({"infer", "p.toml", "-x"}).code, 2);
  EXPECT_EQ(run({"--seed", "1"}).code, 2);
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(flag.out, "");
  EXPECT_FALSE(exists("p_run"));
}

TEST_F(Usage, FlagsAreCheckedLikeTheFile) {
  write("p.toml", whole_);
  const auto refuse = [&](const Words& more, const std::string& text) {
    Words words = {"infer", "p.toml"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    expect_in(outcome.err, text);
  };
  refuse({"--gamma", "0"}, "--gamma: gamma = 0 must be a number > 0");
  refuse({"--gamma", "-1"}, "--gamma: gamma = -1 must be a number > 0");
  refuse({"--gamma=nan"}, "--gamma: gamma = nan must be a number > 0");
  refuse({"--gamma", "1,5"}, "--gamma: gamma = \"1,5\" must be a number > 0");
  refuse({"--gamma", "1", "--gamma", "2"}, "--gamma is given twice; keep one");
  refuse({"--gamma"}, "--gamma");
  refuse({"--norm", "bach"}, "did you mean \"batch\"?");
  refuse({"--isa", "neon"}, "--isa: isa = \"neon\" must be one of auto");
  refuse({"--row", "x"}, "--row: row = \"x\" must be an integer");
  refuse({"--gamma", "0", "--K", "0"}, "--num-classes: num_classes = 0 must be an integer");
  refuse({"two.toml"}, "\"two.toml\" is one argument too many");
  refuse({"--strict", "--check", "none"}, "--strict asks for a verdict");
  refuse({"--overwrite", "--resume"}, "--overwrite and --resume contradict each other");
}

TEST_F(Usage, DashesUnderscoresSectionsAndAliasesAreEqual) {
  write("p.toml", whole_);
  std::vector<std::string> estimators;
  for (const char* flag : {"--num-classes", "--num_classes", "--training.num_classes", "--K"}) {
    ASSERT_EQ(run({"train", "p.toml", flag, "5", "--overwrite", "--quiet"}).code, 0) << flag;
    estimators.push_back(content("p_run/estimator.safetensors"));
    EXPECT_EQ(estimators.back(), estimators.front()) << flag;
  }
  ASSERT_EQ(run({"train", "p.toml", "--overwrite", "--quiet"}).code, 0);
  EXPECT_NE(content("p_run/estimator.safetensors"), estimators.front());
}

TEST_F(Usage, AllErrorsOfAFileAreReportedAtOnceWithTheirLines) {
  const Outcome outcome = infer(
      "[parameters]\n"
      "mass = { prior = \"uniform\", low = 2, high = 1 }\n"
      "rate = { prior = \"unifrom\", low = 0, high = 5 }\n"
      "size = 3\n"
      "[simulatons]\n"
      "files = [\"sims.npz\"]\n"
      "[training]\n"
      "gama = 1\n"
      "num_classes = 1.5\n"
      "loss = \"nre-d\"\n"
      "gamma = nan\n");
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err, "p.toml:2: [parameters] mass: ");
  expect_in(outcome.err, "p.toml:3: [parameters] rate: ");
  expect_in(outcome.err, "did you mean 'uniform'?");
  expect_in(outcome.err,
            "p.toml:4: [parameters] size: size = 3 must be a prior, such as size = { prior = \"uniform\", "
            "low = 0, high = 1 }");
  expect_in(outcome.err, "p.toml:5: unknown section [simulatons]; did you mean [simulations]?");
  expect_in(outcome.err, "p.toml:8: [training]: unknown key \"gama\"; did you mean \"gamma\"?");
  expect_in(outcome.err, "p.toml:9: [training]: num_classes = 1.5 must be an integer");
  expect_in(outcome.err, "p.toml:10: [training]: loss = \"nre-d\" must be one of");
  expect_in(outcome.err, "p.toml:11: [training]: gamma = nan must be a number > 0");
}

TEST_F(Usage, TheSourceOfSimulationsMustBeOneAndFitTheParameters) {
  const auto refuse = [&](const std::string& text, const std::string& message) {
    const Outcome outcome = infer(text);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    expect_in(outcome.err, message);
  };
  const std::string task = "[simulations]\ntask = \"two_moons\"\n";
  refuse(kParameters + kObservation, "[simulations] needs a source");
  refuse(kParameters + "[simulations]\nfiles = [\"sims.npz\"]\ntask = \"two_moons\"\n" + kObservation,
         "[simulations] has two sources");
  refuse(kParameters + task + kObservation, "[parameters] is given, but task = \"two_moons\" brings its own");
  refuse(kSimulations + kObservation, "[parameters] is missing");
  refuse(task, "observation: no file is given");
  refuse("[simulations]\ntask = \"two_mons\"\n" + kObservation, "two_moons");
  refuse(kParameters + "[simulations]\ncommand = \"./not_there {mass} {rate}\"\n" + kObservation,
         "not_there");
  refuse(kParameters + "[simulations]\ncommand = \"sh sim.sh {mas} {rate}\"\n" + kObservation, "mass");
  refuse(kParameters + "[simulations]\nlibrary = \"libnot_there.so\"\n" + kObservation, "libnot_there.so");
  refuse(kParameters + "rate = 1\n", "p.toml:4");
  refuse("[parameters\n", "p.toml:1");
  EXPECT_EQ(run({"infer", "q.toml"}).code, 3);
}

TEST_F(Usage, JointPriorsAndPriorsFromSamplesWork) {
  const std::string joint =
      "[parameters]\nboth = { names = [\"mass\", \"rate\"], prior = \"multivariate_normal\", mean = [2.5, "
      "2.5], covariance = [[4, 0], [0, 4]] }\n";
  ASSERT_EQ(infer(joint + kSimulations + kObservation + kSmall, {"--out", "joint"}).code, 0);
  EXPECT_EQ(content("joint/draws.csv").substr(0, 10), "mass,rate\n");
  const std::vector<std::string> names = {"mass", "rate"};
  write_csv(folder_ / "thetas.csv", names, toy_simulations(400).theta);
  const Outcome outcome =
      infer("[parameters]\nfrom_samples = \"thetas.csv\"\n" + kSimulations + kObservation + kSmall,
            {"--out", "samples", "--check", "none"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content("samples/draws.csv").substr(0, 10), "mass,rate\n");
  const Outcome mixed = infer(
      "[parameters]\nfrom_samples = \"thetas.csv\"\nmass = { prior = \"uniform\", low = 0, high = 5 }\n" +
      kSimulations + kObservation);
  EXPECT_EQ(mixed.code, 3);
  expect_in(mixed.err, "p.toml:3: [parameters]: \"mass\" cannot stand beside from_samples");
}

TEST_F(Usage, TheEnvironmentChoosesKernelsWhereNothingElseDoes) {
  write("p.toml", whole_);
  EXPECT_EQ(run({"train", "p.toml", "--quiet"}, {{"NREC_ISA", "ref"}}).code, 0);
  expect_in(content("p_run/record.json"), "\"isa\": \"ref\"");
  const Outcome outcome = run({"train", "p.toml", "--overwrite"}, {{"NREC_ISA", "mmx"}});
  EXPECT_EQ(outcome.code, 2);
  expect_in(outcome.err, "environment variable NREC_ISA: isa = \"mmx\" must be one of auto");
}

TEST_F(Usage, PrecisionIsInTheRecordAndMustFitTheKernels) {
  write("p.toml", whole_);
  EXPECT_EQ(run({"train", "p.toml", "--quiet", "--precision", "bf16"}, {{"NREC_ISA", "ref"}}).code, 0);
  expect_in(content("p_run/record.json"), "\"isa\": \"ref_bf16\"");
  expect_in(content("p_run/record.json"), "\"precision\": \"bf16\"");
  EXPECT_EQ(run({"infer", "p.toml", "--resume", "--quiet", "--precision", "bf16", "--isa", "ref"}).code, 0);
  expect_in(content("p_run/record.json"), "\"precision\": \"bf16\"");
  const Outcome outcome = run({"train", "p.toml", "--overwrite", "--precision", "f32", "--isa", "ref_bf16"});
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err, "isa = \"ref_bf16\" is not of precision \"f32\"");
}

TEST_F(Usage, ListsThatNameNothingAreRefused) {
  const Words lines[] = {{"benchmark", "--tasks", "", "--out", "b"},
                         {"experiment", "table2", "--tasks", "", "--out", "b"},
                         {"experiment", "fig5", "--gammas=", "--out", "b"},
                         {"experiment", "fig5", "--seeds", ",", "--out", "b"},
                         {"compare", "a.csv", "b.csv", "--metric", ""},
                         {"infer", "--files", "", "--out", "b"}};
  for (const Words& line : lines) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, 2) << line[0];
    expect_in(outcome.err, "names nothing; give one or several");
    EXPECT_FALSE(exists("b")) << line[0];
  }
}

}  // namespace
}  // namespace nrec::cli
