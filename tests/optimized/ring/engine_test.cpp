// The engine against the exact reference, its own closed forms, and itself.
#include "optimized/ring/engine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "optimized/ring/closed_forms.h"
#include "optimized/transport/in_process.h"
#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"
#include "property_tests/programs/trace_check.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"
#include "tests/optimized/ring/engine_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Case;
using verify::Draws;

/// Same bits, NaN included.
void expect_same(const Tensor<double>& a, const Tensor<double>& b, const std::string& what) {
  ASSERT_EQ(a.extents(), b.extents()) << what;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(a.values()[i]),
              std::bit_cast<std::uint64_t>(b.values()[i]))
        << what << " at " << i;
  }
}
void expect_same(const RunResult& a, const RunResult& b, const std::string& what) {
  expect_same(a.output.out, b.output.out, what + ", o");
  expect_same(a.output.lse, b.output.lse, what + ", lse");
  expect_same(a.gradients->dq, b.gradients->dq, what + ", dq");
  expect_same(a.gradients->dk, b.gradients->dk, what + ", dk");
  expect_same(a.gradients->dv, b.gradients->dv, what + ", dv");
}

TEST(Engine, equals_the_exact_reference_forward_and_backward) {
  Draws draws(11);
  for (int i = 0; i < repetitions(400); ++i) {
    const Trial trial = random_trial(draws);
    const AttentionInput input = trial.input();
    const RunResult run = Engine().run(input, trial.options);
    const NumericsProfile profile = engine_profile(trial.problem, trial.options);
    const ExactForward exact = exact_forward(input);
    const Report forward =
        compare_forward(run.output, exact, forward_tolerance(input, exact, profile));
    ASSERT_TRUE(forward.passed()) << trial.text() << "\n" << forward.summary();
    const ExactBackward slope = exact_backward(input, *input.dout);
    const BackwardTolerance allowed = backward_tolerance(input, *input.dout, slope, profile);
    Report backward;
    backward.tensors = {
        compare("dq", run.gradients->dq.view(), slope.dq.view(), allowed.dq.view()),
        compare("dk", run.gradients->dk.view(), slope.dk.view(), allowed.dk.view()),
        compare("dv", run.gradients->dv.view(), slope.dv.view(), allowed.dv.view())};
    ASSERT_TRUE(backward.passed()) << trial.text() << "\n" << backward.summary();
  }
}

TEST(Engine, gives_the_same_bits_for_any_slots_transport_delay_and_integrity) {
  Draws draws(12);
  for (int i = 0; i < repetitions(60); ++i) {
    Trial trial = random_trial(draws);
    const RunResult first = Engine().run(trial.input(), trial.options);
    for (int slots = 1; slots <= 4; ++slots) {
      trial.options.slots = slots;
      trial.options.integrity = slots % 2 == 0 ? Integrity::full : Integrity::headers;
      trial.options.transport = slots == 4 ? TransportKind::threads : TransportKind::simulated;
      trial.options.rendezvous = slots != 2;
      trial.options.delay_seed = static_cast<std::uint64_t>(i * 4 + slots);
      const RunResult again = Engine().run(trial.input(), trial.options);
      expect_same(again, first, trial.text() + " with " + std::to_string(slots) + " slots");
    }
  }
}

TEST(Engine, moves_and_holds_what_the_closed_forms_say) {
  Draws draws(13);
  for (int i = 0; i < repetitions(300); ++i) {
    Trial trial = random_trial(draws);
    const bool gradients = draws.chance(50);
    trial.options.wire = static_cast<WireFormat>(draws.below(4));
    AttentionInput input = trial.input();
    if (!gradients) input.dout.reset();
    const RunResult run = Engine().run(input, trial.options);
    ASSERT_EQ(run.leftover_messages, 0) << trial.text();
    for (int rank = 0; rank < trial.options.ranks; ++rank) {
      const RankStats& got = run.ranks[static_cast<std::size_t>(rank)];
      const EngineCosts due = engine_costs(trial.problem, trial.options, rank,
                                           gradients ? Pass::backward : Pass::forward);
      const std::string where = trial.text() + ", rank " + std::to_string(rank);
      ASSERT_EQ(got.sent_bytes, due.sent_bytes) << where;
      ASSERT_EQ(got.sent_messages, due.sent_messages) << where;
      ASSERT_EQ(got.received_bytes, due.received_bytes) << where;
      ASSERT_EQ(got.received_messages, due.received_messages) << where;
      ASSERT_EQ(got.peak_kv_bytes, due.peak_kv_bytes) << where;
      ASSERT_EQ(got.peak_bytes, due.peak_bytes) << where;
    }
  }
}

TEST(Engine, leaves_traces_that_obey_the_invariants_of_the_model) {
  Draws draws(14);
  for (int i = 0; i < repetitions(150); ++i) {
    Trial trial = random_trial(draws);
    trial.options.trace = true;
    const RunResult run = Engine().run(trial.input(), trial.options);
    const Layout queries = make_layout(trial.options, trial.problem.shape.q_tokens, {});
    const Layout keys = make_layout(trial.options, trial.problem.shape.kv_tokens, {});
    const NeedMatrix need = need_matrix(trial.problem.mask, queries, keys);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      std::vector<std::vector<TraceEvent>> events(run.ranks.size());
      for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
        for (const TraceEvent& event : run.ranks[rank].events) {
          if (event.pass == pass) events[rank].push_back(event);
        }
      }
      const std::vector<std::string> findings =
          check_trace(events, build_schedule(schedule_spec(trial.options), need, pass));
      ASSERT_TRUE(findings.empty()) << trial.text() << "\n" << findings.front();
    }
  }
}

TEST(Engine, finds_ranks_that_were_given_different_problems_before_any_data_moves) {
  Case c;
  c.shape = {1, 1, 1, 12, 12, 2, 2};
  c.ranks = 4;
  const Trial trial = make_trial(c);
  Problem other = trial.problem;
  other.scale *= 2;
  std::vector<std::string> said(4);
  const auto body = [&](Communicator& network) {
    const int rank = network.rank();
    const Layout rows = make_layout(trial.options, 12, {});
    const Tensor<double> q = shard_of<double>(trial.data.q.view(), rows.positions(rank));
    const Tensor<double> k = shard_of<double>(trial.data.k.view(), rows.positions(rank));
    const Tensor<double> v = shard_of<double>(trial.data.v.view(), rows.positions(rank));
    try {
      Engine().run(rank == 2 ? other : trial.problem, trial.options,
                   {.q = q.view(), .k = k.view(), .v = v.view()}, OneRank(network));
    } catch (const RankError& error) {
      said[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  run_threads(4, {}, body);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_NE(said[rank].find("scale is "), std::string::npos) << said[rank];
    EXPECT_NE(said[rank].find("on rank 2"), std::string::npos) << said[rank];
    EXPECT_EQ(said[rank].find("step"), std::string::npos) << "a hop of the ring: " << said[rank];
  }
}

/// Flips one bit of the n-th message that rank 1 sends.
class BitFlipper : public Communicator {
 public:
  BitFlipper(Communicator& below, std::int64_t message, std::size_t bit)
      : below_(below), message_(message), bit_(bit) {}
  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    if (below_.rank() != 1 || count_++ != message_) return below_.post_send(to, tag, bytes);
    flipped_.assign(bytes.begin(), bytes.end());
    flipped_[bit_ / 8 % flipped_.size()] ^= std::byte(1 << (bit_ % 8));
    return below_.post_send(to, tag, flipped_);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    return below_.post_receive(from, tag, buffer);
  }
  void wait(Request request) override { below_.wait(request); }

 private:
  Communicator& below_;
  const std::int64_t message_;
  const std::size_t bit_;
  std::int64_t count_ = 0;
  std::vector<std::byte> flipped_;
};

std::string what_a_flip_does(const Trial& trial, std::int64_t message, std::size_t bit) {
  EngineParts parts;
  parts.wrap = [=](Communicator& below) {
    return std::make_unique<BitFlipper>(below, message, bit);
  };
  try {
    Engine(parts).run(trial.input(), trial.options);
  } catch (const RankError& error) {
    return error.what();
  }
  return {};
}

TEST(Engine, notices_every_flipped_bit_of_a_header) {
  Case c;
  c.shape = {1, 1, 1, 9, 9, 2, 2};
  c.ranks = 3;
  const Trial trial = make_trial(c);
  // Two agreement messages come first, then header, K and V of the own chunk.
  for (std::size_t bit = 0; bit < 8 * (80 + 3 * 8); ++bit) {
    const std::string said = what_a_flip_does(trial, 2, bit);
    const bool noticed =
        said.find("header") != std::string::npos || said.find("magic number") != std::string::npos;
    ASSERT_TRUE(noticed) << "bit " << bit << ": " << said;
    ASSERT_NE(said.find("from rank 1"), std::string::npos) << said;
  }
}

TEST(Engine, notices_every_flipped_bit_of_the_data_with_full_integrity_only) {
  Case c;
  c.shape = {1, 1, 1, 9, 9, 2, 2};
  c.ranks = 3;
  Trial trial = make_trial(c);
  for (const std::int64_t message : {3, 4}) {  // K and V of 3 tokens
    for (std::size_t bit = 0; bit < 8 * 3 * 2 * sizeof(float); ++bit) {
      trial.options.integrity = Integrity::full;
      const std::string said = what_a_flip_does(trial, message, bit);
      ASSERT_NE(said.find("damaged data"), std::string::npos) << "bit " << bit << ": " << said;
      ASSERT_NE(said.find("from rank 1"), std::string::npos) << said;
    }
    trial.options.integrity = Integrity::headers;
    EXPECT_EQ(what_a_flip_does(trial, message, 0), "");
  }
}

TEST(Engine, knows_every_ranks_step_time_after_a_full_ring) {
  Case c;
  c.shape = {1, 2, 1, 50, 50, 4, 4};
  c.ranks = 5;
  const Trial trial = make_trial(c);
  const RunResult run = Engine().run(trial.input(), trial.options);
  for (const RankStats& rank : run.ranks) {
    ASSERT_EQ(rank.heard_step_s.size(), 5u);
    for (const double seconds : rank.heard_step_s) EXPECT_GT(seconds, 0);
  }
}

TEST(Engine, refuses_slots_below_one_and_tensors_of_another_shape) {
  Case c;
  c.shape = {1, 1, 1, 5, 5, 2, 2};
  Trial trial = make_trial(c);
  trial.options.slots = 0;
  EXPECT_THROW(Engine().run(trial.input(), trial.options), Error);
  trial.options.slots = 2;
  AttentionInput input = trial.input();
  input.dout->extents.tokens = 4;
  EXPECT_THROW(Engine().run(input, trial.options), Error);
}

TEST(Engine, refuses_what_ranks_of_this_process_are_not) {
  Case c;
  c.shape = {1, 1, 1, 5, 5, 2, 2};
  Trial trial = make_trial(c);
  const auto kind_of_error = [&](const RunOptions& options) -> std::optional<ErrorKind> {
    try {
      Engine().run(trial.input(), options);
    } catch (const Error& error) {
      return error.kind();
    }
    return {};
  };
  EXPECT_EQ(kind_of_error(trial.options), std::nullopt);
  for (const TransportKind processes : {TransportKind::mpi, TransportKind::nccl}) {
    RunOptions options = trial.options;
    options.transport = processes;
    EXPECT_EQ(kind_of_error(options), ErrorKind::usage);
  }
  trial.options.device = DeviceKind::cuda;
  EXPECT_EQ(kind_of_error(trial.options), ErrorKind::environment);
}

}  // namespace
}  // namespace ringlab::ring
