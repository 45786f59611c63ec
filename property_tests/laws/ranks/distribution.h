// The parts of distribution_laws().
#pragma once

#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

std::vector<Law> placement_laws();  ///< P58-P61: how tokens lie on ranks changes nothing
std::vector<Law> merging_laws();    ///< P62-P63: partial answers form a monoid
std::vector<Law> traffic_laws();    ///< P65-P72: messages, visits and memory, as integers
std::vector<Law> schedule_laws();   ///< P64, P76: slots and the number of hops

}  // namespace ringlab::verify
