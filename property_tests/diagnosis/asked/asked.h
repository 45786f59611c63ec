// What the lessons ask about mistakes: the planted ones of stages/*/mistakes.toml.
#pragma once

#include <string>
#include <vector>

namespace ringlab::verify {

struct AskedMistake {
  std::string id;        ///< of the planted mistake, "ring_one_hop_short"
  std::string stage;     ///< that it is planted in, "ring"
  std::string name;      ///< of the suspect that it is, "ring.last_chunk_dropped"
  std::string question;  ///< leads a learner to it
};

/// All of them, stage by stage.
const std::vector<AskedMistake>& asked_mistakes();

/// The question about the suspect of this name: that of the stage where it has one, else the one
/// that the stages before it ask; of what is no stage, that of the first of all. Empty where none
/// asks, or those before it ask different things.
std::string question_about(const std::string& suspect, const std::string& stage);

}  // namespace ringlab::verify
