#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

namespace nrec {

/// Rank of element 0 among weighted elements: the share of weight below it, with chance where elements are equal.
///
///   u = (sum of w_k with values_k < values_0  +  uniform * sum of w_k with values_k = values_0, k = 0 included) / sum of w_k
///
/// It is uniform in (0, 1) for any number of elements if, given the set of elements, element 0 is k with probability
/// w_k / sum w. That holds for a theta of the posterior among prior draws that are weighted by the ratio to the prior (its own weight
/// included), and for a theta of the posterior among posterior draws of equal weight. So an exact posterior passes at the stated
/// rate however few draws there are; few draws only cost power.
///
/// Shapes   values, weights [1 + S]
/// Units    weights >= 0, not all 0; uniform in (0, 1)
/// Errors   ShapeError: lengths differ or no elements
/// Source   docs/methods/calibration.md; [Talts2018] for equal weights
double randomised_rank(std::span<const double> values, std::span<const double> weights, double uniform);

/// Where one true theta stands in its posterior. All ranks are uniform for an exact posterior.
struct PosteriorRanks {
  std::vector<double> parameter;  // [D] share of the posterior below the true value
  double density = 0.0;           // share of the posterior at higher density
  double distance = 0.0;          // share of the posterior nearer to a random reference point (TARP)
  std::vector<double> direction;  // [D] unit vector from the posterior's mean to that reference, in its sds
  double own_share = 0.0;         // weight of the true theta in the set: ranks are chance by this share
};

/// Distances from a random reference point.
struct ReferenceDistances {
  std::vector<double> squares;    // [n]
  std::vector<double> direction;  // [D] unit vector from the weighted mean to the reference
};

/// Squared distances from a random reference point, in a way that does not change when columns are shifted or rescaled.
///
/// The reference is uniform in the box that the points span; each column is divided by its weighted sd. Both are functions of the
/// set that treat all its points alike, so that ranks of distances stay uniform for an exact posterior, whatever the direction.
///
/// Shapes   theta [n, D]; weights [n]
/// Source   [Lemos2023], with references and scales of our own
ReferenceDistances reference_distances(MatrixView<const double> theta, std::span<const double> weights,
                                       RandomStream& random);

/// Ranks of the true theta, which is point 0, among weighted draws.
///
/// Shapes   theta [1 + S, D]; log_weights [1 + S]: up to a constant, minus infinity allowed; log_density [1 + S]
/// Errors   ShapeError: lengths differ; DomainError: no point has weight
/// Cost     O(S D)
PosteriorRanks posterior_ranks(MatrixView<const double> theta, std::span<const double> log_weights,
                               std::span<const double> log_density, RandomStream& random);

}  // namespace nrec
