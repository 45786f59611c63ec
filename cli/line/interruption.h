// Ctrl-C as a wish to end early, for work that has something to show for what it has done.
#pragma once

namespace ringlab::cli {

/// While one of these lives, the first SIGINT or SIGTERM only sets a flag; the second ends the
/// program as usual. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// From any thread.
  static bool is_wanted();
};

}  // namespace ringlab::cli
