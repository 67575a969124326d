#include "toy_problem.h"

#include "nrec/core/random.h"
#include "nrec/io/npz.h"

namespace nrec::cli {

Toy toy_simulations(std::size_t rows) {
  Toy toy{Matrix<double>(rows, 2), Matrix<double>(rows, 3)};
  for (std::size_t i = 0; i < rows; ++i) {
    RandomStream random(7, Stream::simulator, i);
    for (std::size_t d = 0; d < 2; ++d) {
      toy.theta(i, d) = random.uniform(0, 5);
      toy.x(i, d) = toy.theta(i, d) + 0.3 * random.normal();
    }
    toy.x(i, 2) = random.normal();
  }
  return toy;
}

void ToyTest::SetUp() {
  ProgramTest::SetUp();
  write_simulations(toy_simulations(400));
  write("x_o.csv", "2.0,3.0,0.1\n");
}

void ToyTest::write_simulations(const Toy& toy, const std::string& name) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  write_npz(folder_ / name, {{"theta", to_array(toy.theta)}, {"x", to_array(toy.x)}});
}

Outcome ToyTest::infer(const std::string& text, const Words& more) const {
  write("p.toml", text);
  Words words = {"infer", "p.toml"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

Outcome ToyTest::infer_on(const Toy& toy, const Words& more) const {
  write_simulations(toy);
  return infer(whole_, more);
}

}  // namespace nrec::cli
