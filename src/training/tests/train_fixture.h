#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "nrec/core/error.h"
#include "training/tests/toy_problem.h"

namespace nrec::testing {

/// The text of the error that an action ends with, or "no error".
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// What is in a file.
inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of its own for every test.
class TrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("nrec_train_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
               std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// Trains on simulations of the toy, whatever the regime.
  TrainingResult train_toy(const TrainingOptions& options, const char* norm = "layer",
                           std::size_t rows = 600) {
    const FunctionSimulator simulator = toy_simulator();
    return train(toy_prior(), toy_simulations(rows, pool_), small_network(norm), options, run_, {},
                 &simulator);
  }
  static const EpochRecord& best(const TrainingResult& result) {
    return result.estimator->history[static_cast<std::size_t>(result.summary.best_epoch) - 1];
  }
  /// The bytes of its estimator file.
  std::string bytes(const TrainingResult& result) {
    save_estimator(*result.estimator, folder_ / "bytes.safetensors");
    return bytes_of(folder_ / "bytes.safetensors");
  }

  std::filesystem::path folder_;
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

}  // namespace nrec::testing
