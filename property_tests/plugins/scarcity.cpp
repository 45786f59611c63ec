#include "property_tests/plugins/scarcity.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace ringlab::plugins {
namespace {

constexpr std::size_t kAddresses = std::size_t{1} << 30;
constexpr int kThreads = 64, kDescriptors = 32;
constexpr std::size_t kStackBytes = 256 << 10;

/// Threads that stay until all of them have been created, or one could not be.
struct Crowd {
  std::mutex mutex;
  std::condition_variable end;
  bool ended = false;

  static void* stay(void* given) {
    auto& crowd = *static_cast<Crowd*>(given);
    std::unique_lock lock(crowd.mutex);
    crowd.end.wait(lock, [&] { return crowd.ended; });
    return nullptr;
  }
};

bool threads_are_scarce() {
  Crowd crowd;
  std::array<pthread_t, kThreads> threads{};
  std::size_t made = 0;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStackBytes);
  while (made < threads.size() &&
         pthread_create(&threads[made], &small, Crowd::stay, &crowd) == 0) {
    ++made;
  }
  pthread_attr_destroy(&small);
  {
    const std::lock_guard lock(crowd.mutex);
    crowd.ended = true;
  }
  crowd.end.notify_all();
  for (std::size_t i = 0; i < made; ++i) pthread_join(threads[i], nullptr);
  return made < threads.size();
}

bool descriptors_are_scarce() {
  std::array<int, 2 * kDescriptors> descriptors{};
  std::size_t opened = 0;
  while (opened < descriptors.size() && pipe(&descriptors[opened]) == 0) opened += 2;
  for (std::size_t i = 0; i < opened; ++i) close(descriptors[i]);
  return opened < descriptors.size();
}

}  // namespace

bool addresses_are_scarce() {
  void* const addresses =
      mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return true;
  munmap(addresses, kAddresses);
  return false;
}

std::string scarce_here() {
  std::string words = threads_are_scarce() ? "threads" : "";
  if (descriptors_are_scarce()) words += words.empty() ? "descriptors" : ", descriptors";
  return words;
}

double patience(double load, double processors) {
  constexpr double kMost = 8;
  return std::clamp(load / std::max(processors, 1.0), 1.0, kMost);
}

double patience_here() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return 1;
  return patience(load, std::thread::hardware_concurrency());
}

}  // namespace ringlab::plugins
