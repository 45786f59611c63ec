// The parts of structure_laws().
#pragma once

#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

std::vector<Law> causal_laws();         ///< P29-P32: the future
std::vector<Law> window_laws();         ///< P33: sliding windows
std::vector<Law> document_laws();       ///< P34-P35: packed documents and padding
std::vector<Law> shape_laws();          ///< P36-P37: empty rows, sizes next to a boundary
std::vector<Law> reused_memory_laws();  ///< P71: memory that earlier calls left
std::vector<Law> far_memory_laws();     ///< inputs larger than memory
std::vector<Law> memory_laws();  ///< P38-P39: where the inputs lie, and that they are only read

}  // namespace ringlab::verify
