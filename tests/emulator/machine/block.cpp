#include "tests/emulator/machine/block.h"

#include <map>
#include <utility>

#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

/// "0-3, 7"; `threads` increase.
std::string ranges(const std::vector<int>& threads) {
  std::string text;
  for (std::size_t i = 0; i < threads.size();) {
    std::size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(threads[i]);
    if (last > i) text += "-" + std::to_string(threads[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

ThreadBlock::ThreadBlock(Scheduler& its_scheduler, const Launch& its_launch, int its_index,
                         std::shared_ptr<ThreadCluster> its_cluster)
    : scheduler(its_scheduler),
      launch(its_launch),
      index(its_index),
      cluster(std::move(its_cluster)),
      cluster_rank(static_cast<int>(cluster->blocks.size())),
      threads(static_cast<std::size_t>(launch.threads)),
      shared(launch.shared_bytes),
      warps(static_cast<std::size_t>(launch.threads / 32)),
      named_barriers(launch.threads),
      mbarriers(*this),
      copies(launch.threads),
      box_stores(launch.threads),
      warpgroups(static_cast<std::size_t>((launch.threads + 127) / 128)),
      registers(launch.threads, launch.registers_per_thread) {
  cluster->blocks.push_back(this);
  for (int i = 0; i < launch.threads; ++i) {
    threads[static_cast<std::size_t>(i)] = {.block = this, .index = i};
  }
}

void ThreadBlock::end_thread(const Thread& thread) {
  warps[static_cast<std::size_t>(thread.index / 32)].end_lane(thread.index % 32);
  named_barriers.end_thread();
  warpgroups[static_cast<std::size_t>(thread.index / 128)].end_thread(thread.index % 128);
  if (++ended_threads < launch.threads) return;
  if (copies.groups().under_way() > 0)
    fault("ends with copy_16_bytes() under way that nobody waited for");
  if (boxes.under_way() > 0) fault("ends with load_box() under way that nobody waited for");
  if (box_stores.groups().under_way() > 0) {
    fault("ends with store_box() or add_box() under way that nobody waited for");
  }
  shared.check_edges();
}

std::string ThreadBlock::describe_waiting() const {
  std::map<std::string, std::vector<int>> who;
  for (const Thread& thread : threads) {
    if (thread.fibre && !thread.fibre->has_ended()) {
      who[thread.waiting.describe()].push_back(thread.index);
    }
  }
  std::string text;
  for (const auto& [what, indices] : who) {
    text += fmt::format("\n  block {}, threads {}: {}", index, ranges(indices), what);
  }
  return text;
}

}  // namespace ringlab::cuda::emulator
