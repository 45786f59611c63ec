// The pieces that a generated registry of planted kernels is written with.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "optimized/cpu/kernel_table.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/engine.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {

/// True when this processor can run planted kernels: they are compiled for AVX2 where there may be
/// that, else for vectors that all processors of this kind have.
inline bool can_run_planted_kernels() {
  const std::vector<std::string> available = cpu::available_vectors();
#if defined(__x86_64__)
  return std::ranges::count(available, "avx2") > 0;
#else
  return !available.empty();
#endif
}

/// The real engine with these kernels for one type of elements.
template <class Element>
Mutant planted_kernel(MutantInfo info, cpu::KernelPair<Element> kernels) {
  verify::Subject subject = subject_like(info, {dtype_of<Element>});
  subject.run = [kernels](const AttentionInput& input, const RunOptions& options) {
    RunOptions limited = options;
    limited.timeout_s = std::min(options.timeout_s, kMutantTimeout);
    ring::EngineParts parts;
    parts.kernels.of<Element>() = kernels;
    return ring::Engine(parts).run(input, limited);
  };
  return {std::move(info), std::move(subject)};
}

}  // namespace ringlab::mutants
