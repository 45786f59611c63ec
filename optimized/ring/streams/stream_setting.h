// The setting of runs of stream programs, whatever executes them.
#pragma once

#include <functional>
#include <optional>

#include "optimized/ring/ends.h"
#include "optimized/ring/streams/stream_program.h"
#include "reference/core/layout.h"

namespace ringlab::ring {

/// Changes a program before it is executed.
using StreamEdit = std::function<StreamProgram(const StreamProgram&)>;

/// Problem, options, layouts and need, which all ranks share.
struct StreamSetting {
  const Problem& problem;
  const RunOptions& options;
  Layout queries, keys;
  NeedMatrix need;

  RankTokens tokens(int rank) const {
    return {rank, queries.positions(rank), keys.positions(rank)};
  }
};

StreamSetting stream_setting(const Problem& problem, const RunOptions& options);

/// The program of a pass, changed by `edit` if there is one.
StreamProgram stream_program_of(const StreamSetting& setting, Pass pass, CopyBy copy_by,
                                const StreamEdit& edit);

/// The forward and the backward program; the latter where gradients are wanted.
struct StreamPrograms {
  StreamProgram forward;
  std::optional<StreamProgram> backward = {};
};

/// Tokens of the largest chunk that is copied into slots of `rank`.
std::int64_t most_tokens(const StreamProgram& program, const Layout& keys, int rank);

}  // namespace ringlab::ring
