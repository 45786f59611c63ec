#include "optimized/cpu/parallel.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>

namespace ringlab::cpu {
namespace {

TEST(Parallel, every_part_is_done_once_by_any_number_of_threads) {
  for (const int threads : {1, 2, 3, 8, 40}) {
    for (const std::int64_t parts : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(parts));
      share_out(parts, threads,
                [&] { return [&](std::int64_t part) { ++done[static_cast<std::size_t>(part)]; }; });
      for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Parallel, what_a_part_throws_reaches_the_caller_after_all_have_ended) {
  for (const int threads : {1, 2, 5}) {
    std::atomic<int> at_work = 0;
    const auto run = [&] {
      share_out(50, threads, [&] {
        return [&](std::int64_t part) {
          ++at_work;
          if (part == 3) {
            --at_work;
            throw std::runtime_error("part 3");
          }
          --at_work;
        };
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_EQ(at_work, 0);
  }
}

TEST(Parallel, a_worker_that_cannot_be_made_is_an_error) {
  const auto run = [] {
    share_out(4, 2, []() -> std::function<void(std::int64_t)> { throw std::bad_alloc(); });
  };
  EXPECT_THROW(run(), std::bad_alloc);
}

}  // namespace
}  // namespace ringlab::cpu
