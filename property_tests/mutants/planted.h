// The pieces that a generated registry of mutants is written with.
#pragma once

#include <algorithm>
#include <vector>

#include "property_tests/mutants/mutants.h"
#include "reference/core/dtype.h"
#include "stages/common/run_ranks.h"

namespace ringlab::mutants {

/// A short deadline, since a mutant may wait for a message that nobody sends; at the laws' sizes a
/// run takes milliseconds.
inline constexpr double kMutantTimeout = 2.0;

/// The subject of the correct stage under the mutant's name, limited to these dtypes.
verify::Subject subject_like(const MutantInfo& info, std::vector<DType> dtypes);

/// A mutant whose ranks run `body`, compiled for Elements only.
template <class... Elements, class Body>
Mutant planted(MutantInfo info, Body body) {
  verify::Subject subject = subject_like(info, {dtype_of<Elements>...});
  subject.run = [body](const AttentionInput& input, const RunOptions& options) {
    RunOptions limited = options;
    limited.timeout_s = std::min(options.timeout_s, kMutantTimeout);
    return stages::run_ranks<Elements...>(input, limited, body);
  };
  return {std::move(info), std::move(subject)};
}

/// The mutants that were generated from the stages' text, stage by stage.
std::vector<Mutant> stage_mutants();

}  // namespace ringlab::mutants
