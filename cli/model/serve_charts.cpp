#include "cli/model/serve_charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/model/charts.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"

namespace ringlab::cli {
namespace {

using model::Passed;
using model::ServeChoice;
using model::Serving;

std::int64_t so_many_times(std::int64_t number, double times) {
  return static_cast<std::int64_t>(static_cast<double>(number) * times);
}

bool fits(const ServeQuestion& question, double bytes) { return bytes <= question.memory_bytes(); }

/// A split in short: context (neighbours that deal heads, times their ring) × tensor × stages.
std::string split_product(const model::ServeWay& way) {
  const std::string context = way.by_heads > 1
                                  ? fmt::format("({} by heads · {})", way.by_heads, way.ring())
                                  : fmt::format("{}", way.ring());
  return fmt::format("{} × {} × {}", context, way.split.tensor, way.split.stages);
}

double bytes_of(const Serving& serving, const model::ServeWay& way) {
  return model::serve_memory(serving, way, largest_memory).total();
}

/// The memory of the chosen split, the cache longer and longer.
Json lengths_chart(const ServeQuestion& question, const ServeChoice& best) {
  Json chart = chart_json("Longer contexts", "this split", "bytes",
                          "Memory of a device, cached and new tokens. Red does not fit.");
  chart["marks"] = Json::array();
  chart["marks"].push_back({{"value", question.memory_bytes()}, {"label", "of a device"}});
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    Serving serving = question.serving;
    serving.cached = so_many_times(serving.keys(), times) - serving.tokens;
    if (serving.cached < 0) continue;
    const double bytes = bytes_of(serving, best.way);
    add_row(chart, fmt::format("{} keys", report::human_count(serving.keys())), {bytes},
            fits(question, bytes));
  }
  return chart;
}

/// A prompt's time when keys go round and when queries do, by its new tokens.
Json new_tokens_chart(const ServeQuestion& question, const ServeChoice& best) {
  Json chart = chart_json(
      "More new tokens", time_name(question), "seconds",
      "This split behind the same cache. Dark: keys and values go round, light: queries do.");
  for (const double times : {1.0 / 16, 0.25, 1.0, 4.0, 16.0}) {
    Serving serving = question.serving;
    serving.tokens = so_many_times(serving.tokens, times);
    if (serving.tokens < 2 * best.way.split.context) continue;
    Json both = Json::array();
    model::ServeWay way = best.way;
    for (const Passed passed : {Passed::keys, Passed::queries}) {
      way.passed = passed;
      both.push_back(model::serve_time(serving, way, question.machine).total());
    }
    add_row(chart, fmt::format("{} tokens", report::human_count(serving.tokens)), both);
  }
  return chart;
}

/// The time of a token by how many sequences share the weights that it reads.
Json sequences_chart(const ServeQuestion& question, const ServeChoice& best) {
  Json chart = chart_json("More sequences", "this split", "seconds",
                          "Time of a token of each. Red does not fit.");
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0, 16.0}) {
    Serving serving = question.serving;
    serving.sequences = so_many_times(serving.sequences, times);
    if (serving.sequences < 1) continue;
    const double seconds = model::serve_time(serving, best.way, question.machine).total();
    add_row(chart,
            fmt::format("{} sequences: {:.4g} tokens/s", report::human_count(serving.sequences),
                        model::tokens_per_second(serving, seconds)),
            {seconds}, fits(question, bytes_of(serving, best.way)));
  }
  return chart;
}

/// The best splits of fewer and more devices.
Json devices_chart(const ServeQuestion& question) {
  Json chart = chart_json("More devices", time_name(question), "seconds",
                          "The best context × tensor × stages of each number. Red does not fit.");
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    model::ServeWish wish = question.wish;
    wish.split.devices = static_cast<int>(times * question.wish.split.devices);
    wish.split.context = std::nullopt;
    if (wish.split.devices < 1) continue;
    const auto choices =
        model::weigh_serving(question.serving, wish, question.machine, largest_memory);
    if (choices.empty()) continue;
    const ServeChoice& choice = choices.front();
    add_row(chart, fmt::format("{} devices: {}", wish.split.devices, split_product(choice.way)),
            {choice.time.total()}, fits(question, choice.memory.total()));
  }
  return chart;
}

Json ring_lanes(const ServeQuestion& question, const model::ServeWay& way) {
  const int shown = std::min(kMostLanes, way.ring());
  const auto times = model::prefill_times(question.serving, way, question.machine, shown);
  return lanes_json(times.events,
                    fmt::format("Attention of one layer, {} going round", passed_words(way)), shown,
                    way.ring());
}

}  // namespace

Json drawn_serving(const ServeQuestion& question, const ServeChoice& best) {
  const bool goes_round = !question.serving.decodes() && best.way.ring() > 1;
  Json drawn = goes_round ? ring_lanes(question, best.way) : Json::object();
  Json& charts = drawn["charts"] = Json::array();
  charts.push_back(lengths_chart(question, best));
  if (question.serving.decodes()) charts.push_back(sequences_chart(question, best));
  if (goes_round) charts.push_back(new_tokens_chart(question, best));
  charts.push_back(devices_chart(question));
  charts.push_back(links_chart(time_name(question), [&](double times) {
    const auto links = with_links(question, best, times);
    return AtLinks{links.seconds, links.best.time.total(),
                   links.same ? "" : split_product(links.best.way)};
  }));
  return drawn;
}

}  // namespace ringlab::cli
