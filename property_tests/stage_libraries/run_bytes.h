// A run between two processes of one build, as CBOR: its input, and its result or error.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "optimized/transport/call_record.h"
#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::verify {

/// The calls that ranks made to their network, by rank.
using Calls = std::vector<RankCalls>;

/// Asks for the calls of the ranks, too, or not.
enum class Recorded { no, yes };

/// The input and options of a run, with the memory of its tensors.
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
/// The error that a run threw, as bytes; a RankError stays one.
std::vector<std::uint8_t> bytes_of_error(const Error& error, const Calls& calls = {});
/// Reads the result; or throws the error that was thrown, or an environment error for bytes that
/// are neither: the other process may write anything. `input` and `ranks` say how large the result
/// has to be. Fills in `calls`, where it is not null, in both cases.
RunResult result_of_bytes(const std::vector<std::uint8_t>& bytes, const AttentionInput& input,
                          int ranks, Calls* calls = nullptr);

/// Bytes that are enough for a result of this run, or for its failure, and for its calls.
std::int64_t most_result_bytes(const AttentionInput& input, int ranks);

}  // namespace ringlab::verify
