#include "cli/model/serve_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/model/model_options.h"
#include "cli/model/page_pieces.h"
#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_page.h"

namespace ringlab::cli {
namespace {

using model::Passed;
using model::ServeChoice;
using model::Serving;

constexpr std::size_t kMostSplits = 16;  // of the table of splits

std::int64_t so_many_times(std::int64_t number, double times) {
  return static_cast<std::int64_t>(static_cast<double>(number) * times);
}

std::string fitting(const ServeQuestion& question, double bytes) {
  return bytes <= question.memory_bytes() ? "first" : "bad";
}

std::string split_words(const model::ServeWay& way) {
  const model::Split& split = way.split;
  const std::string heads = way.by_heads > 1 ? fmt::format(" · heads over {}", way.by_heads) : "";
  return fmt::format("context {}{} · tensor {} · stages {}", split.context, heads, split.tensor,
                     split.stages);
}

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
report::BarChart lengths_chart(const ServeQuestion& question, const ServeChoice& best) {
  const double memory = question.memory_bytes();
  report::BarChart chart{.description = "memory by the length of a context",
                         .rows = {},
                         .marks = {{memory, bytes_text(memory) + " of a device"}}};
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    Serving serving = question.serving;
    serving.cached = so_many_times(serving.keys(), times) - serving.tokens;
    if (serving.cached < 0) continue;
    const double bytes = bytes_of(serving, best.way);
    chart.rows.push_back({fmt::format("{} keys", report::human_count(serving.keys())),
                          {{bytes, bytes_text(bytes), fitting(question, bytes), ""}}});
  }
  return chart;
}

/// A prompt's time when keys go round and when queries do, by its new tokens.
report::BarChart new_tokens_chart(const ServeQuestion& question, const ServeChoice& best) {
  report::BarChart chart{
      .description = "time by new tokens, keys or queries going round", .rows = {}, .marks = {}};
  for (const double times : {1.0 / 16, 0.25, 1.0, 4.0, 16.0}) {
    Serving serving = question.serving;
    serving.tokens = so_many_times(serving.tokens, times);
    if (serving.tokens < 2 * best.way.split.context) continue;
    report::BarRow row{fmt::format("{} tokens", report::human_count(serving.tokens)), {}};
    model::ServeWay way = best.way;
    for (const Passed passed : {Passed::keys, Passed::queries}) {
      way.passed = passed;
      const double seconds = model::serve_time(serving, way, question.machine).total();
      row.bars.push_back({seconds, report::human_seconds(seconds),
                          passed == Passed::keys ? "first" : "second", pass_word(passed)});
    }
    chart.rows.push_back(row);
  }
  return chart;
}

/// The time of a token by how many sequences share the weights that it reads.
report::BarChart sequences_chart(const ServeQuestion& question, const ServeChoice& best) {
  report::BarChart chart{.description = "time of a token by sequences", .rows = {}, .marks = {}};
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0, 16.0}) {
    Serving serving = question.serving;
    serving.sequences = so_many_times(serving.sequences, times);
    if (serving.sequences < 1) continue;
    const double seconds = model::serve_time(serving, best.way, question.machine).total();
    chart.rows.push_back(
        {fmt::format("{} sequences: {:.4g} tokens/s", report::human_count(serving.sequences),
                     model::tokens_per_second(serving, seconds)),
         {{seconds, report::human_seconds(seconds), fitting(question, bytes_of(serving, best.way)),
           ""}}});
  }
  return chart;
}

/// The best splits of fewer and more devices.
report::BarChart devices_chart(const ServeQuestion& question) {
  report::BarChart chart{.description = "time by the number of devices", .rows = {}, .marks = {}};
  for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    model::ServeWish wish = question.wish;
    wish.split.devices = static_cast<int>(times * question.wish.split.devices);
    wish.split.context = std::nullopt;
    if (wish.split.devices < 1) continue;
    const auto choices =
        model::weigh_serving(question.serving, wish, question.machine, largest_memory);
    if (choices.empty()) continue;
    const ServeChoice& choice = choices.front();
    const double seconds = choice.time.total();
    chart.rows.push_back(
        {fmt::format("{} devices: {}", wish.split.devices, split_product(choice.way)),
         {{seconds, report::human_seconds(seconds), fitting(question, choice.memory.total()),
           ""}}});
  }
  return chart;
}

std::string splits_table(const ServeQuestion& question, const std::vector<ServeChoice>& choices) {
  std::string rows;
  for (const ServeChoice& choice : choices) {
    if (&choice - choices.data() == kMostSplits) break;
    const double seconds = choice.time.total();
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.4g}</td><td "
        "class=\"n\">{}</td></tr>\n",
        split_words(choice.way), passed_words(choice.way), report::human_seconds(seconds),
        model::tokens_per_second(question.serving, seconds), bytes_text(choice.memory.total()));
  }
  return report::html_table(
      {"split", "goes round", "#" + time_name(question), "#tokens/s", "#memory"}, rows);
}

std::string ring_lanes(const ServeQuestion& question, const model::ServeWay& way) {
  const int shown = std::min(kMostLanes, way.ring());
  const auto times = model::prefill_times(question.serving, way, question.machine, shown);
  return "<h2>The ring</h2>\n" +
         lanes_figure(times.events,
                      fmt::format("Attention of one layer, {} going round", passed_words(way)),
                      shown, way.ring());
}

std::string chips(const ServeQuestion& question, const ServeChoice& best) {
  const Serving& serving = question.serving;
  const double seconds = best.time.total();
  const auto expected = expected_seconds(question, best.way);
  return report::chips(
      {{serving.decodes() ? "sequences" : "new tokens",
        report::human_count(serving.decodes() ? serving.sequences : serving.tokens)},
       {"cached tokens", report::human_count(serving.cached)},
       {time_name(question), report::human_seconds(seconds)},
       {"expected", expected ? report::human_seconds(*expected) : "not known"},
       {"tokens/s", fmt::format("{:.4g}", model::tokens_per_second(serving, seconds))},
       {"memory of a device", bytes_text(best.memory.total())}});
}

}  // namespace

std::string serve_page(const ServeQuestion& question, const std::vector<ServeChoice>& choices) {
  const ServeChoice& best = choices.front();
  const bool decodes = question.serving.decodes();
  const std::string time = time_name(question);
  std::string body =
      fmt::format("<h1>{} of {} on {} {}</h1>\n", decodes ? "A token" : "A prompt",
                  report::escape(question.serving.model.name), question.wish.split.devices,
                  report::escape(question.machine.name));
  body += chips(question, best);
  body += fmt::format("<p><code>{}</code></p>\n<div class=\"cards\">\n",
                      serve_options(question, best.way));
  body += chart_figure("Memory of a device", bytes_text(best.memory.total()),
                       parts_chart("memory by parts", parts_of(best.memory), bytes_text), "");
  body += chart_figure(
      "Time", time, parts_chart("time by parts", parts_of(best.time), report::human_seconds), "");
  body += chart_figure("Longer contexts", "this split", lengths_chart(question, best),
                       "Memory of a device, cached and new tokens. Red does not fit.");
  if (decodes) {
    body += chart_figure("More sequences", "this split", sequences_chart(question, best),
                         "Time of a token of each. Red does not fit.");
  } else if (best.way.ring() > 1) {
    body += chart_figure(
        "More new tokens", time, new_tokens_chart(question, best),
        "This split behind the same cache. Dark: keys and values go round, light: queries do.");
  }
  body += chart_figure("More devices", time, devices_chart(question),
                       "The best context × tensor × stages of each number. Red does not fit.");
  body += links_figure(time, [&](double times) {
    const auto links = with_links(question, best, times);
    return AtLinks{links.seconds, links.best.time.total(),
                   links.same ? "" : split_product(links.best.way)};
  });
  body += "</div>\n";
  if (!decodes && best.way.ring() > 1) body += ring_lanes(question, best.way);
  body += "<h2>Splits</h2>\n" + splits_table(question, choices);
  return report::html_page(
      {.title = "ringlab plan", .body = body, .more_style = report::trace_style()});
}

}  // namespace ringlab::cli
