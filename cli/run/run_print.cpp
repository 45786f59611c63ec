#include "cli/run/run_print.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/inputs/subjects.h"
#include "cli/line/text_table.h"
#include "cli/report/human.h"
#include "cli/report/totals.h"
#include "cli/run/run_check.h"
#include "cli/verify/report_json.h"
#include "reference/core/report.h"

namespace ringlab::cli {
namespace {

Json numbered_json(std::size_t number, const RankReport& rank) {
  Json json = rank_json(rank.stats);
  json["rank"] = number;
  json["pairs"] = report::pairs_of(rank.stats);
  if (!std::isnan(rank.seconds)) json["seconds"] = rank.seconds;
  if (!std::isnan(rank.worst)) {
    json["worst_ratio"] = json_number(rank.worst);
    json["compared"] = rank.compared;
  }
  return json;
}

}  // namespace

Json print_plan(const RunPlan& plan, const verify::RunFacts& of_job, Output& output) {
  Json configuration = {{"subject", plan.subject.name}};
  describe_input(plan.input.loaded, configuration);
  describe_run(plan.subject, plan.place, plan.problem(), plan.options, configuration);
  if (plan.place.is_job()) configuration["transport"] = transport_word(plan.place.transport);
  for (const auto& [name, value] : of_job) configuration[name] = value;
  output.print_configuration(configuration, plan.defaults);
  for (const std::string& note : plan.input.loaded.notes) output.print("note: {}\n", note);
  return configuration;
}

Json print_ranks(const std::vector<RankReport>& ranks, Output& output) {
  const bool timed = !ranks.empty() && !std::isnan(ranks.front().seconds);
  const bool checked = !ranks.empty() && !std::isnan(ranks.front().worst);
  std::vector<std::string> heads = {"rank",        "sent",     "messages",      "received",
                                    "peak memory", "K/V held", "pairs computed"};
  if (timed) heads.insert(heads.begin() + 1, "time");
  if (checked) heads.emplace_back("worst error/bound");
  std::vector<Column> columns;
  for (const std::string& head : heads) columns.push_back({head, Align::right});
  TextTable table(columns);
  Json json = Json::array();
  for (const RankReport& rank : ranks) {
    const RankStats& stats = rank.stats;
    std::vector<std::string> cells = {fmt::format("{}", json.size()),
                                      report::human_bytes(stats.sent_bytes),
                                      report::human_count(stats.sent_messages),
                                      report::human_bytes(stats.received_bytes),
                                      report::human_bytes(stats.peak_bytes),
                                      report::human_bytes(stats.peak_kv_bytes),
                                      report::human_count(report::pairs_of(stats))};
    if (timed) cells.insert(cells.begin() + 1, report::human_seconds(rank.seconds));
    if (checked) cells.push_back(report::human_ratio(rank.worst));
    table.add(std::move(cells));
    json.push_back(numbered_json(json.size(), rank));
  }
  if (ranks.empty()) return json;
  output.print(
      "\n{}K/V held: what it computes on, in the input or not; peak memory: what it allocates.\n",
      table.text());
  return json;
}

void print_checked_rows(const RunPlan& plan, Json& document, Output& output) {
  const GradientCheck gradients = !plan.backward       ? GradientCheck::no_gradients
                                  : plan.checks_sums() ? GradientCheck::by_sums
                                                       : GradientCheck::none;
  document["checked_rows"] = plan.rows;
  output.print("checked {}\n", describe_rows(plan.rows.size(), plan.problem(), gradients));
}

std::string wide_bounds(std::int64_t unbounded) {
  if (unbounded == 0) return "";
  return fmt::format(", {} have bounds as wide as the answer", report::human_count(unbounded));
}

void print_check(const Report& report, Output& output) {
  for (const TensorReport& tensor : report.tensors) {
    const WorstElement& worst = tensor.worst;
    const char* right = tensor.is_open() ? "OPEN " : tensor.unbounded > 0 ? "open " : "ok   ";
    output.print(
        "check  {:<4} {}  worst error/bound {} at [{}, {}, {}, {}]: got {:.9g}, exact {:.9g}, "
        "allowed ±{:.3g}; {} of {} wrong{}\n",
        tensor.tensor, tensor.passed() ? right : "WRONG", report::human_ratio(worst.ratio),
        worst.batch, worst.head, worst.token, worst.channel, worst.got, worst.exact, worst.allowed,
        report::human_count(tensor.failed), report::human_count(tensor.compared),
        wide_bounds(tensor.unbounded));
  }
  if (report.passed() && !report.held()) {
    output.print("check  NOTHING SHOWN: bounds are so wide that zeros would pass\n");
  }
}

void print_settlement(const verify::Settlement& settled, Json& document, Output& output) {
  document["settled"] = {{"undecided", settled.undecided},
                         {"right", settled.right},
                         {"wrong", settled.wrong},
                         {"left", settled.left}};
  if (settled.undecided == 0) return;
  output.print(
      "check  {} elements undecided by the fp64 reference: in double-double {} right, {} WRONG, {} "
      "left\n",
      report::human_count(settled.undecided), report::human_count(settled.right),
      report::human_count(settled.wrong), report::human_count(settled.left));
}

void print_identities(const verify::GradientIdentities& sums, Json& document, Output& output) {
  document["identities"] = Json::array();
  for (const verify::Identity& identity : sums.results()) {
    document["identities"].push_back({{"law", identity.law},
                                      {"name", identity.name},
                                      {"off_over_likely", json_number(identity.worst)},
                                      {"where", identity.where},
                                      {"holds", identity.holds()},
                                      {"unbounded", identity.is_unbounded()}});
    const char* right = identity.is_unbounded() ? "OPEN " : "ok   ";
    output.print("check  {}  {}  {}: off by {} of what rounding makes likely (wrong above {}){}\n",
                 identity.law, identity.holds() ? right : "WRONG", identity.name,
                 report::human_ratio(identity.worst), verify::Identity::kMost,
                 identity.where.empty() ? "" : ", most in " + identity.where);
  }
}

}  // namespace ringlab::cli
