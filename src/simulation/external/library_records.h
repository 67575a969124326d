#pragma once

#include <array>
#include <cstdint>

namespace nrec::simulation {

// What this program and its library workers say to each other: both are the same build on the same machine, so
// numbers go as they lie in memory.
//
//   worker, once   LibraryGreeting
//   request        RequestHead, theta [D] float64
//   answer         AnswerHead, x [M] float64; in the order of the requests
struct LibraryGreeting {
  std::array<char, 8> magic{'n', 'r', 'e', 'c', 'w', 'r', 'k', '1'};
  std::int64_t dim_theta = 0;
  std::int64_t dim_x = 0;
};

struct RequestHead {
  std::uint64_t row = 0;
  std::uint64_t seed = 0;
};

struct AnswerHead {
  std::uint64_t row = 0;
  std::int64_t status = 0;  // what nrec_simulate returned
};

}  // namespace nrec::simulation
