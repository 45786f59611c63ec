// A run between two processes of one build, as CBOR: what is given, and what came of it.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "optimized/transport/call_record.h"
#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::verify {

/// What ranks asked of their network, by rank.
using Calls = std::vector<RankCalls>;

/// Whether the calls of the ranks are wanted, too.
enum class Recorded { no, yes };

/// What a run is given, with the memory of its tensors.
struct GivenRun {
  AttentionTensors tensors;
  Tensor<double> dout;
  AttentionInput input;
  RunOptions options;
  Recorded recorded = Recorded::no;
};
std::vector<std::uint8_t> bytes_of_run(const AttentionInput& input, const RunOptions& options,
                                       Recorded recorded = Recorded::no);
/// Dense copies of the tensors. Throws where the bytes are none of bytes_of_run().
std::unique_ptr<GivenRun> run_of_bytes(const std::vector<std::uint8_t>& bytes);

std::vector<std::uint8_t> bytes_of_result(const RunResult& result, const Calls& calls = {});
/// What a run threw, as bytes; a RankError stays one.
std::vector<std::uint8_t> bytes_of_error(const Error& error, const Calls& calls = {});
/// The result; or throws what was thrown, or an environment error for bytes that are neither: the
/// other process wrote them, and it may write anything. `problem` and `ranks` say how much there
/// has to be. Fills in `calls`, where it is not null, in both cases.
RunResult result_of_bytes(const std::vector<std::uint8_t>& bytes, const AttentionInput& input,
                          int ranks, Calls* calls = nullptr);

/// Bytes that are enough for a result of this run, or for its failure, and for its calls.
std::int64_t most_result_bytes(const AttentionInput& input, int ranks);

}  // namespace ringlab::verify
