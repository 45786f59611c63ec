#include "optimized/ring/streams/stream_setting.h"

#include <algorithm>

namespace ringlab::ring {

StreamSetting stream_setting(const Problem& problem, const RunOptions& options) {
  // Made once for all ranks and both passes, because the need matrix takes time.
  const Layout queries = make_layout(options, problem.shape.q_tokens, options.q_layout);
  const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  return {problem, options, queries, keys, need_matrix(problem.mask, queries, keys)};
}

StreamProgram stream_program_of(const StreamSetting& setting, Pass pass, CopyBy copy_by,
                                const StreamEdit& edit) {
  const Schedule schedule = build_schedule(schedule_spec(setting.options), setting.need, pass);
  const StreamProgram program = make_stream_program(schedule, copy_by);
  return edit ? edit(program) : program;
}

std::int64_t most_tokens(const StreamProgram& program, const Layout& keys, int rank) {
  // Counts copies, which decide how long the slots of `rank` must be.
  std::int64_t most = 0;
  for (const StreamOperation& operation : program.operations) {
    if (operation.action != StreamAction::copy || operation.to.rank != rank) continue;
    if (operation.payload != Payload::chunk) continue;
    most = std::max(most, keys.positions(operation.owner).size());
  }
  return most;
}

}  // namespace ringlab::ring
