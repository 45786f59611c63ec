// Tests that run on one kind of vectors after the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "optimized/cpu/vectors.h"

namespace ringlab::cpu {

/// The kind named by the parameter is in use; skipped where there is none.
class OnVectors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto all = available_vectors();
    if (!std::ranges::count(all, GetParam())) GTEST_SKIP() << "no " << GetParam() << " here";
    use_vectors(GetParam());
  }
  void TearDown() override { use_vectors(available_vectors().front()); }
};

/// For INSTANTIATE_TEST_SUITE_P: the kinds that compute with the same operations, and their names.
inline auto every_kind_of_vectors() {
#if defined(__aarch64__)
  return testing::Values("neon");
#else
  return testing::Values("avx512", "avx2", "scalar");
#endif
}
/// The kinds that multiply bf16.
inline auto products_of_bf16() { return testing::Values("avx512_amx", "avx512_bf16"); }
inline std::string name_of_vectors(const testing::TestParamInfo<std::string>& vectors) {
  return vectors.param;
}

}  // namespace ringlab::cpu
