#include "cli/report/trace/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reference/core/error.h"
#include "reference/core/schedule/operation_words.h"
#include "reference/io/outside_json.h"

namespace ringlab::report {
namespace {

using Json = nlohmann::ordered_json;

// Events of ours are 4 levels deep and have 8 members; other members are passed over.
constexpr io::JsonLimits kTraceLimits{
    .what = "trace", .depth = 8, .keys = 64, .values = kMostReadEvents * 20};
constexpr std::int64_t kMostRanks = 1 << 16;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 30;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;
// Longer than a month; as microseconds in a double, still exact to a nanosecond.
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 52;

std::string event_name(const TraceEvent& event) {
  if (event.owner == kNobody) return std::string(trace_kind_name(event.kind));
  return fmt::format("{}{} chunk {}", trace_kind_name(event.kind),
                     event.gradient ? " gradients of" : "", event.owner);
}

Json event_json(const TraceEvent& event) {
  const int lane = static_cast<int>(lane_of(event.kind));
  return {{"name", event_name(event)},
          {"cat", trace_kind_name(event.kind)},
          {"ph", "X"},
          {"ts", static_cast<double>(event.begin_ns) / 1e3},
          {"dur", static_cast<double>(event.end_ns - event.begin_ns) / 1e3},
          {"pid", 0},
          {"tid", event.rank * kLanes + lane},
          {"args",
           {{"rank", event.rank},
            {"step", event.step},
            {"owner", event.owner},
            {"peer", event.peer},
            {"slot", event.slot},
            {"gradient", event.gradient},
            {"pass", pass_name(event.pass)},
            {"bytes", event.bytes}}}};
}

Json metadata_json(const char* what, int tid, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", tid}, {"args", {{"name", name}}}};
}

/// Reads one event of a file; errors name the event.
class EventReader {
 public:
  EventReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool is_metadata() const { return text(json_, "ph") == "M"; }

  TraceEvent event() const {
    if (text(json_, "ph") != "X") fail("\"ph\" to be \"X\" or \"M\"", text(json_, "ph"));
    const Json& args = member(json_, "args");
    TraceEvent event{.kind = kind()};
    event.rank = small(args, "rank", 0, kMostRanks - 1);
    event.step = small(args, "step", -1, kMostSteps);
    event.owner = small(args, "owner", kNobody, kMostRanks - 1);
    event.peer = small(args, "peer", kNobody, kMostRanks - 1);
    event.slot = small(args, "slot", kHome, kMostSteps);
    event.gradient = flag(args, "gradient");
    event.pass = pass(args);
    event.bytes = integer(args, "bytes", 0, kMostBytes);
    event.begin_ns = nanoseconds("ts");
    event.end_ns = event.begin_ns + nanoseconds("dur");
    const int lane = static_cast<int>(lane_of(event.kind));
    if (integer(json_, "tid", 0, INT32_MAX) != event.rank * kLanes + lane) {
      fail(fmt::format("\"tid\" {} of the rank's lane", event.rank * kLanes + lane),
           json_["tid"].dump());
    }
    return event;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& actual) const {
    throw_input_error({where_, expected, actual, "Traces are written by `ringlab run --trace`."});
  }
  const Json& member(const Json& object, const char* name) const {
    if (!object.is_object()) fail("an object", object.type_name());
    const auto found = object.find(name);
    if (found == object.end()) fail(fmt::format("a member \"{}\"", name), "none");
    return *found;
  }
  std::string text(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_string()) fail(fmt::format("\"{}\" to be a text", name), value.type_name());
    return value.get<std::string>();
  }
  bool flag(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_boolean()) fail(fmt::format("\"{}\" to be true or false", name), value.dump());
    return value.get<bool>();
  }
  std::int64_t integer(const Json& object, const char* name, std::int64_t least,
                       std::int64_t most) const {
    const Json& value = member(object, name);
    const std::string expected = fmt::format("\"{}\" to be an integer, {} … {}", name, least, most);
    if (!value.is_number_integer()) fail(expected, value.dump());
    // Beyond the range of int64: unsigned, and too large for anything here.
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
      fail(expected, value.dump());
    }
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) fail(expected, value.dump());
    return number;
  }
  int small(const Json& object, const char* name, std::int64_t least, std::int64_t most) const {
    return static_cast<int>(integer(object, name, least, most));
  }
  std::int64_t nanoseconds(const char* name) const {
    const Json& value = member(json_, name);
    const double number = value.is_number() ? value.get<double>() * 1e3 : -1;
    if (!(number >= 0 && number <= static_cast<double>(kMostNanoseconds))) {
      fail(fmt::format("\"{}\" to be a time in microseconds, 0 or more", name), value.dump());
    }
    return std::llround(number);
  }
  TraceKind kind() const {
    const std::string word = text(json_, "cat");
    for (const TraceKind kind : {TraceKind::compute, TraceKind::send, TraceKind::receive,
                                 TraceKind::wait, TraceKind::add}) {
      if (word == trace_kind_name(kind)) return kind;
    }
    fail("\"cat\" to be compute, send, receive, wait or add", word);
  }
  Pass pass(const Json& args) const {
    const std::string word = text(args, "pass");
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (word == pass_name(pass)) return pass;
    }
    fail("\"pass\" to be forward or backward", word);
  }

  const Json& json_;
  std::string where_;
};

}  // namespace

Lane lane_of(TraceKind kind) {
  constexpr std::array<Lane, 5> kLaneOf = {Lane::compute, Lane::send, Lane::receive, Lane::wait,
                                           Lane::compute};
  return kLaneOf[static_cast<std::size_t>(kind)];
}

std::string lane_name(Lane lane) {
  constexpr std::array<const char*, kLanes> kNames = {"compute", "send", "receive", "wait"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::string trace_json(const Trace& trace) {
  std::set<int> ranks;
  for (const TraceEvent& event : trace) ranks.insert(event.rank);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" +
                     metadata_json("process_name", 0, "ringlab").dump();
  for (const int rank : ranks) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::string name = fmt::format("rank {} {}", rank, lane_name(static_cast<Lane>(lane)));
      text += ",\n" + metadata_json("thread_name", rank * kLanes + lane, name).dump();
    }
  }
  for (const TraceEvent& event : trace) text += ",\n" + event_json(event).dump();
  return text + "\n]}\n";
}

nlohmann::ordered_json events_json(const Trace& trace) {
  Json events = Json::array();
  for (const TraceEvent& event : trace) events.push_back(event_json(event));
  return events;
}

Trace parse_trace(const std::string& text, const std::string& name) {
  io::check_json(text, kTraceLimits, name);
  const Json document = Json::parse(text);
  const bool whole = document.is_object() && document.contains("traceEvents") &&
                     document["traceEvents"].is_array();
  if (!whole) {
    throw_input_error({name, "a trace: a JSON object with an array \"traceEvents\"", "other JSON",
                       "Traces are written by `ringlab run --trace`."});
  }
  Trace trace;
  for (std::size_t i = 0; i < document["traceEvents"].size(); ++i) {
    const EventReader reader(document["traceEvents"][i], fmt::format("{}, event {}", name, i));
    if (!reader.is_metadata()) trace.push_back(reader.event());
  }
  return trace;
}

int ranks_of(const Trace& trace) {
  int ranks = 0;
  for (const TraceEvent& event : trace) ranks = std::max(ranks, event.rank + 1);
  return ranks;
}

}  // namespace ringlab::report
