// Stands in for the generated mutants of the kernel that multiplies bf16 where the compiler does
// not know the instructions.
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {

std::vector<Mutant> amx_kernel_mutants();
std::vector<Mutant> bf16_backward_kernel_mutants();
std::vector<Mutant> amx_kernel_mutants() { return {}; }
std::vector<Mutant> bf16_backward_kernel_mutants() { return {}; }

}  // namespace ringlab::mutants
