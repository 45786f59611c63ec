#include "cli/model/model_charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/model/charts.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"

namespace ringlab::cli {
namespace {

using model::StepChoice;

/// A split in short: context × tensor × stages × replicas.
std::string split_product(const model::Split& split) {
  return fmt::format("{} × {} × {} × {}", split.context, split.tensor, split.stages,
                     split.replicas);
}

/// The best choice for a question; nothing where no split is possible.
std::optional<StepChoice> choice_of(const ModelQuestion& question) {
  const auto choices =
      model::weigh_training(question.training, question.wish, question.machine, largest_memory);
  if (choices.empty()) return std::nullopt;
  return choices.front();
}

/// The memory of the chosen split, the sequence longer and longer.
Json lengths_chart(const ModelQuestion& question, const StepChoice& best) {
  const double memory = question.machine.memory_bytes;
  Json chart = chart_json("Longer sequences", "this split", "bytes", "Red does not fit.");
  chart["marks"] = Json::array();
  chart["marks"].push_back({{"value", memory}, {"label", "of a device"}});
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    model::Training training = question.training;
    training.tokens = static_cast<std::int64_t>(times * static_cast<double>(training.tokens));
    if (training.tokens < 2 * best.way.split.context) continue;
    const double ring = model::ring_bytes(training, best.way, question.machine, largest_memory);
    const double bytes = model::step_memory(training, best.way, ring).total();
    add_row(chart, fmt::format("{} tokens", report::human_count(training.tokens)), {bytes},
            bytes <= memory);
  }
  return chart;
}

/// The best splits of fewer and more devices, by utilisation.
Json devices_chart(const ModelQuestion& question) {
  Json chart = chart_json("More devices", "context × tensor × stages × replicas", "share",
                          "How much of their peak a step uses in the best split, the same "
                          "sequences. Red does not fit.");
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    ModelQuestion other = question;
    other.wish.devices = static_cast<int>(times * question.wish.devices);
    if (other.wish.devices < 1) continue;
    other.wish.context = other.wish.replicas = std::nullopt;
    const auto choice = choice_of(other);
    if (!choice) continue;
    const double seconds = choice->time.total();
    add_row(chart,
            fmt::format("{} devices: {}, {}", other.wish.devices, report::human_seconds(seconds),
                        split_product(choice->way.split)),
            {utilisation(other, seconds)}, holds(other, *choice));
  }
  return chart;
}

}  // namespace

Json drawn_step(const ModelQuestion& question, const StepChoice& best) {
  Json drawn = job_lanes(ring_job(question, best.way),
                         model::ring_machine(question.machine, best.way.group()),
                         "Attention of one sequence in one layer, forward and backward");
  drawn["charts"] = {lengths_chart(question, best), devices_chart(question),
                     links_chart("time of a step", [&](double times) {
                       const auto links = with_links(question, best, times);
                       return AtLinks{links.seconds, links.best.time.total(),
                                      links.same ? "" : split_product(links.best.way.split)};
                     })};
  return drawn;
}

}  // namespace ringlab::cli
