// Groups of asynchronous work that each thread commits and waits for.
#pragma once

#include <cstddef>
#include <vector>

namespace ringlab::cuda::emulator {

struct Thread;

/// What a thread has under way, in the order in which it was begun. All is about the thread that runs.
class AsyncGroups {
 public:
  explicit AsyncGroups(int threads) : threads_(static_cast<std::size_t>(threads)) {}

  /// Work of a thread: of which group it is.
  struct Work {
    Thread* thread;
    std::size_t group;
  };
  Work begin();
  /// Wakes the thread, if this is the last that it waits for. By whoever did the work.
  void end(const Work& work);
  void commit();
  /// Until at most `pending` of the groups that were committed are under way. `what`: a literal with a
  /// place for `pending`.
  void wait(const char* what, int pending);
  int under_way() const { return under_way_; }

 private:
  struct PerThread {
    std::vector<int> groups = {0};  ///< work under way in each; the last one is open
    std::size_t awaited = 0;        ///< the groups before this one are waited for
    bool is_parked = false;

    bool is_done() const;
  };
  PerThread& of(const Thread& thread);

  std::vector<PerThread> threads_;
  int under_way_ = 0;
};

}  // namespace ringlab::cuda::emulator
