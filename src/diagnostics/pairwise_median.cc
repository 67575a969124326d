#include "diagnostics/pairwise_median.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nrec {
namespace {

// Selection by digits of the bit pattern: of non-negative doubles the one with the larger pattern is the
// larger, and squares order as distances do. Each pass counts the pairs by their next 16 bits among those
// that share the digits found so far; once few are left they are collected.
constexpr int kDigitBits = 16;
constexpr std::size_t kNumDigits = std::size_t{1} << kDigitBits;
constexpr std::uint64_t kFewPairs = std::uint64_t{1} << 22;  // 32 MB

// Calls visit(bits of the squared distance, worker) for every pair i < j.
template <class Visit>
void for_each_pair(const Matrix<double>& points, ThreadPool& pool, Visit visit) {
  constexpr std::size_t kBlock = 64;
  const std::size_t n = points.rows();
  pool.run((n + kBlock - 1) / kBlock, [&](std::size_t block, int worker) {
    for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        const double distance2 = squared_distance(&points(i, 0), &points(j, 0), points.cols());
        visit(std::bit_cast<std::uint64_t>(distance2), worker);
      }
    }
  });
}

// Whether `bits` starts with the digits `prefix`, the rest being `rest` bits long (0 .. 64).
bool starts_with(std::uint64_t bits, std::uint64_t prefix, int rest) {
  return rest == 64 || (bits >> rest) == prefix;
}

std::vector<std::uint64_t> count_digits(const Matrix<double>& points, ThreadPool& pool, std::uint64_t prefix,
                                        int rest) {
  std::vector<std::vector<std::uint64_t>> counts(static_cast<std::size_t>(pool.num_threads()),
                                                 std::vector<std::uint64_t>(kNumDigits, 0));
  for_each_pair(points, pool, [&](std::uint64_t bits, int worker) {
    if (!starts_with(bits, prefix, rest)) return;
    ++counts[static_cast<std::size_t>(worker)][(bits >> (rest - kDigitBits)) % kNumDigits];
  });
  for (std::size_t worker = 1; worker < counts.size(); ++worker) {
    for (std::size_t digit = 0; digit < kNumDigits; ++digit) counts[0][digit] += counts[worker][digit];
  }
  return counts[0];
}

std::uint64_t select_among_few(const Matrix<double>& points, ThreadPool& pool, std::uint64_t prefix, int rest,
                               std::uint64_t rank) {
  std::vector<std::vector<std::uint64_t>> found(static_cast<std::size_t>(pool.num_threads()));
  for_each_pair(points, pool, [&](std::uint64_t bits, int worker) {
    if (starts_with(bits, prefix, rest)) found[static_cast<std::size_t>(worker)].push_back(bits);
  });
  std::vector<std::uint64_t> all = std::move(found[0]);
  for (std::size_t worker = 1; worker < found.size(); ++worker) {
    all.insert(all.end(), found[worker].begin(), found[worker].end());
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

}  // namespace

double pairwise_median(const Matrix<double>& points, ThreadPool& pool) {
  const std::uint64_t n = points.rows();
  std::uint64_t count = n * (n - 1) / 2;  // pairs that share the digits found so far
  std::uint64_t rank = (count - 1) / 2;   // of the median among them, from 0
  std::uint64_t prefix = 0;
  int rest = 64;
  while (rest > 0 && count > kFewPairs) {
    const std::vector<std::uint64_t> counts = count_digits(points, pool, prefix, rest);
    std::size_t digit = 0;
    for (; rank >= counts[digit]; ++digit) rank -= counts[digit];
    count = counts[digit];
    prefix = prefix << kDigitBits | digit;
    rest -= kDigitBits;
  }
  const std::uint64_t bits = rest == 0 ? prefix : select_among_few(points, pool, prefix, rest, rank);
  return std::sqrt(std::bit_cast<double>(bits));
}

}  // namespace nrec
