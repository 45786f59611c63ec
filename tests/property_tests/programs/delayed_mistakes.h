// Planted stream mistakes where nobody chooses the order: on a device, or on a clock.
//
// Most of them go unnoticed there, because what is not waited for is done in time all the same. So
// its stream is held up right before it: then what should have waited runs first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/property_tests/programs/stream_mistakes.h"
#include "tests/property_tests/programs/stream_trial.h"

namespace ringlab::ring {

/// A ring of 5 ranks with two slots, so that slots of both kinds are used again. All chunks have as
/// many tokens, as in trial_of_equal_chunks(); channels are what kernels for devices take.
Trial trial_of_delays();

/// What a run of both passes, with programs changed by `edit`, makes of a trial.
using RunEdited = std::function<Bits(const StreamEdit& edit)>;

/// Empty, or for each operation on slots before which a stream that stands still for `delay_ns`
/// changes bits: none may, in programs without a mistake.
std::string delays_that_show(const Trial& trial, const RunEdited& run, std::int64_t delay_ns);

/// What became of a mistake at all places where it can be made.
struct ShownMistake {
  int places = 0;
  int runs = 0;
  std::string unseen;  ///< the places where results have the bits of `due`, whatever is held up
};
/// Streams are held up for `delay_ns`; where that does not show the mistake, 10 times as long.
ShownMistake show(const StreamMistake& mistake, const Trial& trial, const RunEdited& run,
                  const Bits& due, std::int64_t delay_ns);

}  // namespace ringlab::ring
