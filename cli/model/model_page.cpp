#include "cli/model/model_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/model/model_options.h"
#include "cli/model/page_pieces.h"
#include "cli/report/bars.h"
#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_page.h"

namespace ringlab::cli {
namespace {

using model::StepChoice;

constexpr std::size_t kMostSplits = 16;  // of the table of splits
/// A split in short: context × tensor × stages × replicas.
std::string split_product(const model::Split& split) {
  return fmt::format("{} × {} × {} × {}", split.context, split.tensor, split.stages,
                     split.replicas);
}

std::string split_words(const model::StepWay& way) {
  const model::Split& split = way.split;
  if (way.by_heads > 1) {
    return fmt::format("context {} · heads over {} · tensor {} · stages {} · replicas {}",
                       split.context, way.by_heads, split.tensor, split.stages, split.replicas);
  }
  return fmt::format("context {} · tensor {} · stages {} · replicas {}", split.context,
                     split.tensor, split.stages, split.replicas);
}

/// The best choice for a question; nothing where no split is possible.
std::optional<StepChoice> choice_of(const ModelQuestion& question) {
  const auto choices =
      model::weigh_training(question.training, question.wish, question.machine, largest_memory);
  if (choices.empty()) return std::nullopt;
  return choices.front();
}

/// The memory of the chosen split, the sequence longer and longer.
report::BarChart lengths_chart(const ModelQuestion& question, const StepChoice& best) {
  const double memory = question.machine.memory_bytes;
  report::BarChart chart{.description = "memory by the length of a sequence",
                         .rows = {},
                         .marks = {{memory, bytes_text(memory) + " of a device"}}};
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    model::Training training = question.training;
    training.tokens = static_cast<std::int64_t>(times * static_cast<double>(training.tokens));
    if (training.tokens < 2 * best.way.split.context) continue;
    const double ring = model::ring_bytes(training, best.way, question.machine, largest_memory);
    const double bytes = model::step_memory(training, best.way, ring).total();
    chart.rows.push_back({fmt::format("{} tokens", report::human_count(training.tokens)),
                          {{bytes, bytes_text(bytes), bytes > memory ? "bad" : "first", ""}}});
  }
  return chart;
}

/// The best splits of fewer and more devices, by utilisation.
report::BarChart devices_chart(const ModelQuestion& question) {
  report::BarChart chart{
      .description = "utilisation by the number of devices", .rows = {}, .marks = {}};
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    ModelQuestion other = question;
    other.wish.devices = static_cast<int>(times * question.wish.devices);
    if (other.wish.devices < 1) continue;
    other.wish.context = other.wish.replicas = std::nullopt;
    const auto choice = choice_of(other);
    if (!choice) continue;
    const double seconds = choice->time.total(), share = utilisation(other, seconds);
    chart.rows.push_back(
        {fmt::format("{} devices: {}, {}", other.wish.devices, report::human_seconds(seconds),
                     split_product(choice->way.split)),
         {{share, report::human_percent(share), holds(other, *choice) ? "first" : "bad", ""}}});
  }
  return chart;
}

std::string splits_table(const ModelQuestion& question, const std::vector<StepChoice>& choices) {
  std::string rows;
  for (const StepChoice& choice : choices) {
    if (&choice - choices.data() == kMostSplits) break;
    const double seconds = choice.time.total();
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        split_words(choice.way), keep_word(choice.way.kept), shard_word(choice.way.sharded),
        choice.way.by_nodes ? "by nodes" : "plain", report::human_seconds(seconds),
        report::human_percent(utilisation(question, seconds)), bytes_text(choice.memory.total()));
  }
  return report::html_table({"split", "kept", "cut", "ring", "#step", "#utilisation", "#memory"},
                            rows);
}

}  // namespace

std::string model_page(const ModelQuestion& question, const std::vector<StepChoice>& choices) {
  const StepChoice& best = choices.front();
  const double seconds = best.time.total();
  const auto expected = expected_seconds(question, best);
  std::string body =
      fmt::format("<h1>A step of {} on {} {}</h1>\n", report::escape(question.training.model.name),
                  question.wish.devices, report::escape(question.machine.name));
  body += report::chips(
      {{"tokens", report::human_count(question.training.tokens)},
       {"sequences", report::human_count(question.training.sequences)},
       {"step", report::human_seconds(seconds)},
       {"expected", expected ? report::human_seconds(*expected) : "not known"},
       {"utilisation", report::human_percent(utilisation(question, seconds))},
       {"memory of a device", bytes_text(best.memory.total())},
       {"device-hours for a billion tokens",
        fmt::format("{:.3g}", hours_per_billion_tokens(question, expected.value_or(seconds)))}});
  body += fmt::format(
      "<p>{}. Of a layer {} {} kept; {} are cut.</p>\n", split_words(best.way),
      keep_word(best.way.kept), best.way.kept == model::Kept::inputs ? "are" : "is",
      best.way.sharded == model::Sharded::weights ? "weights" : "the optimizer's numbers");
  body += "<div class=\"cards\">\n";
  body += chart_figure("Memory of a device", bytes_text(best.memory.total()),
                       parts_chart("memory by parts", parts_of(best.memory), bytes_text), "");
  body +=
      chart_figure("Time of a step", report::human_seconds(seconds),
                   parts_chart("time by parts", parts_of(best.time), report::human_seconds), "");
  body += chart_figure("Longer sequences", "this split", lengths_chart(question, best),
                       "Red does not fit.");
  body += chart_figure(
      "More devices", "context × tensor × stages × replicas", devices_chart(question),
      "How much of their peak a step uses in the best split, the same sequences. Red does "
      "not fit.");
  body += links_figure("time of a step", [&](double times) {
    const auto links = with_links(question, best, times);
    return AtLinks{links.seconds, links.best.time.total(),
                   links.same ? "" : split_product(links.best.way.split)};
  });
  body += "</div>\n<h2>The ring</h2>\n" +
          job_lanes(ring_job(question, best.way),
                    model::ring_machine(question.machine, best.way.group()),
                    "Attention of one sequence in one layer, forward and backward");
  body += "<h2>Splits</h2>\n" + splits_table(question, choices);
  return report::html_page(
      {.title = "ringlab plan", .body = body, .more_style = report::trace_style()});
}

}  // namespace ringlab::cli
