// The goals of docs/performance.md.
#include "cli/bench/cpu/torch_cases.h"
#include "cli/bench/measure/goal.h"

namespace ringlab::bench {
namespace {

constexpr const char* kShare = "share";

void add_kernel_goals(std::vector<Goal>& goals) {
  const std::string forward = "forward f32, one thread, share of the peak of multiply-adds, ";
  goals.push_back({"C1.full", forward + "head_dim 128", kShare, 0.90, 0.94});
  goals.push_back({"C1.causal", forward + "head_dim 128, causal", kShare, 0.88, 0.92});
  goals.push_back({"C2.full", forward + "head_dim 64", kShare, 0.88, 0.92});
  goals.push_back({"C2.causal", forward + "head_dim 64, causal", kShare, 0.86, 0.90});
  goals.push_back({"C3", "forward f32, head_dim 128: flop/s over those of the best matrix product",
                   kTimes, 0.92, 0.95});
  const std::string dots = "forward bf16, one thread, share of the peak of dot products, head_dim ";
  goals.push_back({"C4.d128", dots + "128", kShare, 0.83, 0.88});
  goals.push_back({"C4.d64", dots + "64", kShare, 0.77, 0.82});
  const std::string matrices =
      "forward bf16 in AMX, one thread, share of the peak of matrix products, head_dim ";
  goals.push_back({"C4.amx.d128", matrices + "128", kShare, 0.45, 0.60});
  goals.push_back({"C4.amx.d64", matrices + "64", kShare, 0.30, 0.40});
}

void add_reference_goals(std::vector<Goal>& goals) {
  goals.push_back({"C5.peak", "fp64 reference, causal, share of the peak of fp64 multiply-adds",
                   kShare, 0.75, 0.85});
  goals.push_back(
      {"C5.naive", "fp64 reference: time of naive fp64 loops over its own, causal", kTimes, 6, 10});
}

void add_backward_goals(std::vector<Goal>& goals) {
  const std::string backward = "backward f32, one thread, share of the peak of multiply-adds, ";
  for (const char* head_dim : {"128", "64"}) {
    const std::string id = std::string("C6.d") + head_dim;
    goals.push_back({id + ".full", backward + "head_dim " + head_dim, kShare, 0.70, 0.85});
    goals.push_back(
        {id + ".causal", backward + "head_dim " + head_dim + ", causal", kShare, 0.70, 0.85});
  }
}

void add_ring_goals(std::vector<Goal>& goals) {
  const std::string ring = "time of one shot over a ring's, zigzag causal, 2 cores, ranks: ";
  goals.push_back({"C7.p2", ring + "2", kTimes, 0.95, 0.98});
  goals.push_back({"C7.p4", ring + "4", kTimes, 0.95, 0.98});
}

void add_torch_goals(std::vector<Goal>& goals) {
  for (const TorchCase& one : torch_cases()) {
    goals.push_back(
        {"C8." + one.id(), "PyTorch's time over ours, " + one.text(), kTimes, 1.0, 1.2});
  }
}

void add_scaling_goals(std::vector<Goal>& goals) {
  const std::string text = "time of one thread over that of two, causal, ";
  goals.push_back({"C9.forward", text + "forward", kTimes, 1.9, 1.97});
  goals.push_back({"C9.backward", text + "backward", kTimes, 1.9, 1.97});
  const std::string memory =
      "memory of a rank over Q + O + state + chunks of K and V held, zigzag causal, ranks: ";
  goals.push_back({"C10.p2", memory + "2", kTimes, 1.05, 1.01, Sense::at_most});
  goals.push_back({"C10.p4", memory + "4", kTimes, 1.05, 1.01, Sense::at_most});
  const std::string decoding =
      "decoding one query against 65536 keys, f32, head_dim 64, two threads: share of the speed at "
      "which they read as many bytes, heads: ";
  goals.push_back({"C11.h1", decoding + "1", kShare, 0.75, 0.85});
  goals.push_back({"C11.h8", decoding + "8", kShare, 0.75, 0.85});
}

}  // namespace

const std::vector<Goal>& all_goals() {
  static const std::vector<Goal> goals = [] {
    std::vector<Goal> all;
    add_kernel_goals(all);
    add_reference_goals(all);
    add_backward_goals(all);
    add_ring_goals(all);
    add_torch_goals(all);
    add_scaling_goals(all);
    return all;
  }();
  return goals;
}

}  // namespace ringlab::bench
