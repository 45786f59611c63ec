#include "cli/verify/report_json.h"

#include "cli/report/hop_map.h"
#include "cli/report/tried.h"

namespace ringlab::cli {

Json report_json(const Report& report) {
  Json tensors = Json::array();
  for (const TensorReport& tensor : report.tensors) {
    const WorstElement& worst = tensor.worst;
    tensors.push_back({{"tensor", tensor.tensor},
                       {"passed", tensor.passed() && !tensor.is_open()},
                       {"compared", tensor.compared},
                       {"failed", tensor.failed},
                       {"unbounded", tensor.unbounded},
                       {"worst",
                        {{"at", {worst.batch, worst.head, worst.token, worst.channel}},
                         {"got", json_number(worst.got)},
                         {"exact", json_number(worst.exact)},
                         {"allowed", json_number(worst.allowed)},
                         {"ratio", json_number(worst.ratio)}}}});
  }
  return {{"passed", report.held()},
          {"worst_ratio", json_number(report.worst_ratio())},
          {"tensors", tensors}};
}

Json rank_json(const RankStats& rank) {
  Json visits = Json::array();
  for (const Visit& visit : rank.visits) {
    visits.push_back({{"owner", visit.owner}, {"hop", visit.hop}, {"pairs", visit.pairs}});
  }
  return {{"sent_bytes", rank.sent_bytes},
          {"sent_messages", rank.sent_messages},
          {"received_bytes", rank.received_bytes},
          {"received_messages", rank.received_messages},
          {"peak_bytes", rank.peak_bytes},
          {"peak_kv_bytes", rank.peak_kv_bytes},
          {"visits", visits}};
}

Json law_json(const verify::LawVerdict& law) {
  const bool skipped = !law.skipped.empty();
  Json json = {{"id", law.id},
               {"name", law.name},
               {"statement", law.statement},
               {"verdict", law.failure ? "broken"
                           : skipped   ? "skipped"
                                       : "held"},
               {"cases", law.cases},
               {"discarded", law.discarded},
               {"refused", law.refused},
               {"compared", law.bounds.measured},
               {"unbounded", law.bounds.unbounded},
               {"worst_ratio", json_number(law.worst_ratio)},
               {"classes", law.classes}};
  if (skipped) json["skipped"] = law.skipped;
  if (law.failure) {
    json["failure"] = {{"case", verify::describe(law.failure->shrunk)},
                       {"token", law.failure->token},
                       {"message", law.failure->message},
                       {"shrinks", law.failure->shrinks},
                       {"repeats", law.failure->repeats},
                       {"repeated", law.failure->repeated},
                       {"doubt", law.failure->doubt()},
                       {"map", report::HopMap(law.failure->shrunk).json()}};
    if (law.failure->at) json["failure"]["at"] = report::element_json(*law.failure->at);
  }
  return json;
}

Json coverage_json(const verify::Coverage& coverage) {
  Json classes = Json::object();
  for (const verify::ClassShare& one : coverage.classes) {
    classes[one.name] = {
        {"cases", one.cases}, {"share", coverage.share(one)}, {"required", one.required}};
  }
  Json json = {{"cases", coverage.cases},
               {"judged", coverage.is_judged},
               {"missing", coverage.missing()},
               {"classes", classes}};
  json["tried"] = report::tried_json(coverage);
  return json;
}

}  // namespace ringlab::cli
