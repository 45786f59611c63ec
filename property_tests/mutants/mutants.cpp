#include "property_tests/mutants/mutants.h"

#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"
#include "property_tests/subject_list.h"

namespace ringlab::mutants {

// Generated: one registry per pass of the block kernels.
std::vector<Mutant> forward_kernel_mutants();
std::vector<Mutant> backward_kernel_mutants();
std::vector<Mutant> few_kernel_mutants();
std::vector<Mutant> amx_kernel_mutants();
std::vector<Mutant> bf16_backward_kernel_mutants();

verify::Subject subject_like(const MutantInfo& info, std::vector<DType> dtypes) {
  verify::Subject subject = verify::find_subject(info.stage);
  subject.name = "mutant:" + info.id;
  subject.title = info.breaks;
  subject.can.dtypes = std::move(dtypes);
  return subject;
}

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> mutants = [] {
    std::vector<Mutant> all;
    for (const auto make : {stage_mutants, input_mutants, output_mutants, gradient_mutants,
                            wire_mutants, schedule_mutants, engine_mutants, modifier_mutants,
                            forward_kernel_mutants, backward_kernel_mutants, few_kernel_mutants,
                            bf16_backward_kernel_mutants, amx_kernel_mutants}) {
      for (Mutant& mutant : make()) all.push_back(std::move(mutant));
    }
    return all;
  }();
  return mutants;
}

}  // namespace ringlab::mutants
