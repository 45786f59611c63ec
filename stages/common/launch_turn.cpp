#include "stages/common/launch_turn.h"

#include <utility>

#include "optimized/cuda/stuck_device.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::stages {
namespace {

/// A kernel that has missed its deadline, and what it uses.
struct UnendedKernel {
  std::string where;
  std::function<bool()> has_ended;
  std::shared_ptr<void> uses;
};

/// The launches of all ranks. Never destroyed: that would wait for the kernel at the end.
struct Launches {
  std::mutex turn;
  UnendedKernel unended;  // has_ended is empty where there is none
};
Launches& launches() {
  static auto* const all = new Launches();
  return *all;
}

}  // namespace

LaunchTurn::LaunchTurn(std::string where) : where_(std::move(where)), lock_(launches().turn) {
  UnendedKernel& before = launches().unended;
  if (!before.has_ended) return;
  if (!before.has_ended()) {
    throw DeviceStuck({.where = where_,
                       .expected = "a device that is free",
                       .actual = "the kernel of " + before.where + " still at work on it"});
  }
  before = {};
}

void LaunchTurn::wait(double timeout_s, std::function<bool()> has_ended,
                      std::shared_ptr<void> uses) {
  if (ringlab::cuda::ends_within(timeout_s, has_ended)) return;
  launches().unended = {where_, std::move(has_ended), std::move(uses)};
  ringlab::cuda::throw_stuck(where_, timeout_s, {"its kernel still at work"});
}

}  // namespace ringlab::stages
