// Mistakes with streams, events and slots, planted into stream programs.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

struct StreamMistake {
  std::string name;
  /// `program` with the mistake, once for every place where it can be made.
  std::function<std::vector<StreamProgram>(const StreamProgram& program)> plant;
  bool changes_results = true;  ///< some only cost time
};
inline void PrintTo(const StreamMistake& mistake, std::ostream* out) { *out << mistake.name; }
const std::vector<StreamMistake>& stream_mistakes();
/// Those that change results.
std::vector<StreamMistake> result_mistakes();

}  // namespace ringlab::ring
