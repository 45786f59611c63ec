// Included where kernel_of(version) and the fixture HopperBackwardLadder, with a
// HopperBackwardVersion as its parameter, are defined: what every version of the Hopper backward
// kernel must do.

TEST_P(HopperBackwardLadder, equals_the_exact_reference) {
  const HopperBackwardVersion& version = GetParam();
  for (const char* mask : {"full", "causal", "window:200,60"}) {
    const RingCase c{.shape = {.q_heads = 2,
                               .kv_heads = 1,
                               .q_tokens = 200,
                               .kv_tokens = 290,
                               .head_dim = version.channels,
                               .v_dim = version.channels},
                     .mask = mask,
                     .seed = 7};
    const RingTrial trial = make_trial(c, DType::bf16);
    const ExactForward exact = exact_forward(trial.input());
    AttentionOutput output{exact.out, exact.lse};
    for (double& x : output.out.values()) x = round_to(DType::bf16, x);
    const PortableKernels<BFloat16> kernels{nullptr, kernel_of(version)};
    ASSERT_EQ(judge(trial, run_backward(trial, output, kernels, {.seed = c.seed})), "") << mask;
  }
}
