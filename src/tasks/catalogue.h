#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "nrec/tasks/task.h"

// What the files of this room share: one maker per task and the priors that several of them use.
namespace nrec::tasks {

// log(2 pi) and its half, in the constant of every normal density.
inline constexpr double kLogTwoPi = 1.8378770664093454836;
inline constexpr double kHalfLogTwoPi = 0.5 * kLogTwoPi;
inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

std::unique_ptr<Task> make_gaussian_linear(const TaskOptions& options);
std::unique_ptr<Task> make_gaussian_linear_uniform(const TaskOptions& options);
std::unique_ptr<Task> make_gaussian_mixture(const TaskOptions& options);
std::unique_ptr<Task> make_two_moons(const TaskOptions& options);
std::unique_ptr<Task> make_slcp(const TaskOptions& options);
std::unique_ptr<Task> make_slcp_distractors(const TaskOptions& options);
std::unique_ptr<Task> make_bernoulli_glm(const TaskOptions& options);
std::unique_ptr<Task> make_bernoulli_glm_raw(const TaskOptions& options);
std::unique_ptr<Task> make_sir(const TaskOptions& options);
std::unique_ptr<Task> make_lotka_volterra(const TaskOptions& options);

// parameter_1 .. parameter_<count>.
std::vector<std::string> numbered_parameters(std::size_t count);
// The same uniform on every one of `count` numbered parameters.
Prior uniform_box(std::size_t count, double low, double high, const std::string& transform = "auto");

}  // namespace nrec::tasks
