// Mistakes with streams, events and slots, planted into stream programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "optimized/ring/stream_program.h"

namespace ringlab::ring {

struct StreamMistake {
  std::string name;
  /// `program` with the mistake, once for every place where it can be made.
  std::function<std::vector<StreamProgram>(const StreamProgram& program)> plant;
  bool changes_results = true;  ///< some only cost time
};
const std::vector<StreamMistake>& stream_mistakes();

}  // namespace ringlab::ring
