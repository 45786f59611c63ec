// Included where kernels_here<Element>(), kOrdersAreDrawn and the fixture Portable are defined:
// what the portable kernels must do, on the emulated GPU as on a real one.

/// Empty, or what is wrong with the forward pass, the backward pass or the deterministic one.
template <class Element>
std::string check(const RingCase& c) {
  const RingTrial trial = make_trial(c, dtype_of<Element>);
  const auto kernels = kernels_here<Element>();
  const AttentionOutput output = run_forward(trial, kernels, c.seed);
  std::string wrong = judge(trial, output);
  for (const bool deterministic : {false, true}) {
    if (!wrong.empty()) break;
    const GradientOptions options{.deterministic = deterministic, .seed = c.seed};
    wrong = judge(trial, run_backward(trial, output, kernels, options));
  }
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

TYPED_TEST(Portable, equals_the_exact_reference_on_random_problems) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    ASSERT_EQ(check<TypeParam>(random_case(seed, 64)), "");
  }
}

TYPED_TEST(Portable, takes_every_width) {
  constexpr std::array<std::array<std::int64_t, 2>, 9> kWidths{{{8, 8},
                                                                {40, 40},
                                                                {64, 64},
                                                                {72, 72},
                                                                {128, 128},
                                                                {256, 256},
                                                                {128, 64},
                                                                {8, 136},
                                                                {200, 16}}};
  unsigned seed = 100;
  for (const auto& [head_dim, v_dim] : kWidths) {
    RingCase c = random_case(++seed, 64);
    c.shape = {.batch = 1,
               .q_heads = 2,
               .kv_heads = 1,
               .q_tokens = 70,
               .kv_tokens = 97,
               .head_dim = head_dim,
               .v_dim = v_dim};
    c.ranks = 2;
    c.mask = seed % 2 ? "causal" : "full";
    ASSERT_EQ(check<TypeParam>(c), "");
  }
}

TYPED_TEST(Portable, takes_lengths_around_the_tiles) {
  for (const std::int64_t queries : {1, 15, 32, 63, 64, 65, 129}) {
    for (const std::int64_t keys : {1, 63, 64, 65, 128, 200}) {
      RingCase c{.shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = 16, .v_dim = 8},
                 .mask = queries % 2 ? "causal" : "full",
                 .seed = static_cast<unsigned>(1000 * queries + keys)};
      ASSERT_EQ(check<TypeParam>(c), "");
    }
  }
}

TYPED_TEST(Portable, carries_the_state_over_any_chunks) {
  for (const int ranks : {1, 4, 7}) {  // of 5 queries: with 7, some have none
    for (const LayoutKind layout :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      const RingCase c{.shape = {.q_tokens = 5, .kv_tokens = 90, .head_dim = 24, .v_dim = 40},
                       .mask = "causal",
                       .layout = layout,
                       .ranks = ranks,
                       .inputs = InputKind::late_maxima,
                       .seed = 7};
      ASSERT_EQ(check<TypeParam>(c), "");
    }
  }
}

TYPED_TEST(Portable, begins_and_finishes_where_there_are_no_keys) {
  const RingCase c{
      .shape = {.q_heads = 2, .q_tokens = 70, .kv_tokens = 0, .head_dim = 8, .v_dim = 8}};
  ASSERT_EQ(check<TypeParam>(c), "");
}

TYPED_TEST(Portable, deterministic_gradients_have_the_same_bits_whatever_the_order_of_threads) {
  RingCase c = random_case(5, 64);
  c.shape.q_tokens = 100;
  c.shape.kv_tokens = 250;
  c.mask = "full";
  c.ranks = 1;
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const auto kernels = kernels_here<TypeParam>();
  const AttentionOutput output = run_forward(trial, kernels, 0);
  const auto gradients = [&](bool deterministic, std::uint64_t seed) {
    RingTrial unrounded = trial;  // f32 tells the orders apart that 16 bits do not
    unrounded.problem.dtype = DType::f32;
    return run_backward(unrounded, output, kernels, {.deterministic = deterministic, .seed = seed});
  };
  expect_same_bits(gradients, 3, kOrdersAreDrawn);
}

TYPED_TEST(Portable, the_forward_pass_has_the_same_bits_whatever_the_order_of_threads) {
  const RingCase c = random_case(11, 128);
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const auto kernels = kernels_here<TypeParam>();
  const AttentionOutput first = run_forward(trial, kernels, 0);
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    const AttentionOutput again = run_forward(trial, kernels, 100 * seed);
    EXPECT_EQ(again.out.values(), first.out.values()) << seed;
    EXPECT_EQ(again.lse.values(), first.lse.values()) << seed;
  }
}

/// The queries stand at the end, in the second document.
TYPED_TEST(Portable, does_not_look_at_what_nobody_sees) {
  const RingCase c{.shape = {.q_tokens = 64, .kv_tokens = 130, .head_dim = 16, .v_dim = 16},
                   .mask = "documents:30,100",
                   .seed = 3};
  RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const auto kernels = kernels_here<TypeParam>();
  const AttentionOutput clean = run_forward(trial, kernels, 1);
  for (std::int64_t key = 0; key < 30; ++key) {
    for (std::int64_t channel = 0; channel < 16; ++channel) {
      trial.tensors.k(0, 0, key, channel) = std::nan("");
      trial.tensors.v(0, 0, key, channel) = std::nan("");
    }
  }
  const AttentionOutput poisoned = run_forward(trial, kernels, 1);
  EXPECT_EQ(poisoned.out.values(), clean.out.values());
  EXPECT_EQ(poisoned.lse.values(), clean.lse.values());
}

/// A causal problem of which the token kBad is spoilt: K, V, Q or dO.
constexpr std::int64_t kTokens = 70, kBad = 33;
RingCase spoilt_case() {
  return {.shape = {.q_tokens = kTokens, .kv_tokens = kTokens, .head_dim = 16, .v_dim = 16},
          .mask = "causal",
          .seed = 4};
}
/// Equal where row is before `first`, not finite from there to `last`, in one channel at least.
void expect_spoilt(const Tensor<double>& got, const Tensor<double>& clean, std::int64_t first,
                   std::int64_t last) {
  for (std::int64_t row = 0; row < kTokens; ++row) {
    bool finite = true;
    for (std::int64_t channel = 0; channel < got.extents().channels; ++channel) {
      const double x = got(0, 0, row, channel);
      finite &= std::isfinite(x);
      if (row >= first && row < last) continue;
      EXPECT_EQ(x, clean(0, 0, row, channel)) << row;
    }
    EXPECT_EQ(finite, row < first || row >= last) << row;
  }
}

TYPED_TEST(Portable, a_key_or_value_that_is_not_finite_shows_in_the_rows_that_see_it_only) {
  const auto kernels = kernels_here<TypeParam>();
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    RingTrial trial = make_trial(spoilt_case(), dtype_of<TypeParam>);
    const AttentionOutput clean = run_forward(trial, kernels, 1);
    trial.tensors.v(0, 0, kBad, 5) = bad;
    const AttentionOutput spoilt_value = run_forward(trial, kernels, 1);
    expect_spoilt(spoilt_value.out, clean.out, kBad, kTokens);
    EXPECT_EQ(spoilt_value.lse.values(), clean.lse.values());
    trial = make_trial(spoilt_case(), dtype_of<TypeParam>);
    trial.tensors.k(0, 0, kBad, 5) = std::nan("");
    const AttentionOutput spoilt_key = run_forward(trial, kernels, 1);
    expect_spoilt(spoilt_key.out, clean.out, kBad, kTokens);
    expect_spoilt(spoilt_key.lse, clean.lse, kBad, kTokens);
  }
}

TYPED_TEST(Portable, gradients_do_not_bring_what_is_not_finite_to_tokens_that_do_not_see_it) {
  const auto kernels = kernels_here<TypeParam>();
  RingTrial trial = make_trial(spoilt_case(), dtype_of<TypeParam>);
  for (const bool deterministic : {false, true}) {
    const GradientOptions options{.deterministic = deterministic, .seed = 1};
    const auto gradients = [&](const RingTrial& some) {
      return run_backward(some, run_forward(some, kernels, 1), kernels, options);
    };
    const AttentionGradients clean = gradients(trial);
    for (Tensor<double> AttentionTensors::*tensor : {&AttentionTensors::k, &AttentionTensors::v}) {
      RingTrial spoilt = trial;
      (spoilt.tensors.*tensor)(0, 0, kBad, 5) = std::nan("");
      expect_spoilt(gradients(spoilt).dq, clean.dq, kBad, kTokens);
    }
    RingTrial spoilt = trial;
    spoilt.tensors.q(0, 0, kBad, 5) = std::nan("");
    expect_spoilt(gradients(spoilt).dk, clean.dk, 0, kBad + 1);
    expect_spoilt(gradients(spoilt).dv, clean.dv, 0, kBad + 1);
    spoilt = trial;
    spoilt.dout(0, 0, kBad, 5) = std::nan("");
    expect_spoilt(gradients(spoilt).dk, clean.dk, 0, kBad + 1);
    expect_spoilt(gradients(spoilt).dv, clean.dv, 0, kBad + 1);
  }
}
