// Included where kernels<Element>(shape), kEvery, kDelays and the fixture Devices are defined: what
// whole rings must do, on devices that are plain memory with emulated kernels as on a real one.

constexpr const char* kSchedules[] = {"broadcast", "allgather", "ring", "bidirectional",
                                      "double:2"};
constexpr LayoutKind kLayouts[] = {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag};

/// 45 tokens: no number of ranks but 1, 3 and 5 divides them.
inline KernelCase small_ring(int ranks, LayoutKind layout) {
  return {.shape = {.q_heads = 2,
                    .kv_heads = 1,
                    .q_tokens = 45,
                    .kv_tokens = 45,
                    .head_dim = 16,
                    .v_dim = 24},
          .mask = ranks % 2 ? "causal" : "window:20,3",
          .layout = layout,
          .ranks = ranks,
          .seed = static_cast<unsigned>(10 * ranks)};
}

template <class Element>
std::string check_devices(const DevicesCase& c) {
  const DevicesTrial trial = make_trial(c, dtype_of<Element>);
  const auto got = run_devices<Element>(trial, kernels<Element>(c.ring.shape), c.run);
  const std::string wrong = judge_devices(trial, got);
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

TYPED_TEST(Devices, equal_the_exact_reference_and_the_engine_for_any_schedule_and_layout) {
  int number = 0;
  for (const char* schedule : kSchedules) {
    for (const LayoutKind layout : kLayouts) {
      for (int ranks = 1; ranks <= 5; ++ranks) {
        if (schedule == std::string("double:2") && ranks < 2) continue;
        if (number++ % kEvery != 0) continue;
        const DevicesCase c{.ring = small_ring(ranks, layout), .schedule = schedule};
        ASSERT_EQ(check_devices<TypeParam>(c), "");
      }
    }
  }
}

TYPED_TEST(Devices, have_the_same_bits_with_delays_and_as_a_graph_and_whoever_copies_over_nan) {
  for (const char* schedule : kSchedules) {
    const DevicesCase c{.ring = small_ring(4, LayoutKind::zigzag), .schedule = schedule};
    const DevicesTrial trial = make_trial(c, dtype_of<TypeParam>);
    const auto with = [&](ring::DeviceRun run) {
      run.gradients = ring::Repeatable::same_bits;
      return run_devices<TypeParam>(trial, kernels<TypeParam>(c.ring.shape), run);
    };
    const RunResult plain = with({});
    ASSERT_EQ(judge_devices(trial, plain), "") << c.text();
    EXPECT_TRUE(same_numbers(with({}), plain)) << c.text();
    EXPECT_TRUE(same_numbers(with({.issue_as = ring::IssueAs::graph, .launches = 2}), plain))
        << c.text();
    EXPECT_TRUE(same_numbers(with({.unwritten = ring::UnwrittenMemory::nan}), plain)) << c.text();
    EXPECT_TRUE(same_numbers(with({.copy_by = ring::CopyBy::sender}), plain)) << c.text();
    for (std::uint64_t seed = 1; seed <= kDelays; ++seed) {
      const auto delayed = with({.edit = [seed](const ring::StreamProgram& program) {
        return ring::with_delays(program, seed, 200'000);
      }});
      EXPECT_TRUE(same_numbers(delayed, plain)) << c.text() << ", delays of seed " << seed;
    }
  }
}

/// More ranks than tokens: some have no queries, some no keys.
TYPED_TEST(Devices, take_empty_shards) {
  for (const LayoutKind layout : kLayouts) {
    DevicesCase c{.ring = small_ring(5, layout)};
    c.ring.shape.q_tokens = 3;
    c.ring.shape.kv_tokens = 4;
    ASSERT_EQ(check_devices<TypeParam>(c), "");
  }
}

/// The first queries see nothing; so do whole ranks.
TYPED_TEST(Devices, give_ranks_that_see_nothing_zeros) {
  DevicesCase c{.ring = small_ring(3, LayoutKind::contiguous)};
  c.ring.shape.kv_tokens = 10;
  ASSERT_EQ(check_devices<TypeParam>(c), "");
}

TYPED_TEST(Devices, take_a_full_mask_and_late_maxima) {
  DevicesCase c{.ring = small_ring(3, LayoutKind::striped)};
  c.ring.mask = "full";
  c.ring.inputs = InputKind::late_maxima;
  ASSERT_EQ(check_devices<TypeParam>(c), "");
}

TYPED_TEST(Devices, refuse_channels_that_are_no_multiple_of_8) {
  DevicesCase c{.ring = small_ring(2, LayoutKind::contiguous)};
  c.ring.shape.head_dim = 12;
  const DevicesTrial trial = make_trial(c, dtype_of<TypeParam>);
  EXPECT_THROW(run_devices<TypeParam>(trial, kernels<TypeParam>(c.ring.shape), {}), Error);
}
