#include "reference/model/many_ranks.h"

#include <gtest/gtest.h>

#include <string>

namespace ringlab::model {
namespace {

struct Setting {
  const char* machine;
  const char* mask;
  std::int64_t chunk;
  Pass pass;
  bool by_nodes;
};

std::string words(const Setting& s) {
  return std::string(s.machine) + " " + s.mask + " chunk " + std::to_string(s.chunk) +
         (s.pass == Pass::forward ? " forward" : " backward") + (s.by_nodes ? " by nodes" : "");
}

Job job_of(const Setting& s, int ranks, const Machine& machine) {
  const std::int64_t tokens = s.chunk * ranks;
  Job job;
  job.problem.shape = {1, 32, 8, tokens, tokens, 128, 128};
  job.problem.dtype = DType::bf16;
  job.problem.mask = parse_mask(s.mask).bind(tokens, tokens);
  job.options.ranks = ranks;
  job.options.layout =
      job.problem.mask.text().starts_with("window") ? LayoutKind::contiguous : LayoutKind::zigzag;
  job.passes = {s.pass};
  if (s.by_nodes) {
    job.options.schedule = ScheduleKind::double_ring;
    job.options.node_ranks = machine.node_ranks;
    job.options.slots = machine.node_ranks + 1;
  }
  return job;
}

/// Of all that is executed, what is continued.
double ratio(const Setting& s, int ranks) {
  const Machine found = find_machine(s.machine);
  const Job job = job_of(s, ranks, found);
  const Machine machine = suited_to(found, job.problem);
  const double all = simulate_job(job, needs_of(job.problem, job.options), machine).seconds;
  return seconds_of_many(job, machine) / all;
}

TEST(ManyRanks, go_on_as_some_began) {
  for (const char* machine : {"h100", "ethernet"}) {
    for (const char* mask : {"causal", "full", "window:4095,0"}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const std::int64_t chunk : {512, 4096}) {
          for (const bool by_nodes : {false, true}) {
            const Setting setting{machine, mask, chunk, pass, by_nodes};
            EXPECT_NEAR(ratio(setting, 256), 1, 0.02) << words(setting);
          }
        }
      }
    }
  }
}

TEST(ManyRanks, go_on_where_the_last_node_is_not_full) {
  for (const char* machine : {"h100", "pcie"}) {
    for (const char* mask : {"causal", "full"}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const std::int64_t chunk : {512, 4096}) {
          for (const bool by_nodes : {false, true}) {
            for (const int ranks : {65, 66, 100, 131, 135}) {
              const Setting setting{machine, mask, chunk, pass, by_nodes};
              EXPECT_NEAR(ratio(setting, ranks), 1, by_nodes ? 0.08 : 0.02)
                  << words(setting) << " " << ranks;
            }
          }
        }
      }
    }
  }
}

TEST(ManyRanks, go_on_as_far_as_a_window_reaches) {
  for (const char* mask : {"window:40000,0", "window:100000,0", "window:100000,50000"}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const std::int64_t chunk : {512, 2048}) {
        for (const bool by_nodes : {false, true}) {
          const Setting setting{"h100", mask, chunk, pass, by_nodes};
          EXPECT_NEAR(ratio(setting, 160), 1, by_nodes ? 0.09 : 0.02) << words(setting);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringlab::model
