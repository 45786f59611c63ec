// Small kernels under many seeds: what a correct one does always, and a wrong one at least once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "optimized/cuda/device_code.h"
#include "tests/emulator/machine/emulate.h"

namespace ringlab::cuda::emulator {

inline constexpr int kSeeds = 100;

/// What the fault says, or "" where there is none.
inline std::string fault_of(const Launch& launch, const std::function<void()>& kernel) {
  try {
    emulate(launch, kernel);
  } catch (const KernelFault& found) {
    return found.what();
  }
  return "";
}

/// Texts of the faults that any of the seeds leads to.
inline std::vector<std::string> faults_of(Launch launch, const std::function<void()>& kernel) {
  std::vector<std::string> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    launch.seed = static_cast<std::uint64_t>(seed);
    const std::string text = fault_of(launch, kernel);
    if (!text.empty()) found.push_back(text);
  }
  return found;
}

/// Some seed leads to a fault, and all that are found say `text`.
inline void expect_fault(const Launch& launch, const std::function<void()>& kernel,
                         const std::string& text) {
  const auto found = faults_of(launch, kernel);
  EXPECT_FALSE(found.empty()) << "expected a fault: " << text;
  for (const std::string& what : found) {
    ASSERT_NE(what.find(text), std::string::npos) << "expected: " << text << "\nfound: " << what;
  }
}

inline void expect_no_fault(const Launch& launch, const std::function<void()>& kernel) {
  const auto found = faults_of(launch, kernel);
  EXPECT_TRUE(found.empty()) << found.size() << " faults, the first: " << found.front();
}

/// Seeds of `kSeeds` for which `is_right` is false after a run of the kernel (a fault counts).
inline int count_wrong(Launch launch, const std::function<void()>& kernel,
                       const std::function<bool()>& is_right) {
  int wrong = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    launch.seed = static_cast<std::uint64_t>(seed);
    wrong += !fault_of(launch, kernel).empty() || !is_right();
  }
  return wrong;
}

}  // namespace ringlab::cuda::emulator
