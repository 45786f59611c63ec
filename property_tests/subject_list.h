// The subjects that ringlab has, by name.
#pragma once

#include <string>
#include <vector>

#include "property_tests/subject.h"

namespace ringlab::verify {

/// "optimized": the ring engine. It honours schedules and slots, and gives gradients.
Subject engine_subject();
/// "cudnn": this engine with cuDNN's attention; runs on devices only.
Subject cudnn_subject();
/// "reference": exact_forward() and exact_backward(), rounded once to the problem's dtype. Others
/// are compared with it, and it is under the laws itself.
Subject reference_subject();

/// The stages as subjects, in order, and the ring engine as the last one.
std::vector<Subject> all_subjects();
/// Kernels of vendors as subjects.
std::vector<Subject> vendor_subjects();
/// The subject of this name or stage number ("ring", "05", "05_ring"), the vendors' and the
/// reference among them; otherwise a usage error that names known ones.
Subject find_subject(const std::string& name);

}  // namespace ringlab::verify
