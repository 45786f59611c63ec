// A fixture that runs one stage and compares it with the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "stages/common/stage.h"
#include "tests/stages/expected.h"

namespace ringlab::stages::testing {

/// The parameter is the index of the stage.
class StageTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Stage& stage() const { return all_stages()[GetParam()]; }

  /// Empty when the stage gives the right answer for random tensors, else what is wrong.
  std::string check(const Problem& problem, const RunOptions& options, std::uint64_t seed) const {
    return check(random_tensors(problem, seed).input(problem), options);
  }
  std::string check(const AttentionInput& input, const RunOptions& options) const {
    const RunResult result = stage().run(input, options);
    if (result.leftover_messages != 0) return "messages were left over";
    return difference(result.output, expected_of(input, stage().profile(input.problem, options)));
  }
};

inline std::string stage_name(const ::testing::TestParamInfo<std::size_t>& info) {
  return all_stages()[info.param].name;
}

inline const Stage& stage_named(const std::string& name) {
  return *std::ranges::find(all_stages(), name, &Stage::name);
}

/// Every stage.
inline auto every_stage() { return ::testing::Range<std::size_t>(0, all_stages().size()); }

/// Those that have a device kernel.
inline auto every_device_stage() {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < all_stages().size(); ++index) {
    if (!all_stages()[index].cpu_only) found.push_back(index);
  }
  return ::testing::ValuesIn(found);
}

}  // namespace ringlab::stages::testing
