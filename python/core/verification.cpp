#include "python/core/verification.h"

#include <functional>
#include <memory>
#include <string>

#include "cli/report/hop_map.h"
#include "cli/report/tried.h"
#include "cli/viewer/viewer.h"
#include "property_tests/case_runner.h"
#include "property_tests/coverage.h"
#include "property_tests/diagnosis/insight.h"
#include "property_tests/generators/cases.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "python/core/callable.h"
#include "python/core/search.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using Clock = std::chrono::steady_clock;

nb::dict described(const verify::Law& law) {
  nb::dict description;
  description["id"] = law.id;
  description["name"] = law.name;
  description["statement"] = law.statement;
  description["exact"] = law.exact;
  return description;
}

nb::dict described(const verify::LawFailure& failure) {
  nb::dict description;
  description["case"] = verify::describe(failure.shrunk);
  description["token"] = failure.token;
  description["message"] = failure.message;
  description["shrinks"] = failure.shrinks;
  description["repeats"] = failure.repeats;
  description["repeated"] = failure.repeated;
  description["doubt"] = failure.doubt();
  description["map"] = report::HopMap(failure.shrunk).json().dump();
  return description;
}

nb::dict described(const verify::LawVerdict& verdict) {
  nb::dict classes;
  for (const auto& [name, count] : verdict.classes) classes[name.c_str()] = count;
  nb::dict description;
  description["id"] = verdict.id;
  description["name"] = verdict.name;
  description["statement"] = verdict.statement;
  description["cases"] = verdict.cases;
  description["discarded"] = verdict.discarded;
  description["refused"] = verdict.refused;
  description["compared"] = verdict.bounds.measured;
  description["is_unbounded"] = verdict.is_unbounded();
  description["unbounded"] = verdict.bounds.unbounded;
  description["worst_ratio"] = verdict.worst_ratio;
  description["skipped"] = verdict.skipped;
  description["classes"] = classes;
  if (verdict.failure) description["failure"] = described(*verdict.failure);
  return description;
}

std::vector<const verify::Law*> chosen_laws(const Wishes& wishes) {
  std::vector<const verify::Law*> laws;
  const auto ids = wishes.take<std::vector<std::string>>("laws");
  if (!ids) {
    for (const auto* some : {&verify::all_laws(), &verify::laws_about_others()}) {
      for (const verify::Law& law : *some) laws.push_back(&law);
    }
    return laws;
  }
  for (const std::string& id : *ids) laws.push_back(&verify::find_law(id));
  return laws;
}

verify::VerifyOptions search_options(const Wishes& wishes) {
  verify::VerifyOptions options;
  options.seed = wishes.take<std::uint64_t>("seed").value_or(options.seed);
  options.cases_per_law = static_cast<int>(wishes.take<std::int64_t>("cases").value_or(40));
  return options;
}

verify::LawVerdict search_hastily(const verify::Subject& subject, const verify::Law& law,
                                  const verify::VerifyOptions& options) {
  return search_law(subject, law, options,
                    [&] { return options.haste && options.haste() != verify::Haste::none; });
}

/// Tells the caller how far it is; an exception from there ends the verification.
void report_progress(const Wishes& wishes, VerifyStop& stop, std::size_t done, std::size_t total,
                     const std::string& law) {
  if (!wishes.given("progress")) return;
  const nb::gil_scoped_acquire held;
  try {
    wishes.object("progress")(done, total, law);
  } catch (nb::python_error& error) {
    stop.interruption.emplace(std::move(error));
  }
}

std::vector<verify::LawVerdict> run_laws(const verify::Subject& subject, const Wishes& wishes,
                                         VerifyStop& stop) {
  const std::vector<const verify::Law*> laws = chosen_laws(wishes);
  const verify::VerifyOptions options = search_options(wishes);
  const std::function<bool()> is_over = [&stop] { return stop.is_due(); };
  std::vector<verify::LawVerdict> verdicts;
  const nb::gil_scoped_release released;
  for (const verify::Law* law : laws) {
    {
      const nb::gil_scoped_acquire held;
      report_progress(wishes, stop, verdicts.size(), laws.size(), law->id);
    }
    if (stop.interruption) break;
    verdicts.push_back(search_law(subject, *law, options, is_over));
  }
  return verdicts;
}

std::shared_ptr<VerifyStop> stop_from(const Wishes& wishes) {
  auto stop = std::make_shared<VerifyStop>();
  if (const auto seconds = wishes.take<double>("seconds")) {
    stop->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(*seconds));
  }
  return stop;
}

void raise_interruption(VerifyStop& stop) {
  if (stop.interruption) throw nb::python_error(std::move(*stop.interruption));
}

template <class Values>
nb::list list_of(const Values& values) {
  nb::list list;
  for (const auto& value : values) list.append(value);
  return list;
}

nb::dict described(const verify::Subject& subject, const verify::SubjectVerdict& verdict,
                   const verify::Insight& insight) {
  const verify::Coverage coverage = verify::coverage_of(subject, verdict, {});
  nb::dict description;
  nb::list laws;
  for (const verify::LawVerdict& law : verdict.laws) laws.append(described(law));
  description["laws"] = laws;
  description["diagnosis"] = insight.diagnosis.sentence();
  description["findings"] = list_of(insight.diagnosis.findings);
  description["passes_if"] = insight.passes_if;
  description["tried"] = report::tried_json(coverage).dump();
  description["pairs_claimed"] = list_of(coverage.pairs_claimed);
  return description;
}

nb::dict verify_callable(const nb::dict& named_wishes) {
  const Wishes wishes(named_wishes);
  const std::shared_ptr<VerifyStop> stop = stop_from(wishes);
  const verify::Subject subject = callable_subject(wishes, stop);
  const verify::SubjectVerdict verdict{.subject = subject.name,
                                       .laws = run_laws(subject, wishes, *stop)};
  raise_interruption(*stop);
  stop->deadline.reset();  // what is broken gets its name, when time for laws is up too
  const verify::VerifyOptions options = search_options(wishes);
  const auto insight = [&] {
    const nb::gil_scoped_release released;
    return verify::look_into(subject, verdict, options, verify::Depth::failures, search_hastily);
  }();
  raise_interruption(*stop);
  return described(subject, verdict, insight);
}

/// The failure of the simplest call that is within the limits; empty where it answered.
std::string first_call(const nb::dict& named_wishes) {
  const Wishes wishes(named_wishes);
  const auto stop = std::make_shared<VerifyStop>();
  const verify::Subject subject = callable_subject(wishes, stop);
  verify::Case simplest;
  simplest.shape = {1, 1, 1, 2, 2, 8, 8};
  const verify::Law any_answer{
      .id = "first_call",
      .name = "first_call",
      .statement = "it answers",
      .check = [](const verify::Subject& asked, const verify::Case& c) -> verify::LawResult {
        verify::attend(asked, verify::make_trial(c));
        return {};
      }};
  const verify::Case c = verify::limited_to(simplest, subject.can);
  const verify::LawResult result = [&] {
    const nb::gil_scoped_release released;
    return verify::run_law(subject, any_answer, c);
  }();
  raise_interruption(*stop);
  return result.outcome == verify::Outcome::broken ? result.message : "";
}

nb::dict replay_callable(const nb::dict& named_wishes, const std::string& token) {
  const Wishes wishes(named_wishes);
  const auto stop = std::make_shared<VerifyStop>();
  const verify::Subject subject = callable_subject(wishes, stop);
  verify::ReplayRuns runs;
  const auto replayed = [&] {
    const nb::gil_scoped_release released;
    auto again =
        verify::replay(token, [&](const std::string&) { return verify::Subject(subject); });
    runs = verify::look_harder(again);
    return again;
  }();
  raise_interruption(*stop);
  nb::dict description = described(replayed.law);
  description["case"] = verify::describe(replayed.replayed);
  description["token"] = token;
  description["held"] = replayed.result.outcome == verify::Outcome::held;
  description["broken"] = replayed.result.outcome == verify::Outcome::broken;
  description["message"] = replayed.result.message;
  description["worst_ratio"] = replayed.result.ratio;
  description["runs"] = runs.all;
  description["runs_broken"] = runs.broken;
  return description;
}

nb::list laws() {
  nb::list list;
  for (const auto* some : {&verify::all_laws(), &verify::laws_about_others()}) {
    for (const verify::Law& law : *some) list.append(described(law));
  }
  return list;
}

}  // namespace

void add_verification(nb::module_& module) {
  module.def("verify", &verify_callable);
  module.def("first_call", &first_call);
  module.def("replay", &replay_callable);
  module.def("laws", &laws);
  module.def("page", [](const std::string& document, const std::string& words) {
    return viewer::page(document, words);
  });
  module.def("classes", [] { return list_of(verify::all_classes()); });
  module.def("known_pair", &verify::known_pair);
}

}  // namespace ringlab::python
