// The engine on tensors in their own types, next to the engine on doubles.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"
#include "tests/optimized/ring/engine_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Case;
using verify::Draws;

Trial random_native_trial(Draws& draws) {
  Trial trial = random_trial(draws);
  trial.gradients = draws.chance(50);
  trial.options.wire = static_cast<WireFormat>(draws.below(4));
  trial.options.threads = static_cast<int>(draws.between(1, 3));
  return trial;
}

/// Equal bits at these tokens of the whole; double holds every element exactly.
template <class T>
void expect_rows(const Tensor<T>& rows, const Positions& tokens, const Tensor<double>& whole,
                 const std::string& what) {
  const Tensor<double> due = shard_of<double>(whole.view(), tokens);
  ASSERT_EQ(rows.extents(), due.extents()) << what;
  for (std::size_t i = 0; i < due.values().size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(rows.values()[i])),
              std::bit_cast<std::uint64_t>(due.values()[i]))
        << what << " at " << i;
  }
}

template <class Element>
void expect_result(const RankResult<Element>& mine, const RankTokens& tokens,
                   const RunResult& whole, const std::string& what) {
  expect_rows(mine.out, tokens.queries, whole.output.out, what + ", o");
  expect_rows(mine.lse, tokens.queries, whole.output.lse, what + ", lse");
  ASSERT_EQ(mine.gradients.has_value(), whole.gradients.has_value()) << what;
  if (!mine.gradients) return;
  expect_rows(mine.gradients->dq, tokens.queries, whole.gradients->dq, what + ", dq");
  expect_rows(mine.gradients->dk, tokens.keys, whole.gradients->dk, what + ", dk");
  expect_rows(mine.gradients->dv, tokens.keys, whole.gradients->dv, what + ", dv");
}

template <class Element>
void compare_with_doubles(const Trial& trial) {
  const RunResult due = Engine().run(trial.input(), trial.options);
  std::vector<int> handed_over(static_cast<std::size_t>(trial.options.ranks));
  std::atomic<std::int64_t> done = 0;
  EngineParts parts;
  parts.work_done = [&done](std::int64_t amount) { done += amount; };
  const RunSummary got = Engine(parts).run<Element>(
      trial.problem, trial.options,
      {.source = [&](const RankTokens& tokens) { return rows_of_trial<Element>(trial, tokens); },
       .sink =
           [&](const RankTokens& tokens, RankResult<Element>&& mine) {
             ++handed_over[static_cast<std::size_t>(tokens.rank)];
             expect_result(mine, tokens, due, trial.text());
           }});
  EXPECT_EQ(handed_over, std::vector<int>(handed_over.size(), 1)) << trial.text();
  EXPECT_EQ(got.leftover_messages, 0) << trial.text();
  ASSERT_EQ(got.ranks.size(), due.ranks.size());
  for (std::size_t rank = 0; rank < due.ranks.size(); ++rank) {
    EXPECT_EQ(got.ranks[rank].peak_bytes, due.ranks[rank].peak_bytes) << trial.text();
    EXPECT_EQ(got.ranks[rank].sent_bytes, due.ranks[rank].sent_bytes) << trial.text();
  }
  const std::vector<std::int64_t> work =
      engine_work(trial.problem, trial.options, trial.gradients ? Pass::backward : Pass::forward);
  EXPECT_EQ(done, std::accumulate(work.begin(), work.end(), std::int64_t{0})) << trial.text();
}

TEST(NativeEngine, gives_the_bits_of_the_engine_on_doubles_and_counts_its_work) {
  Draws draws(21);
  for (int i = 0; i < repetitions(300); ++i) {
    const Trial trial = random_native_trial(draws);
    with_element_type(trial.problem.dtype,
                      [&]<class Element>(Element) { compare_with_doubles<Element>(trial); });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(NativeEngine, ends_where_its_listener_throws) {
  Draws draws(22);
  for (int i = 0; i < 30; ++i) {
    const Trial trial = random_native_trial(draws);
    std::atomic<int> parts_done = 0;
    const EngineParts parts{.work_done = [&](std::int64_t) {
      if (++parts_done == 2) throw std::runtime_error("enough");
    }};
    try {
      Engine(parts).run(trial.input(), trial.options);
      EXPECT_LT(parts_done, 2) << trial.text();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("enough"), std::string::npos) << error.what();
    }
  }
}

/// The same numbers, tokens outermost and with gaps between all of them.
template <class Element>
struct Spread {
  std::vector<Element> values;
  TensorView<const Element> view;

  explicit Spread(const TensorView<const Element>& dense) {
    const Extents& e = dense.extents;
    view.extents = e;
    const std::int64_t head = e.channels * 2 + 1, batch = e.heads * head + 5;
    view.strides = {batch, head, e.batch * batch + 3, 2};
    values.resize(static_cast<std::size_t>(e.tokens * view.strides.token + 1),
                  static_cast<Element>(std::numeric_limits<double>::quiet_NaN()));
    view.data = values.data();
    for_each_index(e, [&](auto b, auto h, auto t, auto c) {
      values[static_cast<std::size_t>(view.offset(b, h, t, c))] = dense(b, h, t, c);
    });
  }
};

template <class Element>
struct SpreadRows {
  RankRows<Element> dense;
  Spread<Element> q, k, v;
  std::optional<Spread<Element>> dout;
};

template <class Element>
RankRows<Element> spread(const RankRows<Element>& dense) {
  auto rows = std::make_shared<SpreadRows<Element>>(SpreadRows<Element>{
      dense, Spread<Element>(dense.q), Spread<Element>(dense.k), Spread<Element>(dense.v), {}});
  RankRows<Element> shard{.q = rows->q.view, .k = rows->k.view, .v = rows->v.view};
  if (dense.dout) {
    rows->dout.emplace(*dense.dout);
    shard.dout = rows->dout->view;
  }
  shard.owner = std::move(rows);
  return shard;
}

TEST(NativeEngine, takes_strided_rows_for_what_they_hold) {
  Draws draws(22);
  for (int i = 0; i < repetitions(100); ++i) {
    const Trial trial = random_native_trial(draws);
    const RunResult due = Engine().run(trial.input(), trial.options);
    with_element_type(trial.problem.dtype, [&]<class Element>(Element) {
      Engine().run<Element>(trial.problem, trial.options,
                            {.source =
                                 [&](const RankTokens& tokens) {
                                   return spread(rows_of_trial<Element>(trial, tokens));
                                 },
                             .sink =
                                 [&](const RankTokens& tokens, RankResult<Element>&& mine) {
                                   expect_result(mine, tokens, due, trial.text());
                                 }});
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

/// Notes where the bytes lie that are sent.
class SendWatcher : public Communicator {
 public:
  SendWatcher(Communicator& below, std::set<const void*>& sent, std::mutex& mutex)
      : below_(below), sent_(sent), mutex_(mutex) {}
  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    sent_.insert(bytes.data());
    return below_.post_send(to, tag, bytes);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    return below_.post_receive(from, tag, buffer);
  }
  void wait(Request request) override { below_.wait(request); }

 private:
  Communicator& below_;
  std::set<const void*>& sent_;
  std::mutex& mutex_;
};

TEST(NativeEngine, sends_keys_and_values_from_where_they_lie) {
  Case c;
  c.shape = {1, 2, 1, 12, 12, 4, 3};
  c.ranks = 3;
  c.dtype = DType::bf16;
  const Trial trial = make_trial(c);
  std::set<const void*> sent, given;
  std::mutex mutex;
  EngineParts parts;
  parts.wrap = [&](Communicator& below) {
    return std::make_unique<SendWatcher>(below, sent, mutex);
  };
  Engine(parts).run<BFloat16>(trial.problem, trial.options,
                              {.source =
                                   [&](const RankTokens& tokens) {
                                     const auto shard = rows_of_trial<BFloat16>(trial, tokens);
                                     const std::lock_guard lock(mutex);
                                     given.insert(shard.k.data);
                                     given.insert(shard.v.data);
                                     return shard;
                                   },
                               .sink = [](const RankTokens&, RankResult<BFloat16>&&) {}});
  EXPECT_EQ(given.size(), 6u);
  for (const void* rows : given) EXPECT_TRUE(sent.contains(rows));
}

TEST(NativeEngine, refuses_elements_of_another_dtype_than_the_problems) {
  Case c;
  c.shape = {1, 1, 1, 6, 6, 2, 2};
  c.ranks = 2;
  c.dtype = DType::bf16;
  const Trial trial = make_trial(c);
  std::string said;
  try {
    Engine().run<Half>(
        trial.problem, trial.options,
        {.source = [&](const RankTokens& tokens) { return rows_of_trial<Half>(trial, tokens); },
         .sink = [](const RankTokens&, RankResult<Half>&&) { ADD_FAILURE() << "a result"; }});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("bf16, the problem's dtype"), std::string::npos) << said;
}

TEST(NativeEngine, says_which_rank_was_given_rows_that_are_too_few) {
  Case c;
  c.shape = {1, 1, 1, 6, 6, 2, 2};
  c.ranks = 2;
  const Trial trial = make_trial(c);
  const auto source = [&](const RankTokens& tokens) {
    RankRows<float> shard = rows_of_trial<float>(trial, tokens);
    if (tokens.rank == 1) --shard.k.extents.tokens;
    return shard;
  };
  std::string said;
  try {
    Engine().run<float>(
        trial.problem, trial.options,
        {.source = source, .sink = [](const RankTokens&, RankResult<float>&&) { FAIL(); }});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("k of this rank"), std::string::npos) << said;
}

TEST(NativeEngine, throws_what_the_source_of_a_rank_throws) {
  Case c;
  c.shape = {1, 1, 1, 6, 6, 2, 2};
  c.ranks = 3;
  const Trial trial = make_trial(c);
  const auto source = [&](const RankTokens& tokens) {
    if (tokens.rank == 2) {
      throw_input_error({.where = "rows", .expected = "some", .actual = "none"});
    }
    return rows_of_trial<float>(trial, tokens);
  };
  EXPECT_THROW(
      Engine().run<float>(
          trial.problem, trial.options,
          {.source = source, .sink = [](const RankTokens&, RankResult<float>&&) { FAIL(); }}),
      Error);
}

}  // namespace
}  // namespace ringlab::ring
