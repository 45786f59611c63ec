// Parts of the engine that its caller may exchange or listen to.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "optimized/cpu/kernel_table.h"
#include "optimized/transport/communicator.h"
#include "reference/core/schedule/schedule.h"
#include "reference/core/schedule/schedule_plan.h"

namespace ringlab::ring {

struct EngineParts {
  /// The plan that ranks of one process share; each rank makes its own unless set.
  std::shared_ptr<const SchedulePlan> plan = {};
  /// Makes the schedules that are executed, in place of the plan's programs.
  std::function<Schedule(const ScheduleSpec&, const NeedMatrix&, Pass)> make_schedule = {};
  /// Puts a decorator around each rank's communicator.
  std::function<std::unique_ptr<Communicator>(Communicator&)> wrap = {};
  /// Zero of the times of trace events; the moment when the ranks have agreed unless set.
  std::optional<std::chrono::steady_clock::time_point> clock_zero = {};
  /// The kernels that compute blocks.
  cpu::KernelTable kernels = {};
  /// Is told of the work of the ranks while they compute; it adds up to engine_work().
  cpu::WorkListener work_done = {};
};

}  // namespace ringlab::ring
