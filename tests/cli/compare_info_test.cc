// The verbs that read results: nrec compare and nrec info.
#include <cmath>

#include "nrec/core/random.h"
#include "nrec/io/csv.h"
#include "nrec/io/json.h"
#include "nrec/io/npy.h"
#include "nrec/io/npz.h"
#include "nrec/io/safetensors.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

class Compare : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_csv(folder_ / "a.csv", names_, normals(1, 0.0));
    write_npy(folder_ / "b.npy", normals(2, 0.0));
    write_npz(folder_ / "c.npz",
              {{"theta", to_array(normals(3, 3.0))}, {"log_ratio", to_array(normals(4, 0.0))}});
  }
  static Matrix<double> normals(std::uint64_t row, double shift) {
    RandomStream random(11, Stream::check, row);
    Matrix<double> values(400, 2);
    for (double& value : values.values()) value = shift + random.normal();
    return values;
  }
  Record compared(const Words& more) const {
    Words words = {"compare"};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("--json");
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return record_from_json(outcome.out, "stdout");
  }
  const std::vector<std::string> names_ = {"a", "b"};
};

TEST_F(Compare, TellsEqualFromDifferent) {
  const Record same = compared({"a.csv", "b.npy"});
  const Record different = compared({"a.csv", "c.npz"});
  // 800 rows: the standard error of an accuracy is 0.018.
  EXPECT_LT(std::fabs(std::get<double>(*same.find("c2st")) - 0.5), 4 * 0.018);
  EXPECT_GT(std::get<double>(*different.find("c2st")), 0.95);
  EXPECT_LT(std::fabs(std::get<double>(*same.find("mmd2"))), 0.02);
  EXPECT_GT(std::get<double>(*different.find("mmd2")), 0.5);
  EXPECT_EQ(std::get<std::vector<double>>(*same.find("c2st_folds")).size(), 5u);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*same.find("epochs")).size(), 5u);
  EXPECT_GT(std::get<double>(*same.find("bandwidth")), 0);
}

TEST_F(Compare, TakesOneObservationOfABatch) {
  // [400, 2, 2]: the first observation's draws are those of b.npy, the second's those of c.npz.
  NumericArray batch{{400, 2, 2}, {}, "<f8"};
  const Matrix<double> near = normals(2, 0.0), far = normals(3, 3.0);
  for (std::size_t i = 0; i < 400; ++i) {
    batch.values.insert(batch.values.end(), {near(i, 0), near(i, 1), far(i, 0), far(i, 1)});
  }
  write_npz(folder_ / "batch.npz", {{"theta", batch}});
  const auto mmd2 = [&](const Words& words) {
    Words all = words;
    all.insert(all.end(), {"--metric", "mmd"});
    return std::get<double>(*compared(all).find("mmd2"));
  };
  EXPECT_EQ(mmd2({"a.csv", "batch.npz", "--row", "0"}), mmd2({"a.csv", "b.npy"}));
  EXPECT_EQ(mmd2({"a.csv", "batch.npz", "--row", "1"}), mmd2({"a.csv", "c.npz"}));
  const auto refuses = [&](const Words& words, const std::string& part) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    expect_in(outcome.err, part);
  };
  refuses({"compare", "a.csv", "batch.npz"},
          "batch.npz holds draws of 2 observations, shape (400, 2, 2); choose one by --row, from 0 to 1");
  refuses({"compare", "a.csv", "batch.npz", "--row", "2"}, "from 0 to 1 (row = 2)");
  refuses({"compare", "a.csv", "b.npy", "--row", "0"},
          "row = 0 chooses an observation of a batch, but neither");
}

TEST_F(Compare, OptionsAreHeard) {
  const Record only_mmd =
      compared({"a.csv", "b.npy", "--metric", "mmd", "--max-rows", "100", "--z-score", "on"});
  EXPECT_EQ(only_mmd.find("c2st"), nullptr);
  EXPECT_EQ(std::get<std::int64_t>(*only_mmd.find("reference_rows")), 100);
  EXPECT_TRUE(std::get<bool>(*only_mmd.find("mmd_z_score")));
  const Record one = compared({"a.csv", "b.npy", "--metric", "c2st", "--seed", "1"});
  const Record two = compared({"a.csv", "b.npy", "--metric", "c2st", "--seed", "2", "--out", "record.json"});
  EXPECT_NE(std::get<std::vector<double>>(*one.find("c2st_folds")),
            std::get<std::vector<double>>(*two.find("c2st_folds")));
  expect_in(content("record.json"), "\"c2st\"");
  const Outcome text = run({"compare", "a.csv", "b.npy", "--metric", "mmd"});
  expect_in(text.out, "mmd2");
  EXPECT_EQ(text.last_line(), "nrec compare: done");
}

TEST_F(Compare, MeasuresMomentsAndTheRegularisedTest) {
  const Record record = compared({"a.csv", "c.npz", "--metric", "moments,gaussian_kl,c2st_regularised"});
  EXPECT_EQ(record.find("c2st"), nullptr) << "the published recipe keeps its name for itself";
  // Shifted by three standard deviations: with 400 rows each the standard error of a mean difference is 0.07.
  EXPECT_NEAR(std::get<double>(*record.find("mean_error")), 3.0, 0.35);
  EXPECT_LT(std::get<double>(*record.find("sd_error")), 0.2);
  EXPECT_EQ(std::get<std::vector<double>>(*record.find("mean_errors")).size(), 2u);
  EXPECT_NEAR(std::get<double>(*record.find("gaussian_kl")), 9.0, 2.0);
  EXPECT_GT(std::get<double>(*record.find("c2st_regularised")), 0.95);
  const Outcome text = run({"compare", "a.csv", "b.npy", "--metric", "moments,gaussian_kl,c2st_regularised"});
  for (const char* name : {"mean_error", "sd_error", "kl ", "c2st_reg"}) expect_in(text.out, name);
}

TEST_F(Compare, RefusesWhatDoesNotFit) {
  const auto refuse = [&](const Words& words, int code, const std::string& message) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, code);
    expect_in(outcome.err, message);
  };
  refuse({"compare", "a.csv"}, 2, "SAMPLES is missing");
  refuse({"compare", "a.csv", "b.npy", "--metric", "c2sd"}, 2, "did you mean \"c2st\"?");
  refuse({"compare", "a.csv", "d.npy"}, 3, "d.npy");
  write("three.csv", "1,2,3\n4,5,6\n");
  refuse({"compare", "a.csv", "three.csv"}, 3, "a.csv has 2 columns but three.csv has 3");
  write("permuted.csv", "b,a\n1,2\n3,4\n");
  refuse({"compare", "a.csv", "permuted.csv"}, 3, "in another order");
}

class Info : public ToyTest {};

TEST_F(Info, DescribesEveryKindOfFile) {
  ASSERT_EQ(infer(whole_).code, 0);
  const auto says = [&](const std::string& file, const std::vector<std::string>& parts) {
    const Outcome outcome = run({"info", file});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& part : parts) expect_in(outcome.out, part);
  };
  says("p_run/estimator.safetensors",
       {"estimator", "mass ~ uniform(low = 0, high = 5)", "hidden_features", "best_epoch"});
  says("p_run/checkpoint.safetensors", {"checkpoint of a training run"});
  says("p_run/draws.npz", {"theta", "(200, 2)", "log_ratio", "(200,)"});
  says("p_run/draws.nc", {"posterior/mass", "(1, 200)", "sample_stats/log_ratio", "observed_data/x"});
  says("p_run/draws.csv", {"rows", "200", "mass, rate"});
  says("p_run/record.json", {"record", "verdict: "});
  says("sims.npz", {"(400, 2)", "(400, 3)"});
  const Outcome json = run({"info", "sims.npz", "--json"});
  EXPECT_NE(record_from_json(json.out, "stdout").find("theta"), nullptr);
}

TEST_F(Info, SaysOfARunWhatComesFirst) {
  const Outcome done = infer(whole_);
  ASSERT_EQ(done.code, 0);
  const Outcome outcome = run({"info", "p_run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string table = done.out.substr(0, done.out.find("\n\nverdict: "));  // the very one
  EXPECT_NE(table.find("mass"), std::string::npos);
  for (const std::string& part :
       {std::string("p_run/record.json"), std::string("command_line"), table, std::string("\nverdict: ")})
    expect_in(outcome.out, part);
  EXPECT_EQ(outcome.out.find("options."), std::string::npos);
  // What the table of a run says of its checks, and no more.
  EXPECT_EQ(
      outcome.out.substr(outcome.out.find("\nverdict: "), done.out.size() - done.out.find("\nverdict: ")),
      done.out.substr(done.out.find("\nverdict: ")));
  const Outcome all = run({"info", "p_run", "--all"}), json = run({"info", "p_run", "--json"});
  const Record record = record_from_json(json.out, "stdout");
  EXPECT_NE(record.find("options.training.gamma"), nullptr);
  for (const auto& [name, value] : record.entries()) expect_in("\n" + all.out, "\n" + name + " ");
  std::filesystem::remove(folder_ / "p_run/record.json");
  expect_in(run({"info", "p_run"}).out, "checkpoint of a training run");
}

TEST_F(Info, SaysWhichKernelsRunHere) {
  const Outcome outcome = run({"info", "--cpu"});
  EXPECT_EQ(outcome.code, 0);
  expect_in(outcome.out, "chosen");
  expect_in(outcome.out, "ref");
  EXPECT_EQ(run({"info"}).code, 2);
  EXPECT_EQ(run({"info", "nothing.npz"}).code, 3);
}

TEST_F(Info, SaysWhatAFileIsThatItCannotTabulate) {
  write("p.toml", whole_);
  const Outcome settings = run({"info", "p.toml"});
  EXPECT_EQ(settings.code, 0) << settings.err;
  expect_in(settings.out, "settings (TOML)");
  expect_in(settings.out, "parameters, simulations, observation, network, training, sampling");
  expect_in(settings.out, "nrec infer");
  write("bad.toml", "[parameters\n");
  const auto refuses = [&](const std::string& file, const std::string& message) {
    const Outcome outcome = run({"info", file});
    EXPECT_EQ(outcome.code, 3) << file;
    expect_in(outcome.err, message);
  };
  refuses("bad.toml", "bad.toml:1:");
  write("cut.json", "{\"a\": 1,\n \"b\"");
  refuses("cut.json", "cut.json:2:5: is not valid JSON");
  write("indented.txt", "\n  {\"a\": 1,, }\n");
  refuses("indented.txt", "indented.txt:2:11: is not valid JSON");
  write("headless.json", "\"a\": 1}\n");
  refuses("headless.json", "headless.json: the text is a single value; a record is one object");
  write("empty.json", "");
  refuses("empty.json", "is not valid JSON");
  write("cut.safetensors", "rubbish\n");
  refuses("cut.safetensors", "cut.safetensors: is not a complete safetensors file");
  write("rows-1-of-1.sqlite", std::string("SQLite format 3\0", 16));
  refuses("rows-1-of-1.sqlite", "is a database; if it is one of a campaign's, give nrec info the folder");
  std::filesystem::create_directory(folder_ / "campaign");
  write("campaign/rows-1-of-1.sqlite", std::string(5000, '?'));
  refuses("campaign",
          "campaign/rows-1-of-1.sqlite: is not an SQLite database, or its first bytes are damaged");
  write("newer.json", "{\"schema_version\": 99, \"command\": \"infer\"}");
  refuses("newer.json", "newer.json: schema_version = 99, but this program knows records up to version 1");
}

TEST_F(Info, RefusesTheCheckpointOfAnotherVersion) {
  write_safetensors(folder_ / "c.safetensors", {}, {{"format", "nrec-checkpoint"}, {"format_version", "99"}});
  const Outcome outcome = run({"info", "c.safetensors"});
  EXPECT_EQ(outcome.code, 3);
  expect_in(
      outcome.err,
      "c.safetensors: checkpoint format version 99, but this program reads version 1; resume with the nrec "
      "that wrote it, or start anew with --overwrite");
}

TEST_F(Info, NothingFromAFileSteersTheTerminal) {
  const auto is_plain = [](const Outcome& outcome) {
    for (const char* control : {"\x1b", "\x7f", "\r", "\xC2\x9B"}) {
      EXPECT_EQ(outcome.out.find(control), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.err.find(control), std::string::npos) << outcome.err;
    }
  };
  write(
      "r.json",
      "{\"command\": \"infer\", \"message\": \"\\u001b]0;x\\u0007\\u007f\", \"parameters\": [\"a\\u009b1m\"],"
      " \"marginals.name\": [\"b\\r\\u001b[2J\"], \"marginals.mean\": [1.5]}");
  const Outcome record = run({"info", "r.json"});
  EXPECT_EQ(record.code, 0) << record.err;
  expect_in(record.out, "\\x1b]0;x\\x07");
  expect_in(record.out, "b\\x0d\\x1b[2J");
  is_plain(record);
  is_plain(run({"info", "r.json", "--all"}));
  const Outcome json = run({"info", "r.json", "--json"});
  is_plain(json);
  expect_in(json.out, "\\u0007\\u007f");
  expect_in(json.out, "a\\u009b1m");
  write("h.csv", "a,\"\x1b[31m\"\n1,2\n");
  const Outcome table = run({"info", "h.csv"});
  EXPECT_EQ(table.code, 3);
  expect_in(table.err, "column 2 is named \"\\x1b[31m\", which holds a control character");
  is_plain(table);
  write("p.toml", "[parameters]\n\"a\\u001b[31m\" = { prior = \"uniform\", low = 0, high = 1 }\n");
  const Outcome problem = run({"infer", "p.toml"});
  EXPECT_EQ(problem.code, 3);
  expect_in(problem.err, "p.toml:2:1: the name \"a\\x1b[31m\" holds a control character; rename it");
  is_plain(problem);
  write("t.toml", "[simulations]\ntask = \"two\\u001b[1m\\nmoons\"\n");
  const Outcome task = run({"simulate", "t.toml"});
  EXPECT_EQ(task.code, 3);
  expect_in(task.err, "task = \"two\\x1b[1m\\x0amoons\" is not a known task");
  is_plain(task);
  is_plain(run({"info", "no\x1b[1msuch"}));
  write("forged.json", "{\"message\": \"x\\nstatus   done\"}");
  expect_in(run({"info", "forged.json"}).out, "x\\x0astatus   done");
}

}  // namespace
}  // namespace nrec::cli
