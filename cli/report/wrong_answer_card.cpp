// A wrong answer on a page.
#include <fmt/format.h>

#include "cli/report/html.h"
#include "cli/report/maps.h"
#include "cli/report/sections.h"
#include "cli/report/wrong_answer.h"

namespace ringlab::report {

std::string wrong_answer_card(const WrongAnswer& answer) {
  std::string html = fmt::format("<div class=\"card failure\"><div><h2>{}: {}</h2>",
                                 escape(answer.subject), escape(answer.name));
  const auto paragraph = [&](const char* title, const std::string& text) {
    if (!text.empty()) html += fmt::format("<p><b>{}</b> {}</p>", title, escape(text));
  };
  if (answer.smallest) paragraph("Smallest case:", case_words(*answer.smallest));
  paragraph("Found:", answer.found);
  paragraph("Again:", answer.again);
  for (const std::string& seen : answer.at) paragraph("Seen:", seen);
  paragraph("Think:", answer.question);
  std::string law = answer.law;
  if (answer.other_laws > 0) law += fmt::format("; and {} more below", answer.other_laws);
  paragraph("Breaks", law);
  if (!answer.replay.empty()) {
    html += fmt::format("<p class=\"soft\">Run it again:</p><pre>{}</pre>", escape(answer.replay));
  }
  html += "</div>";
  if (answer.smallest) html += case_picture(*answer.smallest, answer.marked);
  return html + "</div>\n";
}

std::string wrong_answers_section(const VerifyRun& run) {
  std::string html;
  for (const SubjectResult& subject : run.subjects) {
    const std::optional<WrongAnswer> answer = wrong_answer(subject, run.options.device);
    if (answer) html += wrong_answer_card(*answer);
  }
  return html;
}

}  // namespace ringlab::report
