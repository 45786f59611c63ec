// Tests that need a GPU: without one they are skipped, and say so.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "optimized/cuda/device.h"
#include "optimized/cuda/stream_queues.h"
#include "reference/core/error.h"
#include "tests/optimized/cuda/device/waits_heard.h"

namespace ringlab::cuda {

/// In every program with such tests, before main() begins. Streams that share a queue wait for each
/// other, which would hide mistakes; a ring of 5 ranks has 15 streams.
inline const bool kEveryStreamHasAQueue = ask_for_stream_queues();

enum class Needs { any_kernel, hopper };

/// Empty, or why the first device cannot run what is needed.
inline std::string why_no_gpu(Needs needs = Needs::any_kernel) {
  try {
    device_count();
    const DeviceFacts facts = device_facts(0);
    const int has = facts.compute_capability;
    if (needs == Needs::hopper ? has == 90 : has >= 80) return "";
    return "no NVIDIA GPU: " + facts.name + " has compute capability " + std::to_string(has / 10) +
           "." + std::to_string(has % 10);
  } catch (const Error& error) {
    return std::string("no NVIDIA GPU: ") + error.what();
  }
}

/// Empty, or why it is skipped. The first device is in use then, and tells of waits that never end.
inline std::string prepare_device(Needs needs) {
  const std::string reason = why_no_gpu(needs);
  if (!reason.empty()) return reason;
  select_device(0);
  const std::string problem = hear_of_lost_waits();
  if (!problem.empty()) testing::Test::RecordProperty("lost_waits_have_no_names", problem);
  return "";
}

template <Needs kNeeds>
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = prepare_device(kNeeds);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    const std::string lost = lost_wait();
    if (!lost.empty()) ADD_FAILURE() << lost;
  }
};

}  // namespace ringlab::cuda
