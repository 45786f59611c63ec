// Stands in for bf16_dot.cpp and bf16_dot_backward.cpp where the compiler does not know the
// instructions.
#include <cassert>

#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/bf16/bf16_dot_amx.h"

namespace ringlab::cpu::bf16_dot {

const Products kDotProducts = {};
const Products kAmxProducts = {};
bool available() { return false; }
bool amx_available() { return false; }
bool takes(const Block<BFloat16>&) { return false; }
void forward(const Block<BFloat16>&, const Products&, SoftmaxState<float>*, float*) {
  assert(!"only where available()");
}
void backward(const Block<BFloat16>&, const Products&, const QueryGradients<BFloat16>&,
              const BlockGradients<BFloat16>&) {
  assert(!"only where available()");
}

}  // namespace ringlab::cpu::bf16_dot
