// A peer (peer.h): the f32 matrix product of a library. A line "sgemm N" is one product of two
// random N × N matrices, timed by the processor time of the whole process.
#include "optimized/bench/cpu/sgemm_peer.h"

#include <charconv>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kLargest = 16384;

double process_seconds() {
  std::timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Matrices {
  std::vector<float> a = {}, b = {}, c = {};

  void resize(int n) {
    const std::size_t count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    if (c.size() == count) return;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::vector<float>* factor : {&a, &b}) {
      factor->resize(count);
      for (float& value : *factor) value = normal(random);
    }
    c.assign(count, 0.0f);
  }
};

/// N of a request "sgemm N"; 0 for any other.
int size_of(std::string_view request) {
  constexpr std::string_view kVerb = "sgemm ";
  if (!request.starts_with(kVerb)) return 0;
  const std::string_view number = request.substr(kVerb.size());
  int n = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), n);
  const bool whole = problem == std::errc() && end == number.data() + number.size();
  return whole && n >= 1 && n <= kLargest ? n : 0;
}

}  // namespace

int main() {
  std::cout << "ready " << ringlab::bench::describe_library() << std::endl;
  Matrices matrices;
  for (std::string request; std::getline(std::cin, request);) {
    const int n = size_of(request);
    if (n == 0) {
      std::cout << "cannot read '" << request << "': expected sgemm N, N from 1 to " << kLargest
                << std::endl;
      continue;
    }
    matrices.resize(n);
    const double start = process_seconds();
    ringlab::bench::multiply_matrices(n, matrices.a.data(), matrices.b.data(), matrices.c.data());
    std::cout << process_seconds() - start << std::endl;
  }
}
