// The thread and block of the code that runs.
#pragma once

#include <cstddef>

namespace ringlab::cuda::emulator {

struct ThreadPlace {
  int thread = 0;
  int block = 0;
  int blocks = 0;
  int cluster_rank = 0;
  std::byte* shared = nullptr;
};

/// The place of the thread that runs. Threads of a grid take turns on one thread of the operating
/// system.
extern constinit thread_local ThreadPlace here;

/// Stops the running thread now and then, so that others run.
void let_others_run();

}  // namespace ringlab::cuda::emulator
