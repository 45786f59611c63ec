// Mistakes with exchanges, events and slots, planted into the message programs of all ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "optimized/ring/messages/message_program.h"

namespace ringlab::ring {

using RankPrograms = std::vector<MessageProgram>;

/// nowhere: it may break what a library promises, or what its next version does.
enum class Shows { everywhere, in_rings, nowhere };

struct MessageMistake {
  std::string name;
  /// `programs` with the mistake, once for every place where it can be made.
  std::function<std::vector<RankPrograms>(const RankPrograms& programs)> plant;
  /// Where some order of the streams gives other results, or never comes to its end.
  Shows shows = Shows::everywhere;
  bool in_rings_only = false;  ///< elsewhere it is none
};
const std::vector<MessageMistake>& message_mistakes();

}  // namespace ringlab::ring
