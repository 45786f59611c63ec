// Included where run(version, trial, grid) and the fixture HopperLadder, with a HopperVersion as its
// parameter, are defined: what every version of the Hopper kernel must do.

/// Empty, or what is wrong.
std::string check_version(const HopperVersion& version, const RingCase& c, int blocks) {
  const RingTrial trial = backwards(make_trial(c, DType::bf16));
  const AttentionOutput got = run(version, trial, {blocks, c.seed});
  const std::string wrong = judge_hopper(trial, got, version.exp_error);
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

/// Two query heads for each K/V head, so wide as the version is made for.
RingCase case_for(const HopperVersion& version, std::int64_t queries, std::int64_t keys) {
  return {.shape = {.q_heads = 2,
                    .kv_heads = 1,
                    .q_tokens = queries,
                    .kv_tokens = keys,
                    .head_dim = version.channels,
                    .v_dim = version.channels},
          .seed = static_cast<unsigned>(1000 * queries + keys)};
}

TEST_P(HopperLadder, equals_the_exact_reference_where_all_is_seen) {
  for (const std::int64_t keys : {1, 290}) {
    for (const InputKind inputs : {InputKind::normal, InputKind::late_maxima}) {
      RingCase c = case_for(GetParam(), 70, keys);
      c.inputs = inputs;
      ASSERT_EQ(check_version(GetParam(), c, 2), "");
    }
  }
}

TEST_P(HopperLadder, equals_the_exact_reference_under_masks_and_over_chunks) {
  if (GetParam().needs_everything_seen) return;
  for (const char* mask : {"causal", "window:200,170"}) {
    RingCase c = case_for(GetParam(), 200, 330);
    c.mask = mask;
    c.ranks = 2;
    c.layout = LayoutKind::zigzag;
    c.inputs = InputKind::late_maxima;
    ASSERT_EQ(check_version(GetParam(), c, 2), "");
  }
}
