// A failing case run again, to be shown: the events of every rank, and one wrong row by chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/diagnosis/events/event_mistakes.h"
#include "property_tests/law.h"
#include "reference/core/schedule/trace.h"

namespace ringlab::verify {

/// The exact number, and the one that the subject gave.
struct Told {
  double exact = 0, got = 0;
};

/// The state of a row after one chunk more.
struct RowStep {
  int owner = 0;
  std::vector<std::int64_t> keys = {};  ///< keys of the chunk that the row sees
  /// The weight of these keys in the end; nothing where it was not read out.
  std::optional<Told> weight = {};
  /// The answer if there were no chunks after this one; nothing where the subject gave none.
  std::optional<Told> o = {}, lse = {};
  bool wrong = false;  ///< o or lse is off by more than rounding
};

struct WrongRow {
  Element at;  ///< the element that is off most
  int rank = 0;
  Told o, lse;
  std::vector<RowStep> steps = {};  ///< in the order in which the rank meets chunks
};

struct Retelling {
  std::string failed;                               ///< the error thrown; empty where it answered
  std::vector<std::vector<TraceEvent>> ranks = {};  ///< empty for subjects that record nothing
  std::vector<std::vector<int>> needed = {};  ///< by rank: the chunks that it has to compute on
  std::optional<EventFinding> seen = {};      ///< a call that no right program makes
  std::optional<WrongRow> row = {};           ///< a row whose o or lse is wrong
  bool repeats_chunks = false;  ///< ranks compute on a chunk for one asker after the other
};

/// Runs the case with simulated messages, then without its last chunks, and with values that show
/// weights; where o and lse are right, with the backward pass. Deterministic; a run for each chunk
/// and each few keys.
Retelling retell(const Subject& subject, const Case& failing);

}  // namespace ringlab::verify
