// Included where run_edited(trial, edit) and the fixtures DelayedStreams and DelayedMistakes, with
// a StreamMistake as its parameter, are defined: what a ring must do on streams that are held up.

/// So long that all else is done by then, and the host has issued it.
constexpr std::int64_t kDelay_ns = 30'000'000;

TEST_F(DelayedStreams, have_the_same_bits_wherever_one_is_held_up) {
  const Trial trial = trial_of_delays();
  const auto run = [&](const StreamEdit& edit) { return run_edited(trial, edit); };
  EXPECT_EQ(delays_that_show(trial, run, kDelay_ns), "");
}

TEST_P(DelayedMistakes, show_when_what_is_not_waited_for_is_held_up) {
  const Trial trial = trial_of_delays();
  const auto run = [&](const StreamEdit& edit) { return run_edited(trial, edit); };
  const Bits due = run({});
  ASSERT_EQ(run({}), due);
  const ShownMistake shown = show(GetParam(), trial, run, due, kDelay_ns);
  RecordProperty("places", shown.places);
  RecordProperty("runs", shown.runs);
  EXPECT_GT(shown.places, 0);
  EXPECT_EQ(shown.unseen, "");
}

INSTANTIATE_TEST_SUITE_P(Planted, DelayedMistakes, testing::ValuesIn(result_mistakes()),
                         [](const auto& mistake) { return mistake.param.name; });
