// The export of a shared library with one stage: a learner's file, compiled by itself.
#pragma once

#include "stages/common/run_ranks.h"

namespace ringlab::stages {

/// One stage, for f32 only, so that it compiles in two seconds.
struct StageLibrary {
  int version = 1;         ///< of this structure
  const char* stage = "";  ///< the stage that it stands for: "ring"
  RunResult (*run)(const AttentionInput& input, const RunOptions& options) = nullptr;
};

/// The name of the symbol: `const StageLibrary* ringlab_stage_v1()`, with C linkage.
inline constexpr const char* kStageSymbol = "ringlab_stage_v1";

}  // namespace ringlab::stages

/// Exports the stage's `attention`; to stand once in a library, after the stage's header.
#define RINGLAB_STAGE_LIBRARY(name)                                                              \
  extern "C" __attribute__((visibility("default"))) const ringlab::stages::StageLibrary*         \
  ringlab_stage_v1() {                                                                           \
    static const ringlab::stages::StageLibrary library{                                          \
        1, #name, [](const ringlab::AttentionInput& input, const ringlab::RunOptions& options) { \
          return ringlab::stages::run_ranks<float>(                                              \
              input, options,                                                                    \
              []<class Element>(ringlab::stages::RankProblem<Element>& r) {                      \
                ringlab::stages::name::attention(r);                                             \
              },                                                                                 \
              #name);                                                                            \
        }};                                                                                      \
    return &library;                                                                             \
  }
