// A machine that has no more memory or threads is no verdict: at whichever allocation and thread it
// is, a correct subject is right or was not judged.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/rounds.h"
#include "property_tests/verify.h"
#include "reference/core/machine/folder.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/rows/parallel_rows.h"
#include "tests/optimized/ring/counted_memory.h"
#include "tests/property_tests/naive_subject.h"
#include "tests/property_tests/refused_threads.h"

namespace ringlab::verify {
namespace {

using counted_memory::Outage;
using refused_threads::Shortage;

enum class Verdict { right, wrong, none };

Verdict verdict_of(const std::function<bool()>& passes) {
  try {
    return passes() ? Verdict::right : Verdict::wrong;
  } catch (const MachineError&) {
    return Verdict::none;
  } catch (const std::bad_alloc&) {  // none left for the words either
    return Verdict::none;
  }
}

Case case_on(TransportKind transport) {
  Case c;
  c.shape = {1, 2, 1, 6, 6, 4, 4};
  c.ranks = 3;
  c.transport = transport;
  return c;
}

/// The law on one case of a subject that is right.
bool law_holds(const char* subject, const char* law, TransportKind transport) {
  return run_law(find_subject(subject), find_law(law), case_on(transport)).outcome !=
         Outcome::broken;
}

constexpr TransportKind kTransports[] = {TransportKind::threads, TransportKind::simulated};
constexpr const char* kSubjects[] = {"broadcast", "ring", "optimized"};

TEST(ScarceMachine, without_memory_at_any_one_allocation_gives_no_wrong_verdict) {
  for (const TransportKind transport : kTransports) {
    for (const char* subject : kSubjects) {
      std::int64_t judged = 0, unjudged = 0;
      // All of the first ones, then ever fewer.
      for (std::int64_t first = 0;; first += 1 + first / 40) {
        std::optional<Outage> outage;
        outage.emplace(first, 1);
        const Verdict verdict =
            verdict_of([&] { return law_holds(subject, "equals_reference", transport); });
        outage->end();
        ASSERT_NE(verdict, Verdict::wrong) << subject << ", allocation " << first;
        ++(verdict == Verdict::right ? judged : unjudged);
        if (counted_memory::victim() == nullptr) break;
      }
      EXPECT_GT(unjudged, 50) << subject << ": allocations were not refused";
      EXPECT_GT(judged, 0) << subject;
    }
  }
}

TEST(ScarceMachine, without_memory_at_any_one_allocation_lists_a_whole_folder_or_none) {
  const std::vector<std::string> all = names_in("/proc/self");
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_GT(all.size(), 10U);
  EXPECT_TRUE(names_in("/proc/self/none").empty());
  bool is_refused = true;
  for (std::int64_t first = 0; is_refused; ++first) {
    Outage outage(first, 1);
    try {
      const std::vector<std::string> found = names_in("/proc/self");
      outage.end();
      EXPECT_EQ(found, all);
    } catch (const std::bad_alloc&) {
      outage.end();
    }
    is_refused = counted_memory::victim() != nullptr;
  }
}

TEST(ScarceMachine, without_memory_from_any_allocation_on_gives_no_wrong_verdict) {
  for (std::int64_t first = 0;; first += 1 + first / 10) {
    Outage outage(first, Outage::kForEver);
    const Verdict verdict =
        verdict_of([] { return law_holds("optimized", "P71", TransportKind::threads); });
    outage.end();
    ASSERT_NE(verdict, Verdict::wrong) << "allocation " << first;
    if (counted_memory::victim() == nullptr) break;
  }
}

TEST(ScarceMachine, without_memory_in_a_search_gives_no_wrong_verdict) {
  const VerifyOptions options{.cases_per_law = 3, .laws = {"equals_reference", "P1"}};
  const Subject subject = find_subject("optimized");
  for (std::int64_t first = 0;; first += 1 + first / 5) {
    Outage outage(first, 1);
    const Verdict verdict = verdict_of([&] {
      const SubjectVerdict found = verify_subject(subject, options);
      return std::ranges::none_of(found.laws,
                                  [](const LawVerdict& law) { return law.failure.has_value(); });
    });
    outage.end();
    ASSERT_NE(verdict, Verdict::wrong) << "allocation " << first;
    if (counted_memory::victim() == nullptr) break;
  }
}

TEST(ScarceMachine, without_threads_at_any_one_thread_gives_no_wrong_verdict) {
  for (const std::int64_t count : {std::int64_t{1}, Outage::kForEver}) {
    for (const char* subject : kSubjects) {
      bool was_refused = true;
      for (std::int64_t first = 0; was_refused; ++first) {
        const Shortage shortage(first, count);
        const Verdict verdict = verdict_of(
            [&] { return law_holds(subject, "equals_reference", TransportKind::threads); });
        was_refused = shortage.refused() > 0;
        ASSERT_NE(verdict, Verdict::wrong) << subject << ", thread " << first;
        EXPECT_TRUE(first > 0 || was_refused) << "threads were not refused";
      }
    }
  }
}

TEST(ScarceMachine, with_fewer_threads_than_wished_for_does_the_same_rows) {
  for (std::int64_t first = 0; first < 4; ++first) {
    const Shortage shortage(first, Outage::kForEver);
    std::vector<std::atomic<int>> done(100);
    parallel_rows(std::ssize(done), 4,
                  [&] { return [&](std::int64_t row) { ++done[static_cast<std::size_t>(row)]; }; });
    EXPECT_TRUE(std::ranges::all_of(done, [](const auto& times) { return times == 1; })) << first;
    EXPECT_EQ(shortage.refused(), first < 3 ? 1 : 0);
  }
}

TEST(ScarceMachine, with_no_thread_but_this_one_does_all_rounds_on_it) {
  const RoundsOptions options{
      .laws = {.cases_per_law = 2, .laws = {"equals_reference"}}, .rounds = 2, .threads = 4};
  const Subject subject = naive_subject();
  RoundsProgress progress;
  const Shortage shortage(0, Outage::kForEver);
  const auto found = verify_in_rounds({subject}, options, progress);
  EXPECT_EQ(found.at(0).whole_rounds, 2);
  EXPECT_TRUE(found.at(0).verdict.passed());
  EXPECT_GE(shortage.refused(), 1);
}

}  // namespace
}  // namespace ringlab::verify
