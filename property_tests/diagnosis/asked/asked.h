// Questions of the lessons about the planted mistakes of stages/*/mistakes.toml.
#pragma once

#include <string>
#include <vector>

namespace ringlab::verify {

struct AskedMistake {
  std::string id;        ///< of the planted mistake, "ring_one_hop_short"
  std::string stage;     ///< the stage that it is planted in, "ring"
  std::string name;      ///< id of the suspect, "ring.last_chunk_dropped"
  std::string question;  ///< leads a learner to the mistake
};

/// The mistakes of all stages, stage by stage.
const std::vector<AskedMistake>& asked_mistakes();

/// The question about the suspect of this name: the stage's own question, else the one that the
/// stages before it ask; for a subject that is no stage, the first question of any stage. Empty
/// where no stage asks, or the earlier ones ask different questions.
std::string question_about(const std::string& suspect, const std::string& stage);

}  // namespace ringlab::verify
