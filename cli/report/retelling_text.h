// A failing case as a picture of characters: the map of its pairs, each rank's events, a wrong row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/diagnosis/retelling.h"

namespace ringlab::report {

/// Lines of retelling_lines(), at most.
inline constexpr std::size_t kMostPictureLines = 40;

struct Shown {
  verify::Case of;
  verify::Retelling told;
  std::optional<verify::Element> marked = {};   ///< what the law found wrong, where it found one
  std::optional<verify::Retelling> right = {};  ///< the same case by a subject that does it right
};
std::vector<std::string> retelling_lines(const Shown& shown);

/// A line of events for each rank, a column for each step, as many columns on a line as fit.
std::vector<std::string> lane_lines(const verify::Retelling& told, std::size_t most);

}  // namespace ringlab::report
