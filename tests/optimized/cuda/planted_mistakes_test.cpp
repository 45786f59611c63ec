// Every planted mistake is found on the emulated GPU, by a KernelFault or by the contract of block
// kernels, and none is found in the kernels as they are.
#include "tests/optimized/cuda/planted_mistakes.h"

#include <gtest/gtest.h>

namespace ringlab::cuda {
namespace {

class PlantedMistakes : public testing::TestWithParam<PlantedMistake> {};

TEST_P(PlantedMistakes, is_found) {
  const PlantedMistake& mistake = GetParam();
  const std::string found = find_mistake(mistake.kernel, mistake.hunt);
  EXPECT_NE(found, "") << mistake.id << " survives: " << mistake.breaks;
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistakes, testing::ValuesIn(planted_mistakes()),
                         testing::PrintToStringParamName());

TEST(PlantedMistakes, none_is_found_where_there_is_none) {
  for (const PlantedMistake& kernel : kernels_as_they_are()) {
    EXPECT_EQ(find_mistake(kernel.kernel, kernel.hunt), "") << kernel.id;
  }
}

}  // namespace
}  // namespace ringlab::cuda
