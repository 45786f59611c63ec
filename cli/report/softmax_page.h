// Softmax matrices read out of black boxes, as heat maps.
#pragma once

#include <string>
#include <vector>

#include "property_tests/diagnosis/tomography.h"

namespace ringlab::report {

struct SoftmaxMap {
  std::string subject;
  verify::Tomography tomography;
};

/// One head: blue where a weight is right, the deeper the larger; orange where it is wrong.
std::string softmax_map(const verify::Tomography& tomography, std::int64_t batch,
                        std::int64_t head);
/// The whole file.
std::string softmax_page(const std::vector<SoftmaxMap>& maps);

}  // namespace ringlab::report
