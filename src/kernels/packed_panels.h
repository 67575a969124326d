#pragma once

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

/// How tables of float32 pack W[k, n]: in panels of kPanelColumns columns, [panel][k][kPanelColumns], and where at most half a panel
/// of columns is left those behind them, so that no lane of a register works for nothing: each row of kPanelColumns numbers has, column after
/// column, `depths` numbers of the k that a product sums over. Zeros around.
struct PackedPanels {
  std::size_t panels, last, depths;

  explicit PackedPanels(std::size_t n) {
    const std::size_t left = n % kPanelColumns;
    last = left <= kPanelColumns / 2 ? left : 0;
    panels = (n - last + kPanelColumns - 1) / kPanelColumns;
    depths = kPanelColumns;
    while (depths * last > kPanelColumns) depths /= 2;
  }

  /// Columns in panels.
  std::size_t whole() const { return panels * kPanelColumns; }
  std::size_t floats(std::size_t k) const {
    return whole() * k + (last > 0 ? (k + depths - 1) / depths * kPanelColumns : 0);
  }
  /// Where W(i, j) is.
  std::size_t at(std::size_t k, std::size_t i, std::size_t j) const {
    if (j < whole()) return j / kPanelColumns * kPanelColumns * k + i * kPanelColumns + j % kPanelColumns;
    return whole() * k + i / depths * kPanelColumns + (j - whole()) * depths + i % depths;
  }
};

}  // namespace
}  // namespace nrec
