// A certificate as a page of HTML, made to be printed on one or two sheets.
#include <fmt/format.h>

#include <string>

#include "cli/report/certificate.h"
#include "cli/report/html.h"
#include "cli/report/tried.h"

namespace ringlab::report {
namespace {

using Json = CertificateJson;

std::string words_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.3g}", value.get<double>()) : value.dump();
}
std::string shown(const Json& value) { return escape(words_of(value)); }

std::string rows_of_facts(const Json& facts) {
  std::string html = "<table class=\"facts\">";
  for (const auto& [name, value] : facts.items()) {
    std::string label = name;
    for (char& letter : label) letter = letter == '_' ? ' ' : letter;
    html +=
        fmt::format("<tr><th>{}</th><td><code>{}</code></td></tr>", escape(label), shown(value));
  }
  return html + "</table>\n";
}

bool is_pass(const std::string& word) { return word.starts_with("PASS"); }

std::string certificate_seal(const Json& certificate) {
  const std::string word = certificate.at("verdict");
  const Json& strength = certificate.at("strength");
  const std::string power =
      strength.at("known").get<bool>()
          ? fmt::format("a suite that finds {} of {} planted mistakes",
                        shown(strength.at("killed")), shown(strength.at("mutants")))
          : "a suite of unknown strength";
  return verdict_banner(
      is_pass(word), word,
      fmt::format(
          "{}<br><span>ringlab {} · {} · {} · {}</span>", escape(certificate_words(certificate)),
          shown(certificate.at("ringlab").at("version")), power, shown(certificate.at("written")),
          escape(certificate.at("digest").get<std::string>().substr(0, 23))));
}

std::string fault_card(const Json& fault, const std::string& library) {
  std::string html =
      fmt::format("<div class=\"card failure\"><div><h3>{} · {}</h3><p>{}</p>",
                  shown(fault.at("class")), shown(fault.at("law")), shown(fault.at("statement")));
  std::vector<std::pair<std::string, std::string>> place;
  for (const char* name : {"rank", "step", "element", "suspected_cause", "doubt"}) {
    const Json value = fault.value(name, Json(""));
    if (value != Json("")) place.emplace_back(name, words_of(value));
  }
  if (!place.empty()) html += chips(place);
  html += fmt::format("<pre>{}</pre>", shown(fault.at("found")));
  if (fault.at("replay") == Json("")) return html + "</div></div>\n";
  return html + fmt::format(
                    "<p class=\"soft\">Smallest case: {}</p><pre>ringlab verify {}--replay {}</pre>"
                    "</div></div>\n",
                    shown(fault.at("smallest_case")), library, shown(fault.at("replay")));
}

std::string law_line(const Json& law) {
  const std::string verdict = law.at("verdict");
  if (verdict == "skipped") return "";
  return fmt::format(
      "<tr><td class=\"id\">{}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td><td "
      "class=\"n\">{}</td><td>{}</td></tr>\n",
      shown(law.at("id")), verdict == "held" ? "held" : "broken", escape(verdict),
      shown(law.at("cases")), shown(law.at("worst_ratio")),
      shown(law.value("worst_element", Json(""))));
}

std::string skipped_list(const Json& subject) {
  Json reasons = Json::object();
  for (const Json& law : subject.at("laws")) {
    if (law.at("verdict") != Json("skipped")) continue;
    const std::string why = law.value("skipped", "no case applied");
    reasons[why] = reasons.value(why, std::string()) + " " + law.at("id").get<std::string>();
  }
  std::string html;
  for (const auto& [why, ids] : reasons.items()) {
    html += fmt::format("<li>{}:{}</li>", escape(why), shown(ids));
  }
  return html.empty() ? ""
                      : "<p class=\"soft\">Skipped laws</p><ul class=\"soft\">" + html + "</ul>";
}

std::string subject_part(const Json& subject) {
  const std::string word = subject.at("verdict");
  std::string html = fmt::format("<h2>{} <span class=\"tag {}\">{}</span></h2><p>{}</p>\n",
                                 shown(subject.at("subject")), is_pass(word) ? "good" : "bad",
                                 escape(word), shown(subject.at("sentence")));
  for (const char* said : {"warnings", "findings", "remarks"}) {
    for (const Json& sentence : subject.at(said)) {
      html += fmt::format("<p class=\"soft\">{}: {}</p>\n", said, shown(sentence));
    }
  }
  for (const Json& gap : subject.at("gaps")) html += fmt::format("<p>{}</p>\n", shown(gap));
  // A token that names content needs the file beside it.
  const bool is_library = subject.at("content") != Json("");
  const std::string library = is_library ? shown(subject.at("subject")) + " " : "";
  for (const Json& fault : subject.at("faults")) html += fault_card(fault, library);
  html += "<div class=\"cards\"><div class=\"card\"><h3>Declared numerics</h3>" +
          rows_of_facts(subject.at("declared_numerics")) + "</div>";
  const Json& probes = subject.at("exact_probes");
  const Json& repeats = subject.at("determinism");
  const Json& coverage = subject.at("coverage");
  html +=
      "<div class=\"card\"><h3>Checks</h3>" +
      rows_of_facts({{"input", subject.at("input").at("verdict")},
                     {"exact probes", fmt::format("{} of {} held", shown(probes.at("held")),
                                                  shown(probes.at("tried")))},
                     {"repeated runs", fmt::format("{} of {} laws held", shown(repeats.at("held")),
                                                   shown(repeats.at("tried")))},
                     {"cases held", coverage.at("cases")},
                     {"rounds", subject.at("rounds")},
                     {"cases sha256", subject.at("cases_sha256")}}) +
      "</div></div>\n";
  html += "<details class=\"lawlist\" open><summary>What was tried</summary>" +
          tried_table(coverage.at("tried")) + "</details>\n";
  std::string rows;
  for (const Json& law : subject.at("laws")) rows += law_line(law);
  return html + "<details class=\"lawlist\" open><summary>Laws tried</summary>" +
         html_table({"law", "verdict", "#cases", "#error / bound", "worst element"}, rows,
                    "certified") +
         skipped_list(subject) + "</details>\n";
}

std::string not_checked_list(const Json& certificate) {
  std::string html;
  for (const Json& one : certificate.at("not_checked")) {
    html += fmt::format("<li>{}: {}</li>", shown(one.at("what")), shown(one.at("why")));
  }
  return html.empty() ? "" : "<h2>Not checked</h2><ul>" + html + "</ul>\n";
}

std::string about_the_suite(const Json& certificate) {
  Json strength = certificate.at("strength");
  strength.erase("laws_added_since");
  return "<h2>The verifier</h2><div class=\"cards\"><div class=\"card\"><h3>Its strength</h3>" +
         rows_of_facts(strength) + "</div><div class=\"card\"><h3>Its reference</h3>" +
         rows_of_facts(certificate.at("oracle")) +
         "</div><div class=\"card\"><h3>Program and machine</h3>" +
         rows_of_facts(certificate.at("ringlab")) + rows_of_facts(certificate.at("machine")) +
         "</div><div class=\"card\"><h3>Cases</h3>" + rows_of_facts(certificate.at("cases")) +
         "</div></div>\n";
}

/// JSON inside a page: what would end the element is written differently.
std::string embedded(const Json& certificate) {
  std::string text = certificate.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3)) {
    text.replace(at, 2, "<\\/");
  }
  return "<script type=\"application/json\" id=\"certificate\">" + text + "</script>\n";
}

}  // namespace

std::string certificate_page(const Json& certificate) {
  std::string body = "<h1>Certificate of verification</h1>\n" + certificate_seal(certificate);
  for (const Json& subject : certificate.at("subjects")) body += subject_part(subject);
  body += not_checked_list(certificate) + about_the_suite(certificate);
  body += fmt::format(
      "<footer>Digest of this document: <code>{}</code>. It shows changes, not who made them: it "
      "is "
      "no signature. <code>ringlab verify --check-certificate FILE</code> compares it; with "
      "<code>--again</code> the verification is repeated.</footer>\n",
      shown(certificate.at("digest")));
  return html_page({.title = "ringlab certificate: " + certificate.at("verdict").get<std::string>(),
                    .body = body,
                    .after = embedded(certificate)});
}

}  // namespace ringlab::report
