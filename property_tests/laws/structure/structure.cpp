// Laws about masks, shapes and memory (verification P29-P39), in the order of their files.
#include "property_tests/laws/structure/structure.h"

#include "property_tests/laws/groups.h"

namespace ringlab::verify {

std::vector<Law> structure_laws() {
  std::vector<Law> laws = causal_laws();
  for (const auto& more : {window_laws(), document_laws(), shape_laws(), memory_laws(),
                           reused_memory_laws(), far_memory_laws()}) {
    laws.insert(laws.end(), more.begin(), more.end());
  }
  return laws;
}

}  // namespace ringlab::verify
