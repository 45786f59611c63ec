// The block kernels as values, so that they may be exchanged.
#pragma once

#include <tuple>

#include "optimized/cpu/block_kernel.h"

namespace ringlab::cpu {

/// A forward and a backward kernel for one type of elements.
template <class Element>
struct KernelPair {
  using Forward = void(const Block<Element>&, SoftmaxState<Accumulator<Element>>*,
                       Accumulator<Element>*);
  using Backward = void(const Block<Element>&, const QueryGradients<Element>&,
                        const BlockGradients<Element>&);
  Forward* forward = forward_block<Element>;
  Backward* backward = backward_block<Element>;
};

/// Kernels for every type; those of this library unless exchanged.
class KernelTable {
 public:
  template <class Element>
  const KernelPair<Element>& of() const {
    return std::get<KernelPair<Element>>(pairs_);
  }
  template <class Element>
  KernelPair<Element>& of() {
    return std::get<KernelPair<Element>>(pairs_);
  }

 private:
  std::tuple<KernelPair<double>, KernelPair<float>, KernelPair<Half>, KernelPair<BFloat16>> pairs_;
};

}  // namespace ringlab::cpu
