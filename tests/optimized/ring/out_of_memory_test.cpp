// Memory that runs out at any allocation of a run: an error that names the rank, nothing lost, and
// the next run is right.
#include <algorithm>
#include <mutex>
#include <new>

#include "optimized/transport/in_process.h"
#include "tests/optimized/ring/counted_memory.h"
#include "tests/optimized/ring/small_run.h"

namespace ringlab::ring {
namespace {

using counted_memory::Outage;

class OutOfMemory : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, OutOfMemory, testing::ValuesIn(in_process_transports()),
                         transport_name);

struct Outcome {
  std::optional<RunResult> result;
  std::optional<Error> error;  // neither: std::bad_alloc
  std::optional<int> victim;   // the rank whose allocation failed, if it came as far as its wrap
  bool victim_is_a_rank = false;
};

const char* here() { return static_cast<const char*>(__builtin_frame_address(0)); }

/// Which stack is which rank's.
class Register {
 public:
  explicit Register(int ranks) : places_(static_cast<std::size_t>(ranks)) {}
  EngineParts parts() {
    EngineParts parts;
    parts.wrap = [this](Communicator& network) -> std::unique_ptr<Communicator> {
      const std::lock_guard lock(mutex_);
      places_[static_cast<std::size_t>(network.rank())] = here();
      return nullptr;
    };
    return parts;
  }
  std::optional<int> rank_of(const char* place) const {
    const auto found = std::ranges::find_if(places_, [place](const char* each) {
      return each != nullptr && counted_memory::on_one_stack(each, place);
    });
    if (found == places_.end()) return {};
    return static_cast<int>(found - places_.begin());
  }

 private:
  std::mutex mutex_;
  std::vector<const char*> places_;
};

Outcome run_in_outage(const SmallRun& run, std::int64_t first, std::int64_t count) {
  Register known(run.options.ranks);
  const Engine engine(known.parts());
  const AttentionInput input = run.input();
  Outcome outcome;
  Outage outage(first, count);
  try {
    RunResult result = engine.run(input, run.options);
    outage.end();
    outcome.result = std::move(result);
  } catch (const Error& error) {
    outage.end();
    outcome.error = error;
  } catch (const std::bad_alloc&) {
    outage.end();
  }
  const char* victim = counted_memory::victim();
  outcome.victim_is_a_rank = victim != nullptr && !counted_memory::on_one_stack(victim, here());
  if (outcome.victim_is_a_rank) outcome.victim = known.rank_of(victim);
  return outcome;
}

bool contains(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

/// One allocation fails: the error is typed and names the very rank.
void check_single(const Outcome& outcome) {
  ASSERT_TRUE(outcome.error) << "a bare std::bad_alloc";
  EXPECT_EQ(outcome.error->kind(), ErrorKind::environment);
  EXPECT_TRUE(contains(*outcome.error, "out of memory")) << outcome.error->what();
  EXPECT_EQ(contains(*outcome.error, "rank "), outcome.victim_is_a_rank) << outcome.error->what();
  if (outcome.victim) {
    EXPECT_TRUE(contains(*outcome.error, "rank " + std::to_string(*outcome.victim) + ":"))
        << outcome.error->what();
  }
}

/// Nothing is left: all ranks fail, and which of them says so first is open.
void check_lasting(const Outcome& outcome) {
  if (!outcome.victim_is_a_rank) {
    EXPECT_TRUE(!outcome.error || outcome.error->kind() == ErrorKind::environment);
    return;
  }
  ASSERT_TRUE(outcome.error) << "a bare std::bad_alloc";
  EXPECT_TRUE(contains(*outcome.error, "rank ")) << outcome.error->what();
  EXPECT_TRUE(contains(*outcome.error, "out of memory")) << outcome.error->what();
}

struct Plan {
  std::int64_t count = 1;
  void (*check)(const Outcome&) = check_single;
};

/// False when the run had fewer allocations than that.
bool survives(const SmallRun& run, const RunResult& right, std::int64_t first, const Plan& plan) {
  const std::int64_t before = counted_memory::live();
  bool struck = false;
  {
    const Outcome outcome = run_in_outage(run, first, plan.count);
    struck = counted_memory::victim() != nullptr;
    if (outcome.result) {
      EXPECT_TRUE(same_bits(*outcome.result, right));
      EXPECT_FALSE(struck) << "allocation " << first << " failed and nobody noticed";
    } else {
      plan.check(outcome);
    }
  }
  EXPECT_EQ(counted_memory::live(), before) << "leaked after allocation " << first << " failed";
  EXPECT_TRUE(same_bits(Engine().run(run.input(), run.options), right));
  return struck;
}

void fail_every_allocation(const Transport& transport, const Plan& plan) {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    for (const Pass last_pass : {Pass::forward, Pass::backward}) {
      const SmallRun run = small_run(transport, ranks, last_pass);
      const RunResult right = Engine().run(run.input(), run.options);
      std::int64_t first = 0;
      while (survives(run, right, first, plan)) {
        ASSERT_FALSE(testing::Test::HasFailure()) << ranks << " ranks, allocation " << first;
        ++first;
      }
      EXPECT_GT(first, 50) << "allocations were not counted";
    }
  }
}

TEST_P(OutOfMemory, at_any_one_allocation_is_an_error_that_names_the_rank) {
  fail_every_allocation(GetParam(), {.count = 1, .check = check_single});
}

TEST_P(OutOfMemory, from_any_allocation_on_is_an_error_that_names_a_rank) {
  fail_every_allocation(GetParam(), {.count = Outage::kForEver, .check = check_lasting});
}

/// Two ranks exchange a message while the third has nothing to do.
void exchange_of_two(Communicator& network) {
  if (network.rank() == 2) return;
  std::vector<int> mine(100, network.rank()), theirs(100);
  const int peer = 1 - network.rank();
  const Request in = network.post_receive(peer, 0, writable_bytes_of(theirs.data(), 100));
  const Request out = network.post_send(peer, 0, bytes_of(mine.data(), 100));
  network.wait(in);
  network.wait(out);
}

// A rank that ends may be the one in whose thread a message of others arrives.
TEST(SimulatedOutOfMemory, while_a_rank_ends_is_an_error_too) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    bool struck = true;
    for (std::int64_t first = 0; struck; ++first) {
      std::optional<Error> error;
      Outage outage(first, 1);
      try {
        run_simulated(3, seed, {}, exchange_of_two);
      } catch (const Error& thrown) {
        outage.end();
        error = thrown;
      } catch (const std::bad_alloc&) {  // before the ranks
      }
      outage.end();
      const char* victim = counted_memory::victim();
      struck = victim != nullptr;
      const bool by_rank = struck && !counted_memory::on_one_stack(victim, here());
      ASSERT_EQ(error && contains(*error, "rank ") && contains(*error, "out of memory"), by_rank)
          << "seed " << seed << ", allocation " << first;
    }
  }
}

}  // namespace
}  // namespace ringlab::ring
