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

/// The question about the suspect of this name: that of the stage where it has one, else that of
/// the first stage before it that asks, or where it is no stage of any; empty where none does.
std::string question_about(const std::string& suspect, const std::string& stage);

}  // namespace ringlab::verify
