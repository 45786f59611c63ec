// The verdict of a certificate on a subject, in one word and one sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/results.h"

namespace ringlab::report {

/// Gravest last.
enum class Word {
  pass,              ///< inside every a-priori bound, the same bits in every run
  pass_statistical,  ///< the same, but some bits differ from run to run: what held is a sample
  inconclusive,      ///< too little was compared for either
  fail,
  timeout,  ///< it gave no answer in time
  crash,    ///< it ended its process
};
constexpr std::string_view word_text(Word word) {
  switch (word) {
    case Word::pass:
      return "PASS";
    case Word::pass_statistical:
      return "PASS-statistical";
    case Word::inconclusive:
      return "INCONCLUSIVE";
    case Word::fail:
      return "FAIL";
    case Word::timeout:
      return "TIMEOUT";
    case Word::crash:
      return "CRASH";
  }
  return "";
}

/// Something that went wrong, on the smallest case that shows it.
struct Fault {
  std::string law;    ///< id; "input" for the given input
  std::string topic;  ///< class of the fault: the law's topic, or "values"
  std::string statement, message, shrunk, token;
  verify::Ending ending = verify::Ending::answered;
  std::string element = {};  ///< "o[0, 0, 3, 1]"
  int rank = -1;             ///< who computes that element, or said that it failed
  /// The step of the ring, where the row has keys at that one only, or where the subject said so.
  int step = -1;
  std::string cause = {};  ///< suspected
  std::string doubt = {};  ///< where the same case did not always fail
};

struct Verdict {
  Word word = Word::inconclusive;
  std::string sentence;
  std::vector<Fault> faults;
};
/// `total_laws`: the number of laws for the subject, asked for or not.
Verdict verdict_of(const SubjectResult& subject, std::int64_t total_laws);

/// "0.4 % of what was compared": the share of numbers whose bounds are as wide as the answer.
std::string share_text(const verify::BoundCounts& bounds);

/// The command that runs the case of this subject's token again.
std::string replay_line(const verify::Subject& subject, const std::string& token);

/// "o[0, 0, 3, 1]".
std::string element_text(const verify::Element& element);

}  // namespace ringlab::report
