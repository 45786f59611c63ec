#include "tests/property_tests/refused_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace ringlab::refused_threads {
namespace {

constinit std::atomic<bool> is_short{false};
constinit std::atomic<std::int64_t> asked{0}, refusals{0};
constinit std::atomic<std::int64_t> first_refused{0}, end_of_refused{0};

bool refuses() {
  if (!is_short) return false;
  const std::int64_t number = asked++;
  const bool refused = number >= first_refused && number < end_of_refused;
  refusals += refused;
  return refused;
}

}  // namespace

Shortage::Shortage(std::int64_t first, std::int64_t count) {
  asked = 0;
  refusals = 0;
  first_refused = first;
  end_of_refused = first + count;
  is_short = true;
}

Shortage::~Shortage() { is_short = false; }

std::int64_t Shortage::refused() const { return refusals; }

}  // namespace ringlab::refused_threads

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (ringlab::refused_threads::refuses()) return EAGAIN;
  return create(thread, attributes, body, argument);
}
