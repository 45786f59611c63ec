// Ranks that differ, stay away or die: who is told what, and that a process can go on failing for
// ever without growing.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <utility>

#include "optimized/transport/faulty_communicator.h"
#include "optimized/transport/run_network.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/shards.h"
#include "tests/optimized/ring/counted_memory.h"
#include "tests/optimized/ring/meddler.h"
#include "tests/optimized/ring/small_run.h"

namespace ringlab::ring {
namespace {

class FailingRanks : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, FailingRanks, testing::ValuesIn(in_process_transports()),
                         transport_name);

constexpr int kRanksWithFailures = 4;
constexpr int kOdd = 2;

TEST_P(FailingRanks, whose_machine_failed_still_say_that_it_was_the_machine) {
  const SmallRun run = small_run(GetParam(), kRanksWithFailures, Pass::forward);
  try {
    run_network(run.options, [](Communicator& network) {
      if (network.rank() == kOdd) throw MachineError({.where = "device 0", .actual = "lost"});
    });
    FAIL() << "nothing was thrown";
  } catch (const MachineError& error) {
    EXPECT_EQ(error.parts().where, "rank 2, device 0");
  }
}

/// What a rank says when rank kOdd was given something else, and the bytes it has sent.
using Said = std::vector<std::string>;  // by each rank

RunResult run_alone(const SmallRun& run, Communicator& network) {
  const int rank = network.rank();
  const Shape& shape = run.problem.shape;
  const Positions rows = make_layout(run.options, shape.q_tokens, {}).positions(rank);
  const Positions keys = make_layout(run.options, shape.kv_tokens, {}).positions(rank);
  const Tensor<double> q = shard_of<double>(run.data.q.view(), rows);
  const Tensor<double> k = shard_of<double>(run.data.k.view(), keys);
  const Tensor<double> v = shard_of<double>(run.data.v.view(), keys);
  const Tensor<double> dout = shard_of<double>(run.dout.view(), rows);
  RankRows<double> mine{.q = q.view(), .k = k.view(), .v = v.view()};
  if (run.last_pass == Pass::backward) mine.dout = dout.view();
  return Engine().run(run.problem, run.options, mine, OneRank(network));
}

Said run_differing(const SmallRun& run, const SmallRun& odd) {
  Said told(kRanksWithFailures);
  run_network(run.options, [&](Communicator& network) {
    const auto rank = static_cast<std::size_t>(network.rank());
    try {
      run_alone(rank == kOdd ? odd : run, network);
    } catch (const RankError& error) {
      told[rank] = error.what();
    }
  });
  return told;
}

SmallRun with_another_token(const SmallRun& run) {
  verify::Case c;
  c.shape = run.problem.shape;
  ++c.shape.q_tokens;
  ++c.shape.kv_tokens;
  SmallRun other = run;
  other.problem = verify::make_problem(c);
  other.data = verify::make_tensors(c);
  other.dout = verify::make_dout(c);
  return other;
}

std::vector<std::pair<std::string, SmallRun>> different_runs(const SmallRun& run) {
  std::vector<std::pair<std::string, SmallRun>> runs = {{"q", with_another_token(run)}};
  const auto add = [&](const char* what, auto change) {
    SmallRun other = run;
    change(other.problem, other.options);
    runs.emplace_back(what, std::move(other));
  };
  const Shape& shape = run.problem.shape;
  add("mask", [&](Problem& p, auto&) {
    p.mask = parse_mask("causal").bind(shape.q_tokens, shape.kv_tokens);
  });
  add("dtype", [](Problem& p, auto&) { p.dtype = DType::f64; });
  add("scale", [](Problem& p, auto&) { p.scale *= 2; });
  add("layout of queries", [](auto&, RunOptions& o) { o.layout = LayoutKind::zigzag; });
  add("schedule", [](auto&, RunOptions& o) { o.schedule = ScheduleKind::bidirectional; });
  add("direction", [](auto&, RunOptions& o) { o.direction = RingDirection::previous; });
  add("slots", [](auto&, RunOptions& o) { o.slots = 3; });
  add("wire", [](auto&, RunOptions& o) { o.wire = WireFormat::bf16; });
  add("integrity", [](auto&, RunOptions& o) { o.integrity = Integrity::full; });
  add("tile-keys", [](auto&, RunOptions& o) { o.tile_keys = 8; });
  runs.emplace_back("gradients", run);
  runs.back().second.last_pass = Pass::forward;
  return runs;
}

TEST_P(FailingRanks, that_were_given_another_problem_are_named_before_any_data_moves) {
  const SmallRun run = small_run(GetParam(), kRanksWithFailures, Pass::backward);
  for (const auto& [what, odd] : different_runs(run)) {
    for (const std::string& said : run_differing(run, odd)) {
      EXPECT_NE(said.find(what + " is "), std::string::npos) << what << ": " << said;
      EXPECT_NE(said.find("on rank 2"), std::string::npos) << what << ": " << said;
      EXPECT_EQ(said.find("step"), std::string::npos) << "a hop of the ring: " << said;
    }
  }
}

TEST_P(FailingRanks, that_die_at_any_message_are_named_and_the_next_run_is_right) {
  const SmallRun run = small_run(GetParam(), 3, Pass::backward);
  const RunResult right = Engine().run(run.input(), run.options);
  for (const char* phase : {"before_send", "after_receive", "in_compute"}) {
    for (const char* kind : {"fail", "memory"}) {
      bool died = true;
      for (int count = 0; died; ++count) {
        const std::string plan = "1:" + std::to_string(count) + ":" + phase + ":" + kind;
        EngineParts parts;
        parts.wrap = [&](Communicator& below) {
          return make_faulty(below, parse_fault_plan(plan));
        };
        died = false;
        try {
          EXPECT_TRUE(same_bits(Engine(parts).run(run.input(), run.options), right)) << plan;
          EXPECT_GE(count, 8) << "the fault did not strike";
        } catch (const Error& error) {
          died = true;
          EXPECT_EQ(error.kind(), ErrorKind::environment) << plan;
          EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
        }
        ASSERT_TRUE(same_bits(Engine().run(run.input(), run.options), right)) << plan;
      }
    }
  }
}

TEST_P(FailingRanks, that_end_without_a_word_are_named_at_once) {
  for (int victim = 0; victim < 3; ++victim) {
    const SmallRun run = small_run(GetParam(), 3, Pass::forward);
    const auto begin = std::chrono::steady_clock::now();
    std::optional<RankFailure> failure;
    try {
      run_network(run.options, [&](Communicator& network) {
        if (network.rank() != victim) run_alone(run, network);
      });
    } catch (const RankError& error) {
      failure = error.failure();
    }
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->suspect, victim) << failure->reason;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "timeout: 20";
  }
}

/// A communicator that tells when a wait of its rank has failed.
class Teller final : public Communicator {
 public:
  Teller(Communicator& below, std::promise<void>& failed) : below_(below), failed_(failed) {}
  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    return below_.post_send(to, tag, bytes);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    return below_.post_receive(from, tag, buffer);
  }
  void wait(Request request) override {
    try {
      below_.wait(request);
    } catch (...) {
      if (!std::exchange(has_failed_, true)) failed_.set_value();
      throw;
    }
  }
  void let_go(const char* why) noexcept override { below_.let_go(why); }

 private:
  Communicator& below_;
  std::promise<void>& failed_;
  bool has_failed_ = false;
};

/// The end of a run in which rank 1 sleeps before its message number `message`, until a wait of
/// rank 0 has failed.
std::optional<RankFailure> failure_with_sleeper(const SmallRun& run, std::size_t message) {
  std::promise<void> failed;
  const Meddling sleepy = [&](const std::vector<Bytes>& wanted) {
    if (wanted.size() == message + 1) {
      const auto woken = failed.get_future().wait_for(std::chrono::seconds(100));
      EXPECT_EQ(woken, std::future_status::ready) << "nobody missed the sleeper";
    }
    return wanted.back();
  };
  EngineParts parts = meddled(1, sleepy);
  parts.wrap = [&, sleeper = parts.wrap](Communicator& below) -> std::unique_ptr<Communicator> {
    if (below.rank() == 0) return std::make_unique<Teller>(below, failed);
    return sleeper(below);
  };
  return failure_of(parts, run);
}

TEST(StalledThread, is_named_by_the_rank_that_waits_for_it_with_step_operation_and_events) {
  SmallRun run = small_run({"threads", TransportKind::threads, false}, 2, Pass::backward);
  run.options.timeout_s = 1;
  for (const std::size_t message : {0, 1, 4}) {  // the agreement, the forward ring, the backward
    const std::optional<RankFailure> failure = failure_with_sleeper(run, message);
    ASSERT_TRUE(failure) << message;
    EXPECT_EQ(failure->rank, 0);
    EXPECT_EQ(failure->suspect, 1);
    EXPECT_NE(failure->reason.find("within 1 s"), std::string::npos);
    EXPECT_GE(failure->elapsed_s, 1);
    EXPECT_EQ(failure->step >= 0, message > 0) << failure->operation;
    EXPECT_EQ(failure->recording.empty(), message == 0) << message;
    if (message > 0) {
      EXPECT_NE(failure->operation.find("of rank 1 from rank 1"), std::string::npos)
          << failure->operation;
    }
    EXPECT_NO_THROW(Engine().run(run.input(), small_run({}, 2, Pass::backward).options));
  }
}

/// What a process holds besides memory.
struct Holdings {
  std::int64_t threads = 0;
  std::int64_t files = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

Holdings holdings() {
  const auto entries = [](const char* folder) {
    const std::filesystem::directory_iterator first(folder);
    return std::distance(begin(first), end(first));
  };
  return {.threads = entries("/proc/self/task"), .files = entries("/proc/self/fd")};
}

/// Threads that were joined may take a moment to go.
bool comes_back_to(const Holdings& before) {
  for (int i = 0; i < 1000 && !(holdings() == before); ++i) ::usleep(10000);
  return holdings() == before;
}

/// The four ways to fail, in turn: usage, input, a rank's own failure, a message of half its size.
void fail_once(const SmallRun& run, int which) {
  SmallRun bad = run;
  EngineParts parts;
  if (which % 4 == 0) bad.options.slots = 0;
  if (which % 4 == 1) bad.data.v = Tensor<double>({1, 1, 1, 1});
  if (which % 4 >= 2) {
    const char* plan = which % 4 == 2 ? "1:3:before_send:fail" : "0:2:before_send:half";
    parts.wrap = [plan](Communicator& below) { return make_faulty(below, parse_fault_plan(plan)); };
  }
  EXPECT_THROW(Engine(parts).run(bad.input(), bad.options), Error) << which % 4;
}

TEST_P(FailingRanks, may_fail_ten_thousand_times_without_leaving_anything_behind) {
  const SmallRun run = small_run(GetParam(), 2, Pass::backward);
  const RunResult right = Engine().run(run.input(), run.options);
  for (int i = 0; i < 8; ++i) fail_once(run, i);
  const Holdings before = holdings();
  const std::int64_t memory = counted_memory::live();
  for (int i = 0; i < 10000 && !HasFailure(); ++i) fail_once(run, i);
  EXPECT_EQ(counted_memory::live(), memory);
  EXPECT_TRUE(comes_back_to(before))
      << holdings().threads << " threads, " << before.threads << " before; " << holdings().files
      << " files, " << before.files << " before";
  EXPECT_TRUE(same_bits(Engine().run(run.input(), run.options), right));
}

}  // namespace
}  // namespace ringlab::ring
