#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nrec/commands/output_folder.h"
#include "nrec/core/record.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

// The draws of one posterior, or of a batch of them, in files. `is_batch` tells a batch of one from a single posterior.

/// draws.npz and draws.csv; nothing, and no such file left over, when there is not one draw. docs/formats/draws.md
///
/// Shapes   single: theta [S, D], log_ratio [S], log_density [S]; batch of O: theta [S, O, D], log_ratio [S, O],
///          log_density [S, O], num_draws [O], with nan where an observation has fewer than S draws
void write_draws(const std::vector<PosteriorDraws>& all, bool is_batch, const OutputFolder& folder);

/// Entries sampling.* of a single posterior.
void add_sampling(Record& record, const PosteriorDraws& draws);

/// Entries observations.* of a batch: lists of one value, or of D values, for every observation, row after row. `maps` holds the
/// entries of add_map() for each of them.
void add_observations(Record& record, const std::vector<PosteriorDraws>& all,
                      const std::vector<Record>& maps);

/// Draws of an earlier run and what its record said about their modes.
struct EarlierDraws {
  std::vector<PosteriorDraws> draws;
  std::vector<Record> maps;  // empty where there is none
};

/// Draws of an earlier run in the folder, if its record says that they were made from `key`: of a single posterior when they are
/// complete; of a batch of `count` with the unfinished ones, see is_final(), left empty (no method). nullopt when nothing can be taken over.
std::optional<EarlierDraws> earlier_draws(const OutputFolder& folder, const std::string& key,
                                          const std::vector<std::string>& names, std::size_t count,
                                          bool is_batch);

}  // namespace nrec
