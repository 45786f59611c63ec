// Included where backward_here<Element>(), kOrdersAreDrawn and the fixture BackwardHopper are
// defined: what the Hopper backward kernel must do, on the emulated GPU as on a real one.

/// The forward pass that is differentiated, rounded once.
AttentionOutput exact_output(const RingTrial& trial) {
  const ExactForward exact = exact_forward(trial.input());
  AttentionOutput output{exact.out, exact.lse};
  for (double& x : output.out.values()) x = round_to(trial.problem.dtype, x);
  return output;
}

template <class Element>
AttentionGradients gradients_of(const RingTrial& trial, const GradientOptions& options) {
  const PortableKernels<Element> kernels{nullptr, backward_here<Element>()};
  return run_backward(trial, exact_output(trial), kernels, options);
}

/// Empty, or what is wrong.
template <class Element>
std::string check_gradients(const RingCase& c, bool deterministic = false) {
  const RingTrial trial = make_trial(c, dtype_of<Element>);
  const GradientOptions options{.deterministic = deterministic, .seed = c.seed};
  const std::string wrong = judge(trial, gradients_of<Element>(trial, options));
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

TYPED_TEST(BackwardHopper, equals_the_exact_reference_on_random_problems) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const RingCase c = random_case(seed, seed % 3 == 0 ? 128 : 64);
    ASSERT_EQ(check_gradients<TypeParam>(c, seed % 2 == 1), "");
  }
}

/// Tiles of 128 queries at up to 64 channels, of 64 above; blocks of 128 keys.
TYPED_TEST(BackwardHopper, takes_lengths_around_its_tiles_and_blocks) {
  constexpr std::array<std::array<std::int64_t, 4>, 7> kSizes{{{1, 1, 8, 8},
                                                               {127, 129, 64, 64},
                                                               {128, 128, 64, 64},
                                                               {129, 257, 24, 40},
                                                               {64, 128, 128, 128},
                                                               {65, 127, 128, 128},
                                                               {130, 129, 72, 16}}};
  unsigned seed = 50;
  for (const auto& [queries, keys, head_dim, v_dim] : kSizes) {
    RingCase c{
        .shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = head_dim, .v_dim = v_dim},
        .seed = ++seed};
    for (const char* mask : {"causal", "full"}) {
      c.mask = mask;
      ASSERT_EQ(check_gradients<TypeParam>(c), "");
    }
  }
}

/// Blocks of keys that whole tiles of queries see, in part and not at all; two query heads for
/// a K/V head; more tiles than stages.
TYPED_TEST(BackwardHopper, goes_through_partial_and_full_tiles_of_all_heads_of_a_group) {
  for (const char* mask : {"causal", "window:200,60", "documents:90,130,80"}) {
    const RingCase c{.shape = {.q_heads = 2,
                               .kv_heads = 1,
                               .q_tokens = 300,
                               .kv_tokens = 300,
                               .head_dim = 16,
                               .v_dim = 24},
                     .mask = mask,
                     .seed = 21};
    ASSERT_EQ(check_gradients<TypeParam>(c), "");
  }
}

TYPED_TEST(BackwardHopper, adds_to_the_gradients_of_other_chunks) {
  for (const LayoutKind layout : {LayoutKind::striped, LayoutKind::zigzag}) {
    const RingCase c{.shape = {.batch = 2,
                               .q_heads = 2,
                               .kv_heads = 2,
                               .q_tokens = 90,
                               .kv_tokens = 90,
                               .head_dim = 16,
                               .v_dim = 16},
                     .mask = "causal",
                     .layout = layout,
                     .ranks = 3,
                     .inputs = InputKind::late_maxima,
                     .seed = 8};
    ASSERT_EQ(check_gradients<TypeParam>(c), "");
  }
}

/// More queries than keys: the first see nothing, and whole tiles do not.
TYPED_TEST(BackwardHopper, gives_rows_that_see_nothing_zeros) {
  const RingCase c{.shape = {.q_tokens = 230, .kv_tokens = 30, .head_dim = 16, .v_dim = 16},
                   .mask = "causal",
                   .seed = 5};
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  for (const bool deterministic : {false, true}) {
    const AttentionGradients got =
        gradients_of<TypeParam>(trial, {.deterministic = deterministic, .seed = 5});
    EXPECT_EQ(judge(trial, got), "");
    for (std::int64_t row = 0; row < 200; ++row) EXPECT_EQ(got.dq(0, 0, row, 3), 0);
  }
}

TYPED_TEST(BackwardHopper, leaves_gradients_alone_where_there_are_no_keys) {
  const RingCase c{.shape = {.q_tokens = 70, .kv_tokens = 0, .head_dim = 8, .v_dim = 8}};
  ASSERT_EQ(check_gradients<TypeParam>(c), "");
}

TYPED_TEST(BackwardHopper, deterministic_gradients_have_the_same_bits_whatever_the_order) {
  const RingCase c{.shape = {.q_tokens = 140, .kv_tokens = 390, .head_dim = 16, .v_dim = 16},
                   .seed = 31};
  RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const AttentionOutput output = exact_output(trial);
  trial.problem.dtype = DType::f32;  // tells the orders apart that 16 bits do not
  const auto gradients = [&](bool deterministic, std::uint64_t seed) {
    const PortableKernels<TypeParam> kernels{nullptr, backward_here<TypeParam>()};
    return run_backward(trial, output, kernels, {.deterministic = deterministic, .seed = seed});
  };
  expect_same_bits(gradients, 6, kOrdersAreDrawn);
}

/// Equal to `clean` but for rows first … last - 1, each of which has something that is not finite.
void expect_spoilt_rows(const Tensor<double>& got, const Tensor<double>& clean, std::int64_t first,
                        std::int64_t last) {
  for (std::int64_t row = 0; row < got.extents().tokens; ++row) {
    bool finite = true, equal = true;
    for (std::int64_t channel = 0; channel < got.extents().channels; ++channel) {
      finite &= std::isfinite(got(0, 0, row, channel));
      equal &= got(0, 0, row, channel) == clean(0, 0, row, channel);
    }
    EXPECT_EQ(finite, row < first || row >= last) << row;
    EXPECT_EQ(equal, finite) << row;
  }
}

/// What spoils a token, and what a forward pass would then have given the rows that see it.
struct Spoiler {
  Tensor<double> AttentionTensors::*tensor;  ///< or null: dO
  bool spoils_out, spoils_lse;
  std::int64_t last_row;  ///< after the rows that see it
};

template <class Element>
AttentionGradients spoilt_gradients(RingTrial trial, const Spoiler& spoiler, std::int64_t token,
                                    const GradientOptions& options) {
  AttentionOutput output = exact_output(trial);  // the reference takes finite numbers only
  for (std::int64_t row = token; row < spoiler.last_row; ++row) {
    if (spoiler.spoils_lse) output.lse(0, 0, row, 0) = std::nan("");
    for (std::int64_t channel = 0; channel < trial.problem.shape.v_dim; ++channel) {
      if (spoiler.spoils_out) output.out(0, 0, row, channel) = std::nan("");
    }
  }
  (spoiler.tensor ? trial.tensors.*spoiler.tensor : trial.dout)(0, 0, token, 5) = std::nan("");
  const PortableKernels<Element> kernels{nullptr, backward_here<Element>()};
  return run_backward(trial, output, kernels, options);
}

/// Tiles of queries see the bad token's block in full, in part and not at all. Two blocks of keys:
/// the bits of their sums do not depend on their order.
TYPED_TEST(BackwardHopper, does_not_bring_what_is_not_finite_to_tokens_that_do_not_see_it) {
  constexpr std::int64_t kTokens = 256;
  const RingCase c{
      .shape = {.q_tokens = kTokens, .kv_tokens = kTokens, .head_dim = 16, .v_dim = 16},
      .mask = "causal",
      .seed = 4};
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  for (const std::int64_t bad : {33, 133}) {
    const GradientOptions options{.deterministic = bad == 33, .seed = 1};
    const AttentionGradients clean = gradients_of<TypeParam>(trial, options);
    const auto spoilt = [&](const Spoiler& spoiler) {
      return spoilt_gradients<TypeParam>(trial, spoiler, bad, options);
    };
    expect_spoilt_rows(spoilt({&AttentionTensors::k, true, true, kTokens}).dq, clean.dq, bad,
                       kTokens);
    expect_spoilt_rows(spoilt({&AttentionTensors::v, true, false, kTokens}).dq, clean.dq, bad,
                       kTokens);
    for (const Spoiler& spoiler : {Spoiler{&AttentionTensors::q, true, true, bad + 1},
                                   Spoiler{nullptr, false, false, bad}}) {
      const AttentionGradients got = spoilt(spoiler);
      expect_spoilt_rows(got.dk, clean.dk, 0, bad + 1);
      expect_spoilt_rows(got.dv, clean.dv, 0, bad + 1);
      expect_spoilt_rows(got.dq, clean.dq, bad, bad + 1);
    }
  }
}
