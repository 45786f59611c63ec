// Early ends of the program: by Ctrl-C as a wish, by a device that does not end its work, by a
// machine that has run out of something.
#pragma once

#include <string_view>

#include "reference/core/machine/machine_error.h"

namespace ringlab::cli {

/// Writes "ringlab: MESSAGE" and a line end to standard error, in one piece, allocating nothing. A
/// failed write is ignored: there is nobody to be told.
void say(std::string_view message) noexcept;

/// The exit code of a command whose results stand under their names; kNoResults before. Memory that
/// is refused afterwards, in destructors of JSON for one, changes it no more.
inline constexpr int kNoResults = -1;
int standing_code() noexcept;
void let_results_stand(int code) noexcept;

/// Signals end the program without a word from here on: another rank tells the same error.
void leave_words_to_others() noexcept;

/// To be called before all else. Resources refused to the process then end it in an orderly way:
///  - a file that may not grow is a failed write, not SIGXFSZ;
///  - signals by which others end it (ending_signals.h) do so with a word, and without its
///    incomplete files;
///  - standard input, output and error that were closed stay so: no other file gets their numbers;
///  - what runs out where no exception can pass ends the program with the code of an environment
///    that failed, not with SIGABRT.
void take_precautions() noexcept;

/// While an Interruption lives, the first SIGINT or SIGTERM only sets a flag; the second ends the
/// program. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// True after the first signal. From any thread.
  static bool is_wanted();
  /// True when it was SIGTERM, also after the end of this object: nobody's wish for a verdict.
  static bool is_termination();
};

/// Writes `error` to standard error and ends the program with its exit code at once, from whatever
/// thread: destructors would wait for the device.
[[noreturn]] void leave_stuck(const DeviceStuck& error);

}  // namespace ringlab::cli
