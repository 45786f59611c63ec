// What the device tests ask of planted stream mistakes, on devices that are plain memory and keep a
// clock.
#include "tests/property_tests/programs/delayed_mistakes.h"

#include <gtest/gtest.h>

#include "tests/optimized/ring/counting_kernels.h"
#include "tests/optimized/ring/fake_devices.h"

namespace ringlab::ring {
namespace {

Bits run_edited(const Trial& trial, const StreamEdit& edit) {
  return bits_of_run<BFloat16>(trial, [&](const Ends<BFloat16>& ends) {
    Engine().run(trial.problem, trial.options, ends,
                 OnStreams<BFloat16>(counting_kernels<BFloat16>(),
                                     {.edit = edit, .unwritten = UnwrittenMemory::nan}));
  });
}

class DelayedStreams : public testing::Test {
 protected:
  void SetUp() override {
    fake_devices().devices = 1;
    defer_work_by_a_clock();
  }
  void TearDown() override { do_work_at_once(); }
};
class DelayedMistakes : public DelayedStreams, public testing::WithParamInterface<StreamMistake> {};

#include "tests/optimized/ring/delayed_mistakes_trials-inl.h"

/// It is the delay that shows them.
TEST_F(DelayedStreams, would_hide_mistakes_without_a_delay) {
  const Trial trial = trial_of_delays();
  const auto run = [&](const StreamEdit& edit) { return run_edited(trial, edit); };
  const Bits due = run({});
  for (const StreamMistake& mistake : result_mistakes()) {
    if (mistake.name != "missing_wait") continue;
    EXPECT_NE(show(mistake, trial, run, due, 0).unseen, "");
  }
}

}  // namespace
}  // namespace ringlab::ring
