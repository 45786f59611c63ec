// The explanation of a wrong answer, as a teacher would give it: the name of the mistake, the
// smallest case as a picture, what was found, a question, and what to do next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/results.h"
#include "reference/core/run.h"

namespace ringlab::report {

/// Lines of wrong_answer_text(), at most; with the configuration above it, 25.
inline constexpr std::size_t kMostAnswerLines = 16;

struct WrongAnswer {
  std::string subject;
  std::string name;    ///< a cause; or what it is consistent with; or that no known mistake matches
  std::string law;     ///< id, colon, statement; or where else it is wrong
  int other_laws = 0;  ///< that broke, too
  std::string found;   ///< got, exact, allowed; or words
  std::string again;   ///< where it did not always fail
  std::vector<std::string> at;  ///< where it was seen, and what else is seen
  std::string question;         ///< of the lessons, where they have one about this mistake
  std::string replay;           ///< the line that runs it again, where there is one
  std::optional<verify::Case> smallest = {};
  std::optional<verify::Element> marked = {};
  std::optional<verify::ShownAnswer> answer = {};  ///< to the smallest case
};

/// One mistake per subject: several laws that one mistake breaks are one. Nothing where the subject
/// is not wrong.
std::optional<WrongAnswer> wrong_answer(const SubjectResult& subject, DeviceKind device);

/// "N=6 tokens, P=3 ranks, causal, zigzag".
std::string case_words(const verify::Case& c);
/// Rows of visible pairs, with the rank that holds each token and the hop of each pair; at most
/// `most_rows` queries, with the marked one. Empty where there is nothing to draw.
std::vector<std::string> pair_rows(const verify::Case& shown,
                                   const std::optional<verify::Element>& marked,
                                   std::size_t most_rows);

/// Q, K, V, scores, weights and the right O of a case of six tokens at most, of one head of one or two
/// channels; empty for others. The row of the marked element says that it is wrong; beside numbers of
/// O and lse stand those of an answer that is off in that row, with "!" where they are.
std::vector<std::string> number_rows(const verify::Case& shown,
                                     const std::optional<verify::Element>& marked,
                                     const std::optional<verify::ShownAnswer>& answer = {});
/// True for an element of dK or dV.
bool marks_a_key(const std::optional<verify::Element>& marked);

std::string wrong_answer_text(const WrongAnswer& answer);

}  // namespace ringlab::report
