// Included where run<Element>(trial, grid) and the fixture ForwardHopper are defined: what the
// Hopper kernel must do, on the emulated GPU as on a real one.

/// Empty, or what is wrong.
template <class Element>
std::string check(const RingCase& c, int blocks = 2) {
  const RingTrial trial = make_trial(c, dtype_of<Element>);
  const std::string wrong = judge_hopper(trial, run<Element>(trial, {blocks, c.seed}));
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

TYPED_TEST(ForwardHopper, equals_the_exact_reference_on_random_problems) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const int blocks = 1 + static_cast<int>(seed % 3);
    ASSERT_EQ(check<TypeParam>(random_case(seed, seed % 4 == 0 ? 128 : 64), blocks), "");
  }
}

TYPED_TEST(ForwardHopper, takes_every_width) {
  constexpr std::array<std::array<std::int64_t, 2>, 10> kWidths{{{8, 8},
                                                                 {40, 40},
                                                                 {64, 64},
                                                                 {72, 72},
                                                                 {128, 128},
                                                                 {192, 192},
                                                                 {256, 256},
                                                                 {128, 64},
                                                                 {8, 136},
                                                                 {200, 16}}};
  unsigned seed = 100;
  for (const auto& [head_dim, v_dim] : kWidths) {
    RingCase c{.shape = {.batch = 1,
                         .q_heads = 2,
                         .kv_heads = 1,
                         .q_tokens = 70,
                         .kv_tokens = 197,
                         .head_dim = head_dim,
                         .v_dim = v_dim},
               .seed = ++seed};
    for (const char* mask : {"causal", "full"}) {
      c.mask = mask;
      ASSERT_EQ(check<TypeParam>(c), "");
    }
  }
}

TYPED_TEST(ForwardHopper, takes_lengths_around_its_tiles) {
  for (const std::int64_t queries : {1, 63, 64, 65, 191, 192, 193, 385}) {
    for (const std::int64_t keys : {1, 127, 128, 129, 257, 400}) {
      const RingCase c{
          .shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = 16, .v_dim = 16},
          .mask = queries % 2 ? "causal" : "full",
          .seed = static_cast<unsigned>(1000 * queries + keys)};
      ASSERT_EQ(check<TypeParam>(c), "");
    }
  }
}

/// Full attention at 128 channels has the largest blocks.
TYPED_TEST(ForwardHopper, takes_lengths_around_its_tiles_at_128_channels) {
  for (const std::int64_t queries : {1, 129}) {
    for (const std::int64_t keys : {128, 175, 176, 177, 353}) {
      for (const char* mask : {"causal", "full"}) {
        const RingCase c{
            .shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = 128, .v_dim = 128},
            .mask = mask,
            .seed = static_cast<unsigned>(1000 * queries + keys)};
        ASSERT_EQ(check<TypeParam>(c), "");
      }
    }
  }
}

TYPED_TEST(ForwardHopper, carries_the_state_over_any_chunks) {
  for (const int ranks : {1, 2, 5}) {
    for (const LayoutKind layout :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      for (const InputKind inputs : {InputKind::normal, InputKind::late_maxima}) {
        const RingCase c{.shape = {.q_tokens = 11, .kv_tokens = 290, .head_dim = 24, .v_dim = 40},
                         .mask = "causal",
                         .layout = layout,
                         .ranks = ranks,
                         .inputs = inputs,
                         .seed = 7};
        ASSERT_EQ(check<TypeParam>(c), "");
      }
    }
  }
}

/// Every block exceeds the maximum of those before it, by more and by less than what is waited for.
TYPED_TEST(ForwardHopper, rescales_what_came_before_a_new_maximum) {
  for (const std::int64_t keys : {300, 600, 2000}) {
    for (const int ranks : {1, 3}) {
      const RingCase c{.shape = {.q_tokens = 70, .kv_tokens = keys, .head_dim = 16, .v_dim = 32},
                       .ranks = ranks,
                       .inputs = InputKind::late_maxima,
                       .seed = static_cast<unsigned>(keys)};
      const RingTrial trial = backwards(make_trial(c, dtype_of<TypeParam>));
      ASSERT_EQ(judge_hopper(trial, run<TypeParam>(trial, {1, 9})), "") << c.text();
    }
  }
}

/// Equal scores of up to 2^45, whatever rounding leaves of them, and no masked key: the mean.
TYPED_TEST(ForwardHopper, weighs_scores_of_any_size) {
  constexpr std::int64_t kTokens = 384;
  const RingCase c{
      .shape = {.q_tokens = kTokens, .kv_tokens = kTokens, .head_dim = 16, .v_dim = 16}, .seed = 8};
  RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  trial.problem.scale = 0x1p40 / 3;
  auto& [q, k, v] = trial.tensors;
  for_each_index(k.extents(),
                 [&](auto b, auto h, auto t, auto ch) { k(b, h, t, ch) = k(b, h, 0, ch); });
  const AttentionOutput got = run<TypeParam>(trial, {1, 3});
  for (std::int64_t channel = 0; channel < 16; ++channel) {
    double mean = 0;
    for (std::int64_t key = 0; key < kTokens; ++key) mean += v(0, 0, key, channel) / kTokens;
    for (std::int64_t row = 0; row < kTokens; ++row) {
      ASSERT_NEAR(got.out(0, 0, row, channel), mean, 0.01) << row;
    }
  }
}

/// Windows and documents: partial blocks on both sides of full ones, tiles that see nothing.
TYPED_TEST(ForwardHopper, walks_partial_full_and_partial_blocks) {
  for (const char* mask : {"window:300,290", "causal+window:450,inf", "documents:100,300,260",
                           "prefix:200", "window:2,0"}) {
    const RingCase c{.shape = {.q_heads = 2,
                               .kv_heads = 2,
                               .q_tokens = 660,
                               .kv_tokens = 660,
                               .head_dim = 32,
                               .v_dim = 32},
                     .mask = mask,
                     .inputs = InputKind::late_maxima,
                     .seed = 21};
    ASSERT_EQ(check<TypeParam>(c, 3), "");
  }
}

/// More queries than keys: the first see nothing, and whole tiles do not.
TYPED_TEST(ForwardHopper, gives_rows_that_see_nothing_zeros_and_minus_infinity) {
  const RingCase c{
      .shape = {.q_heads = 2, .q_tokens = 430, .kv_tokens = 30, .head_dim = 16, .v_dim = 16},
      .mask = "causal",
      .seed = 5};
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const AttentionOutput got = run<TypeParam>(trial, {2, 5});
  EXPECT_EQ(judge_hopper(trial, got), "");
  for (std::int64_t row = 0; row < 400; ++row) {
    EXPECT_EQ(got.lse(0, 1, row, 0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(got.out(0, 1, row, 3), 0);
  }
}

TYPED_TEST(ForwardHopper, begins_and_finishes_where_there_are_no_keys) {
  const RingCase c{
      .shape = {.q_heads = 2, .q_tokens = 70, .kv_tokens = 0, .head_dim = 8, .v_dim = 8}};
  ASSERT_EQ(check<TypeParam>(c), "");
}

TYPED_TEST(ForwardHopper, has_the_same_bits_whatever_the_order_of_threads_and_the_grid) {
  RingCase c = random_case(11, 128);
  c.shape.q_tokens = 200;
  c.shape.kv_tokens = 300;
  c.mask = "causal";
  const RingTrial trial = make_trial(c, dtype_of<TypeParam>);
  const AttentionOutput first = run<TypeParam>(trial, {1, 0});
  for (std::uint64_t seed = 1; seed < 8; ++seed) {
    const AttentionOutput again =
        run<TypeParam>(trial, {1 + static_cast<int>(seed % 4), 100 * seed});
    EXPECT_EQ(again.out.values(), first.out.values()) << seed;
    EXPECT_EQ(again.lse.values(), first.lse.values()) << seed;
  }
}

/// K, or V, of a key that some rows of a tile see and others do not: 0 · NaN in P V is no number
/// either, and yet it must not show.
TYPED_TEST(ForwardHopper, what_is_not_finite_shows_in_the_rows_that_see_it_only) {
  constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()};
  constexpr std::int64_t kKey = 133;
  const RingCase c{.shape = {.q_tokens = 270, .kv_tokens = 270, .head_dim = 16, .v_dim = 16},
                   .mask = "causal",
                   .layout = LayoutKind::striped,
                   .ranks = 2,
                   .seed = 4};
  for (const bool in_v : {false, true}) {
    for (const double bad : kBad) {
      RingTrial trial = make_trial(c, dtype_of<TypeParam>);
      const RingTrial clean = trial;
      (in_v ? trial.tensors.v : trial.tensors.k)(0, 0, kKey, 5) = bad;
      const AttentionOutput got = run<TypeParam>(trial, {2, 1});
      AttentionOutput mended = got;
      const AttentionOutput without = run<TypeParam>(clean, {2, 1});
      for (std::int64_t row = kKey; row < 270; ++row) {
        // A score may also be -inf, and then its weight is 0 as it should be.
        const bool shows = in_v || std::isnan(bad);
        EXPECT_TRUE(!shows || !std::isfinite(got.out(0, 0, row, 5))) << row;
        for (std::int64_t ch = 0; ch < 16; ++ch) {
          mended.out(0, 0, row, ch) = without.out(0, 0, row, ch);
        }
        mended.lse(0, 0, row, 0) = without.lse(0, 0, row, 0);
      }
      EXPECT_EQ(judge_hopper(clean, mended), "") << in_v << bad;
    }
  }
}
