// Groups of asynchronous work that each thread commits and waits for.
#pragma once

#include <cstddef>
#include <vector>

namespace ringlab::cuda::emulator {

struct Thread;

/// Asynchronous work of each thread, in the order in which it was begun. begin(), commit() and
/// wait() speak of the thread that runs.
class AsyncGroups {
 public:
  explicit AsyncGroups(int threads) : threads_(static_cast<std::size_t>(threads)) {}

  /// A piece of work: its thread, and the number of its group.
  struct Work {
    Thread* thread;
    std::size_t group;
  };
  Work begin();
  /// Wakes the thread if it waits for no other work. Called by whoever did the work.
  void end(const Work& work);
  void commit();
  /// Waits until at most `pending` committed groups are under way. `what`: a literal with a place
  /// for `pending`.
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
