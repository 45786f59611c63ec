#include "property_tests/mutants/legal_variants.h"

#include <algorithm>
#include <string>
#include <utility>

#include "property_tests/subject_list.h"

namespace ringlab::mutants {
namespace {

using verify::Subject;

/// A stage whose options are changed before it runs.
template <class Change>
Subject with_options(const std::string& name, const std::string& stage, Change change) {
  Subject subject = verify::find_subject(stage);
  subject.name = "legal:" + name;
  subject.title = stage + ", " + name;
  subject.run = [run = subject.run, change](const AttentionInput& input, RunOptions options) {
    change(input.problem, options);
    return run(input, options);
  };
  subject.profile = [profile = subject.profile, change](const Problem& problem,
                                                        RunOptions options) {
    change(problem, options);
    return profile(problem, options);
  };
  return subject;
}

Layout reversed(const Layout& layout) {
  std::vector<Positions> parts;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    std::vector<std::int64_t> positions = layout.positions(rank).to_list();
    std::reverse(positions.begin(), positions.end());
    parts.push_back(Positions::from_list(positions));
  }
  return Layout::from_parts(std::move(parts));
}

// Extremes of what an implementation may choose: tiles of one row and one key, a single tile,
// delays on every message, rings in both directions, nodes of two ranks.
void tiles_of_one(const Problem&, RunOptions& options) {
  options.tile_queries = options.tile_keys = 1;
}

void one_tile(const Problem&, RunOptions& options) {
  options.tile_queries = 64;
  options.tile_keys = 1024;
}

void always_delayed(const Problem&, RunOptions& options) {
  options.transport = TransportKind::simulated;
  options.delay_seed += 1000;
}

void over_bf16(const Problem&, RunOptions& options) { options.wire = WireFormat::bf16; }
void over_fp8(const Problem&, RunOptions& options) { options.wire = WireFormat::fp8; }
void one_slot(const Problem&, RunOptions& options) { options.slots = 1; }
void with_checksums(const Problem&, RunOptions& options) { options.integrity = Integrity::full; }
void broadcast(const Problem&, RunOptions& options) { options.schedule = ScheduleKind::broadcast; }
void both_ways(const Problem&, RunOptions& options) {
  options.schedule = ScheduleKind::bidirectional;
}
/// Puts two ranks on a node; the last node has one when there is an odd one left.
void nodes_of_two(const Problem&, RunOptions& options) {
  options.schedule = ScheduleKind::double_ring;
  options.node_ranks = 2;
}

/// Goes through every chunk from its last key to its first, as some kernels do for causal masks.
Subject with_keys_in_reverse(const std::string& name, const std::string& stage) {
  Subject subject = with_options(name, stage, [](const Problem& problem, RunOptions& options) {
    options.kv_layout = reversed(make_layout(options, problem.shape.kv_tokens, options.kv_layout));
  });
  subject.can.drop({verify::Ability::sums_keys_in_order});
  return subject;
}

void round_all(Tensor<double>& tensor, DType dtype) {
  for (double& value : tensor.values()) value = round_to(dtype, value);
}

/// Computes in f64 whatever the dtype, and rounds at the end.
Subject in_double() {
  Subject subject = verify::find_subject("flash_blocks");
  subject.name = "legal:in_double";
  subject.title = "flash_blocks, computed in f64";
  subject.costs = {};  // it sends doubles
  subject.run = [run = subject.run](AttentionInput input, const RunOptions& options) {
    const DType dtype = std::exchange(input.problem.dtype, DType::f64);
    RunResult result = run(input, options);
    round_all(result.output.out, dtype);
    round_all(result.output.lse, dtype == DType::f64 ? DType::f64 : DType::f32);
    return result;
  };
  return subject;
}

}  // namespace

std::vector<Subject> legal_variants() {
  return {
      in_double(),
      with_keys_in_reverse("keys_in_reverse", "flash_blocks"),
      with_keys_in_reverse("keys_of_each_hop_in_reverse", "ring"),
      with_options("one_key_per_tile", "merge", tiles_of_one),
      with_options("one_tile_for_all", "causal_ring", one_tile),
      with_options("always_delayed", "causal_ring", always_delayed),
      with_options("engine_wire_bf16", "optimized", over_bf16),
      with_options("engine_wire_fp8", "optimized", over_fp8),
      with_options("engine_one_slot", "optimized", one_slot),
      with_options("engine_with_checksums", "optimized", with_checksums),
      with_options("engine_broadcast", "optimized", broadcast),
      with_options("engine_both_ways", "optimized", both_ways),
      with_options("engine_nodes_of_two", "optimized", nodes_of_two),
  };
}

}  // namespace ringlab::mutants
