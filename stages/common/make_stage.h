// Makes a Stage of what its header says; stage.cpp.in does so for each line of stages.txt.
#pragma once

#include <string>

#include "stages/common/run_ranks.h"
#include "stages/common/stage.h"

namespace ringlab::stages {

using StageRun = RunResult (*)(const AttentionInput& input, const RunOptions& options);
using StageProfile = NumericsProfile (*)(const Problem& problem, const RunOptions& options);

inline Stage make_stage(const char* id, const char* name, const StageFacts& facts,
                        StageProfile profile, StageRun run) {
  return {facts, id, name, run, profile};
}

/// Runs the rank body of a stage, or on GPUs what the stage has for them.
template <class Body>
RunResult run_stage(const char* name, const StageFacts& facts, const AttentionInput& input,
                    const RunOptions& options, Body body) {
  const bool on_cpu = options.device == DeviceKind::cpu;
  if (facts.cpu_only && !on_cpu) {
    throw_usage_error({.where = std::string("device of stage ") + name,
                       .expected = "cpu",
                       .actual = "cuda",
                       .hint = "This stage is plain loops, to be read"});
  }
  if (facts.on_gpus && !on_cpu) return facts.on_gpus(input, options);
  return run_ranks(input, options, body, name);
}

}  // namespace ringlab::stages
