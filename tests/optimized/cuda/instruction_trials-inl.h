// Included where Machine is defined: what every instruction of device_code.h must do.
//
//     Machine::Array<T> of(vector<T>)     data() for kernels, values() on the host
//     Machine::run(body, blocks)
//     Fixtures Instructions and HopperInstructions.

template <class Element>
std::vector<Element> small_integers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Element> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(Element(static_cast<double>(static_cast<int>(random() % 9) - 4)));
  }
  return values;
}

template <class Element>
double wide(const std::vector<Element>& matrix, int columns, int row, int column) {
  return static_cast<double>(matrix[static_cast<std::size_t>(row * columns + column)]);
}

template <class T>
std::vector<T> filled(int count, T value = {}) {
  return std::vector<T>(static_cast<std::size_t>(count), value);
}

TEST_F(Instructions, shuffles_give_the_value_of_the_lane_asked_for) {
  const auto out = Machine::of(filled<float>(33 * ShuffleBody::kThreads, -1));
  Machine::run(ShuffleBody{out.data()});
  const auto got = out.values();
  for (int thread = 0; thread < ShuffleBody::kThreads; ++thread) {
    const int lane = thread % 32, first = thread - lane;
    for (int mask = 0; mask < 32; ++mask) {
      EXPECT_EQ(got[static_cast<std::size_t>(33 * thread + mask)], first + (lane ^ mask));
    }
    EXPECT_EQ(got[static_cast<std::size_t>(33 * thread + 32)], first + (lane + 5) % 32);
  }
}

TEST_F(Instructions, matrices_lie_in_lanes_as_fragments) {
  const auto out = Machine::of(filled<std::uint32_t>(256));
  Machine::run(LoadMatricesBody{out.data()});
  const auto got = out.values();
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const int g = lane / 4, t = 2 * (lane % 4);
      const auto pair = [m](int r0, int c0, int r1, int c1) {
        return static_cast<std::uint32_t>((64 * m + 8 * r0 + c0) | (64 * m + 8 * r1 + c1) << 16);
      };
      EXPECT_EQ(got[static_cast<std::size_t>(8 * lane + m)], pair(g, t, g, t + 1));
      EXPECT_EQ(got[static_cast<std::size_t>(8 * lane + 4 + m)], pair(t, g, t + 1, g));
    }
  }
}

template <class Element>
void check_multiply_add() {
  const auto a = small_integers<Element>(256, 1);
  const auto b = small_integers<Element>(128, 2);
  const auto on_a = Machine::of(a), on_b = Machine::of(b);
  const auto d = Machine::of(filled<float>(128, 7));
  Machine::run(MultiplyAddBody<Element>{on_a.data(), on_b.data(), d.data()});
  const auto got = d.values();
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double want = 7;
      for (int k = 0; k < 16; ++k) want += wide(a, 16, row, k) * wide(b, 16, column, k);
      EXPECT_EQ(got[static_cast<std::size_t>(8 * row + column)], want) << row << " " << column;
    }
  }
}
TEST_F(Instructions, multiply_add_is_a_matrix_product) {
  check_multiply_add<Half>();
  check_multiply_add<BFloat16>();
}

TEST_F(Instructions, copies_bring_what_is_valid_and_zeros) {
  std::vector<float> numbers;
  for (int i = 0; i < 256; ++i) numbers.push_back(static_cast<float>(i + 1));
  const auto from = Machine::of(numbers);
  const auto to = Machine::of(filled<float>(256, -2));
  Machine::run(CopyBody{from.data(), to.data()});
  const auto got = to.values();
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(got[i], i / 4 % 3 != 0 ? numbers[i] : 0) << i;
}

TEST_F(Instructions, named_barriers_hand_over_between_warps) {
  const auto out = Machine::of(filled<float>(32));
  Machine::run(NamedBarrierBody{out.data()});
  const auto got = out.values();
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[static_cast<std::size_t>(lane)], 3 * (31 - lane) + 1);
  }
}

TEST_F(Instructions, atomic_additions_lose_nothing) {
  constexpr int kAll = AtomicBody::kBlocks * AtomicBody::kThreads;
  const auto sum = Machine::of(filled<float>(1));
  const auto counter = Machine::of(filled<int>(1));
  const auto tickets = Machine::of(filled<int>(kAll, -1));
  Machine::run(AtomicBody{sum.data(), counter.data(), tickets.data()}, AtomicBody::kBlocks);
  EXPECT_EQ(sum.values()[0], kAll);
  EXPECT_EQ(counter.values()[0], kAll);
  auto drawn = tickets.values();
  std::sort(drawn.begin(), drawn.end());
  for (int i = 0; i < kAll; ++i) EXPECT_EQ(drawn[static_cast<std::size_t>(i)], i);
}

TEST_F(HopperInstructions, atomic_additions_of_pairs_lose_nothing) {
  constexpr int kAll = AtomicPairBody::kBlocks * AtomicPairBody::kThreads;
  const auto sums = Machine::of(filled<float>(2));
  Machine::run(AtomicPairBody{sums.data()}, AtomicPairBody::kBlocks);
  EXPECT_EQ(sums.values()[0], kAll);
  EXPECT_EQ(sums.values()[1], 3 * kAll);
}

template <class Element>
void check_numbers() {
  constexpr int kThreads = NumbersBody<Element>::kThreads;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 100);
  std::vector<float> values = {0.0f, -0.0f, 1e30f, -1e30f, 1e-30f, 65519.0f, 65520.0f, 1.00390625f};
  while (values.size() < 2 * kThreads) values.push_back(normal(random));
  const auto from = Machine::of(values);
  const auto pairs = Machine::of(filled<std::uint32_t>(kThreads));
  const auto powers = Machine::of(filled<float>(kThreads));
  Machine::run(NumbersBody<Element>{from.data(), pairs.data(), powers.data()});
  const auto got = pairs.values();
  const auto bits = [&](std::size_t i) {
    return std::uint32_t{Element(static_cast<double>(values[i])).bits};
  };
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(got[i], bits(2 * i) | bits(2 * i + 1) << 16) << values[2 * i];
    EXPECT_EQ(powers.values()[i], std::ldexp(1.0f, -static_cast<int>(i)));
  }
}
TEST_F(Instructions, numbers_are_rounded_to_nearest_even_and_powers_of_integers_are_exact) {
  check_numbers<Half>();
  check_numbers<BFloat16>();
}

TEST_F(HopperInstructions, a_pipeline_of_barriers_hands_every_item_over_once) {
  const auto sums = Machine::of(filled<float>(32));
  Machine::run(PipelineBody{sums.data()});
  const auto got = sums.values();
  constexpr int kItems = PipelineBody::kItems;
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[static_cast<std::size_t>(lane)], kItems * (kItems - 1) / 2 + kItems * lane);
  }
}

TEST_F(HopperInstructions, a_box_lies_swizzled_and_zeros_lie_where_there_is_no_tensor) {
  constexpr int kHeads = 3, kRows = 13, kChannels = 72;
  constexpr int kCount = LoadBoxBody::kBoxRows * kBoxChannels;
  const auto tensor = small_integers<BFloat16>(kHeads * kRows * kChannels, 5);
  const auto on_machine = Machine::of(tensor);
  const TensorMap map = Machine::map({.base = on_machine.data(),
                                      .type = DType::bf16,
                                      .heads = kHeads,
                                      .rows = kRows,
                                      .channels = kChannels,
                                      .box_rows = LoadBoxBody::kBoxRows});
  constexpr int kCorners[][3] = {{0, 0, 0},  {2, 5, 64}, {1, -3, 8},
                                 {1, 12, 0}, {2, 40, 0}, {1, 0, 128}};
  for (const auto& [head, row, channel] : kCorners) {
    const auto out = Machine::of(filled<std::uint16_t>(kCount, 0xffff));
    Machine::run(LoadBoxBody{map, head, row, channel, out.data()});
    const auto got = out.values();
    for (int i = 0; i < kCount; ++i) {
      const int r = row + i / kBoxChannels, c = channel + i % kBoxChannels;
      const bool inside = r >= 0 && r < kRows && c < kChannels;
      BFloat16 x;
      x.bits = got[static_cast<std::size_t>(i)];
      EXPECT_EQ(static_cast<double>(x), inside ? wide(tensor, kChannels, head * kRows + r, c) : 0);
    }
  }
}

TEST_F(HopperInstructions, a_box_goes_to_what_exists_of_its_place) {
  constexpr int kHeads = 3, kRows = 21, kChannels = 72;
  constexpr int kCorners[][3] = {{0, 0, 0}, {1, 9, 64}, {2, 3, 8}, {1, 40, 0}};
  for (const auto& [head, row, channel] : kCorners) {
    const auto tensor = Machine::of(filled<BFloat16>(kHeads * kRows * kChannels, BFloat16(0.0)));
    Machine::run(StoreBoxBody{Machine::map({.base = tensor.data(),
                                            .type = DType::bf16,
                                            .heads = kHeads,
                                            .rows = kRows,
                                            .channels = kChannels,
                                            .box_rows = kWarpRows}),
                              head, row, channel});
    const auto got = tensor.values();
    for (int i = 0; i < static_cast<int>(got.size()); ++i) {
      const int r = i / kChannels % kRows - row, c = i % kChannels - channel;
      const bool inside =
          i / kChannels / kRows == head && r >= 0 && r < kWarpRows && c >= 0 && c < kBoxChannels;
      ASSERT_EQ(got[static_cast<std::size_t>(i)].bits, inside ? 64 * r + c : 0) << i;
    }
  }
}

TEST_F(HopperInstructions, boxes_are_added_to_what_exists_of_their_place) {
  constexpr int kHeads = 2, kRows = 21, kChannels = 40, kBlocks = 5;
  constexpr int kCorners[][3] = {{0, 0, 0}, {1, 9, 32}, {1, 3, 8}, {0, 40, 0}};
  for (const auto& [head, row, channel] : kCorners) {
    const auto tensor = Machine::of(filled<float>(kHeads * kRows * kChannels, 7));
    Machine::run(AddBoxBody{Machine::map({.base = tensor.data(),
                                          .type = DType::f32,
                                          .heads = kHeads,
                                          .rows = kRows,
                                          .channels = kChannels,
                                          .box_rows = kWarpRows}),
                            head, row, channel},
                 kBlocks);
    const auto got = tensor.values();
    for (int i = 0; i < static_cast<int>(got.size()); ++i) {
      const int r = i / kChannels % kRows - row, c = i % kChannels - channel;
      const bool inside =
          i / kChannels / kRows == head && r >= 0 && r < kWarpRows && c >= 0 && c < 32;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 7 + (inside ? kBlocks * (32 * r + c) : 0)) << i;
    }
  }
}

template <class Element, int N, bool kLeftInRegisters = false>
void check_rows(int first) {
  using Body = RowProductBody<Element, N, kLeftInRegisters>;
  const auto a = small_integers<Element>(64 * Body::kChannels, N);
  const auto b = small_integers<Element>(N * Body::kChannels, N + 1);
  const auto on_a = Machine::of(a), on_b = Machine::of(b);
  const auto d = Machine::of(filled<float>(64 * N, -1));
  Machine::run(Body{on_a.data(), on_b.data(), first, d.data()});
  const auto got = d.values();
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < N; ++column) {
      double want = 0;
      for (int c = first; c < Body::kChannels; ++c) {
        want += wide(a, Body::kChannels, row, c) * wide(b, Body::kChannels, column, c);
      }
      wrong += got[static_cast<std::size_t>(row * N + column)] != want;
    }
  }
  EXPECT_EQ(wrong, 0) << "N " << N << ", channels from " << first;
}

template <class Element>
void check_all_rows() {
  [&]<int... kSixteenths>(std::integer_sequence<int, kSixteenths...>) {
    (check_rows<Element, 16 * (kSixteenths + 1)>(kSixteenths % 12 * 16), ...);
  }
  (std::make_integer_sequence<int, 16>());
}
TEST_F(HopperInstructions, products_of_rows_are_right_for_every_number_of_keys) {
  check_all_rows<Half>();
  check_all_rows<BFloat16>();
}
template <class Element>
void check_rows_of_registers() {
  check_rows<Element, 64, true>(0);
  check_rows<Element, 128, true>(48);
  check_rows<Element, 192, true>(0);
}
TEST_F(HopperInstructions, products_of_rows_in_registers_are_right) {
  check_rows_of_registers<Half>();
  check_rows_of_registers<BFloat16>();
}

template <class Element, int N>
void check_weights() {
  const auto p = small_integers<Element>(64 * 32, N);
  const auto v = small_integers<Element>(64 * N, N + 1);
  const auto on_p = Machine::of(p), on_v = Machine::of(v);
  const auto d = Machine::of(filled<float>(64 * N, 9));
  Machine::run(WeightProductBody<Element, N>{on_p.data(), on_v.data(), d.data()});
  const auto got = d.values();
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < N; ++column) {
      double want = 9;
      for (int k = 0; k < 32; ++k) want += wide(p, 32, row, k) * wide(v, N, 16 + k, column);
      wrong += got[static_cast<std::size_t>(row * N + column)] != want;
    }
  }
  EXPECT_EQ(wrong, 0) << "N " << N;
}

template <class Element>
std::vector<Element> normal_numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Element> values;
  for (int i = 0; i < count; ++i) values.push_back(Element(normal(random)));
  return values;
}

/// How tensor cores add up: what sums of products are off by, over the sum of their magnitudes and
/// kernel_profile's u_accumulate for each term.
template <class Element>
double worst_of_sums() {
  constexpr int kColumns = 64;
  using Body = RowProductBody<Element, kColumns>;
  double worst = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto a = normal_numbers<Element>(64 * Body::kChannels, 2 * seed);
    const auto b = normal_numbers<Element>(kColumns * Body::kChannels, 2 * seed + 1);
    const auto on_a = Machine::of(a), on_b = Machine::of(b);
    const auto d = Machine::of(filled<float>(64 * kColumns, -1));
    Machine::run(Body{on_a.data(), on_b.data(), 0, d.data()});
    const auto got = d.values();
    for (int row = 0; row < 64; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        double sum = 0, magnitude = 0;
        for (int c = 0; c < Body::kChannels; ++c) {
          const double product =
              wide(a, Body::kChannels, row, c) * wide(b, Body::kChannels, column, c);
          sum += product;
          magnitude += std::abs(product);
        }
        const double unit =
            Body::kChannels * magnitude * kernel_profile(dtype_of<Element>, 1).u_accumulate;
        worst = std::max(
            worst,
            std::abs(static_cast<double>(got[static_cast<std::size_t>(row * kColumns + column)]) -
                     sum) /
                unit);
      }
    }
  }
  return worst;
}
template <class Element>
void expect_sums_as_promised(const std::string& type) {
  const double worst = worst_of_sums<Element>();
  testing::Test::RecordProperty("worst_sum_over_what_is_promised_" + type, std::to_string(worst));
  EXPECT_GT(worst, 0) << "nothing was measured";
  EXPECT_LE(worst, 1) << type;
}
TEST_F(HopperInstructions, sums_of_products_are_as_near_as_kernel_profile_promises) {
  expect_sums_as_promised<Half>("f16");
  expect_sums_as_promised<BFloat16>("bf16");
}

template <class Element>
void check_all_weights() {
  check_weights<Element, 64>();
  check_weights<Element, 128>();
  check_weights<Element, 192>();
  check_weights<Element, 256>();
}
TEST_F(HopperInstructions, products_of_weights_are_right_for_every_number_of_channels) {
  check_all_weights<Half>();
  check_all_weights<BFloat16>();
}

template <class Element, int N>
void check_columns(int first) {
  using Body = ColumnProductBody<Element, N>;
  const auto a = small_integers<Element>(Body::kRows * 64, N);
  const auto b = small_integers<Element>(Body::kRows * N, N + 1);
  const auto on_a = Machine::of(a), on_b = Machine::of(b);
  const auto d = Machine::of(filled<float>(64 * N, -1));
  Machine::run(Body{on_a.data(), on_b.data(), first, d.data()});
  const auto got = d.values();
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < N; ++column) {
      double want = 0;
      for (int k = first; k < Body::kRows; ++k) want += wide(a, 64, k, row) * wide(b, N, k, column);
      wrong += got[static_cast<std::size_t>(row * N + column)] != want;
    }
  }
  EXPECT_EQ(wrong, 0) << "N " << N << ", rows from " << first;
}

template <class Element>
void check_all_columns() {
  check_columns<Element, 64>(0);
  check_columns<Element, 128>(16);
  check_columns<Element, 192>(32);
  check_columns<Element, 256>(48);
}
TEST_F(HopperInstructions, products_of_columns_are_right_from_any_row) {
  check_all_columns<Half>();
  check_all_columns<BFloat16>();
}
