// A small run of the engine on each in-process transport, and what it gives or dies of.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "reference/core/error.h"

namespace ringlab::ring {

struct Transport {
  std::string name;
  TransportKind kind = TransportKind::threads;
  bool rendezvous = false;
};
inline void PrintTo(const Transport& transport, std::ostream* out) { *out << transport.name; }
inline std::string transport_name(const testing::TestParamInfo<Transport>& info) {
  return info.param.name;
}
inline std::vector<Transport> in_process_transports() {
  return {{"threads", TransportKind::threads, false},
          {"threads_without_buffers", TransportKind::threads, true},
          {"simulated", TransportKind::simulated, false},
          {"simulated_without_buffers", TransportKind::simulated, true}};
}

struct SmallRun {
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  Tensor<double> dout;
  Pass last_pass = Pass::backward;

  AttentionInput input() const {
    AttentionInput input = data.input(problem);
    if (last_pass == Pass::backward) input.dout = dout.view();
    return input;
  }
};

/// 3 tokens a rank with a full mask: every rank sends and receives at every step.
inline SmallRun small_run(const Transport& transport, int ranks, Pass last_pass) {
  verify::Case c;
  c.shape = {.batch = 1,
             .q_heads = 2,
             .kv_heads = 1,
             .q_tokens = 3 * ranks,
             .kv_tokens = 3 * ranks,
             .head_dim = 2,
             .v_dim = 2};
  c.ranks = ranks;
  c.transport = transport.kind;
  c.rendezvous = transport.rendezvous;
  SmallRun run{verify::make_problem(c), verify::make_options(c), verify::make_tensors(c),
               verify::make_dout(c), last_pass};
  run.options.timeout_s = 20;
  return run;
}

inline bool same_bits(const Tensor<double>& a, const Tensor<double>& b) {
  if (!(a.extents() == b.extents())) return false;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const auto bits = [i](const Tensor<double>& t) {
      return std::bit_cast<std::uint64_t>(t.values()[i]);
    };
    if (bits(a) != bits(b)) return false;
  }
  return true;
}
inline bool same_bits(const RunResult& a, const RunResult& b) {
  if (a.gradients.has_value() != b.gradients.has_value()) return false;
  return same_bits(a.output.out, b.output.out) && same_bits(a.output.lse, b.output.lse) &&
         (!a.gradients || (same_bits(a.gradients->dq, b.gradients->dq) &&
                           same_bits(a.gradients->dk, b.gradients->dk) &&
                           same_bits(a.gradients->dv, b.gradients->dv)));
}

/// What the run dies of, if it does.
inline std::optional<RankFailure> failure_of(const EngineParts& parts, const SmallRun& run) {
  try {
    Engine(parts).run(run.input(), run.options);
  } catch (const RankError& error) {
    return error.failure();
  }
  return {};
}

}  // namespace ringlab::ring
