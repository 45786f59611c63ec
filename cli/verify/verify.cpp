// `ringlab verify [SUBJECT…]`: subjects against the exact reference, on an input and under the
// laws.
#include "cli/verify/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/line/build_info.h"
#include "cli/line/endings.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

constexpr int kMostSubjects = 1000;

// An own default, where that of `ringlab run` would leave most of a subject's code unused.
struct OwnDefault {
  std::string_view word, otherwise;
};
constexpr std::array<OwnDefault, 4> kOwnDefaults = {{{"tokens", "1024; with --quick 256"},
                                                     {"mask", "causal"},
                                                     {"ranks", "4"},
                                                     {"layout", "zigzag"}}};

report::VerifyRun make_run(const Json& configuration, const LoadedInput& loaded,
                           const RunOptions& options) {
  report::VerifyRun run;
  for (const auto& [name, value] : configuration.items()) {
    run.configuration.emplace_back(name, configuration_text(value));
  }
  const BuildInfo build = build_info();
  run.version = build.version;
  run.compiler = build.compiler + ", " + build.build_type;
  run.flags = build.flags;
  run.notes = loaded.notes;
  run.problem = loaded.problem;
  run.options = options;
  return run;
}

std::string ending_of(const VerifyPlan& plan, const VerifyOutcome& outcome) {
  if (outcome.interrupted) return fmt::format("stopped after {:.1f} s", outcome.laws_seconds);
  const bool is_time_over = plan.seconds && outcome.laws_seconds >= *plan.seconds;
  return is_time_over ? fmt::format("time over after {:.1f} s", outcome.laws_seconds) : "";
}

// Environment error for gaps: no subject is wrong, nor right, as the verification fell short.
void refuse_gaps(const report::VerifyRun& run) {
  const std::vector<std::string> gaps = run.uncovered();
  if (gaps.empty()) return;
  throw_environment_error(
      {"coverage",
       fmt::format("{:g} % of the cases or more in every class that a subject supports",
                   100 * verify::kLeastShare),
       fmt::format("fewer in {}", fmt::join(gaps, ", ")),
       "What was tried held, but too little of that was tried; a subject that refuses what it "
       "claims to support is one reason. --json FILE has the counts."});
}

enum class Facts { where_needed, always };

/// One verification, from its words to its results; what it found is printed.
struct Verification {
  report::VerifyRun run;
  report::CertificateFacts facts;  ///< only where a certificate is wanted
};

struct VerifyFiles {
  std::optional<std::string> page, certificate;
};

VerifyFiles take_files(Arguments& arguments) {
  VerifyFiles files;
  files.page = arguments.take_text("html");
  if (files.page) check_writable("html", *files.page);
  files.certificate = take_certificate_file(arguments);
  return files;
}

std::string page_words(const report::VerifyRun& run) {
  std::string words = "ringlab verify: ";
  for (const report::SubjectResult& subject : run.subjects) {
    words += fmt::format("{} {}; ", subject.subject.name, subject.verdict());
  }
  return words + fmt::format("{:.1f} s.", run.seconds);
}

void write_files(const VerifyFiles& files, const Verification& done, Output& output) {
  if (files.page) {
    output.show(*files.page, page_words(done.run), layouts_json(done.run));
    output.write_at_the_end("report in " + *files.page);
  }
  if (!files.certificate) return;
  const auto certificate = report::make_certificate(done.run, done.facts);
  output.files().write(*files.certificate, certificate_text(*files.certificate, certificate));
  output.write_at_the_end("certificate in " + *files.certificate + ": " +
                          report::certificate_words(certificate));
}

/// A verification as the command line asks for it, read and checked.
struct VerifyJob {
  VerifyPlan plan;
  RunOptions options;
  VerifyFiles files;
  LoadedInput loaded;
  Detail detail = Detail::brief;
};

VerifyJob take_job(Arguments& arguments) {
  const bool quick = arguments.take_switch("quick");
  VerifyJob job{.plan = take_plan(arguments, quick), .options = {}, .files = {}, .loaded = {}};
  if (arguments.take_switch("all")) job.detail = Detail::whole;
  refuse_without_effect(arguments, job.plan.subjects, {}, {OptionGroup::problem});
  job.options = take_run_options(arguments, {.ranks = 4, .layout = LayoutKind::zigzag});
  if (job.options.device == DeviceKind::cuda) keep_those_on_devices(job.plan.subjects, arguments);
  job.files = take_files(arguments);
  const Gradients gradients =
      job.plan.wants_gradients ? Gradients::if_there_or_drawn : Gradients::if_there;
  job.loaded = load_input(
      arguments,
      {.tokens = quick ? 256 : 1024, .mask = "causal", .gradients = gradients, .built_in = true});
  arguments.reject_unused();
  for (const verify::Subject& subject : job.plan.subjects) {
    require_device_of(subject, job.options.device);
  }
  for (const std::string& note : notes_on(job.plan.subjects)) job.loaded.notes.push_back(note);
  return job;
}

/// The exit code of a verification.
int code_of(const report::VerifyRun& run) {
  if (!run.passed()) return 1;
  const bool falls_short = Interruption::is_termination() || !run.uncovered().empty();
  return falls_short ? static_cast<int>(ErrorKind::environment) : 0;
}

void finish_output(const Json& configuration, const VerifyPlan& plan, const report::VerifyRun& run,
                   Output& output, int code) {
  output.finish("verify",
                {{"configuration", configuration},
                 {"plan", reach_json(plan)},
                 {"notes", run.notes},
                 {"passed", run.passed()},
                 {"uncovered", run.uncovered()},
                 {"ended", run.ended},
                 {"seconds", run.seconds},
                 {"subjects", subjects_json(run)}},
                code);
}

Verification verify_as_told(Arguments& arguments, Output& output, Facts facts) {
  const auto start = std::chrono::steady_clock::now();
  const VerifyJob job = take_job(arguments);
  const Json configuration = configuration_of(job.plan, job.loaded, job.options);
  output.print_configuration(configuration, verify_defaults(arguments));
  for (const std::string& note : job.loaded.notes) output.print("note: {}\n", note);
  output.print("{}", reach_text(job.plan));
  Verification done{.run = make_run(configuration, job.loaded, job.options), .facts = {}};
  VerifyOutcome outcome = verify_subjects(job.plan, job.loaded, job.options);
  done.run.ended = ending_of(job.plan, outcome);
  done.run.subjects = std::move(outcome.subjects);
  done.run.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_verification(done.run, job.detail, output);
  if (job.files.certificate || facts == Facts::always) {
    done.facts = certificate_facts(job.plan, done.run);
    done.facts.command = command_words(verify_command(), arguments, done.run.subjects);
  }
  write_files(job.files, done, output);
  // Facts that are always wanted are compared afterwards: no result stands yet.
  finish_output(configuration, job.plan, done.run, output,
                facts == Facts::always ? kNoResults : code_of(done.run));
  return done;
}

/// Runs the command of a certificate.
report::CertificateJson verify_again(const std::vector<std::string>& words) {
  const Command command = verify_command();
  Arguments arguments(command, words);
  for (const char* other : {"replay", "check-certificate", "json", "html", "certificate"}) {
    if (arguments.given(other)) {
      throw_input_error(
          {"the command of the certificate", "a verification", fmt::format("--{}", other), ""});
    }
  }
  Output output(arguments);
  const Verification done = verify_as_told(arguments, output, Facts::always);
  return report::make_certificate(done.run, done.facts);
}

int run_verification(Arguments& arguments) {
  Output output(arguments);
  if (arguments.given("replay")) return replay_token(arguments, output);
  if (arguments.given("tomography")) return run_tomography(arguments, output);
  if (arguments.given("check-certificate")) {
    return check_certificate(arguments, output, verify_again);
  }
  const Verification done = verify_as_told(arguments, output, Facts::where_needed);
  if (!done.run.passed()) return 1;
  if (Interruption::is_termination()) {
    throw_environment_error({"the verification", "to go on until its time is over", "SIGTERM",
                             "What was tried held; Ctrl-C (SIGINT) is a wish to end with that."});
  }
  refuse_gaps(done.run);
  return 0;
}

}  // namespace

Command verify_command() {
  Command command{"verify", "subjects against the exact reference: on an input and under the laws"};
  command.operands = "[SUBJECT…]";
  command.max_operands = kMostSubjects;
  command.options = option_specs({OptionGroup::problem, OptionGroup::run});
  for (OptionSpec& option : command.options) {
    const auto own = std::ranges::find(kOwnDefaults, option.name, &OwnDefault::word);
    if (own != kOwnDefaults.end()) option = option_spec(own->word, own->otherwise);
  }
  command.options.push_back(option_spec("deterministic"));
  command.options.push_back(
      {"backward", "",
       "on the input, gradients too: of the tensor do in it, else of a random one"});
  const std::vector<OptionSpec> own = {
      {"rows", "N", "query rows per head to compare with the reference (256)"},
      {"cases", "N", "random cases per law (40), and per round with --time or --rounds (10)"},
      {"laws", "ID,ID,...", "only these laws (all)"},
      {"time", "SECONDS", "keep trying the laws on new cases for so long; Ctrl-C ends it early"},
      {"rounds", "N", "all laws so many times, on new cases each time (1; with --time no limit)"},
      {"quick", "", "fewer tokens, rows and cases"},
      {"all", "", "show every law and case that is wrong, not only the mistake"},
      {"strict", "", "fail where something that a subject claims was not tried"},
      {"require", "WORD,WORD,...",
       "laws, kinds of cases and pairs of claims that have to have held"},
      {"replay", "TOKEN", "run one failing case again"},
      {"draw", "", "show what each rank did in it, and one wrong row chunk by chunk",
       "with --replay"},
      {"tomography", "", "read the softmax matrix out of each subject; --html draws it"},
      {"html", "FILE", "write a report with pictures"},
      {"certificate", "FILE", "write what was checked and how well: FILE.json or FILE.html"},
      {"check-certificate", "FILE", "read one back and compare its digest"},
      {"again", "", "repeat its verification and compare", "with --check-certificate"},
      json_option()};
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {
      "ringlab verify",
      "ringlab verify ring causal_ring --text README.md --mask causal+window:256,0 --html "
      "report.html",
      "ringlab verify 05 --input qkv.safetensors --dtype bf16 --ranks 6 --json -",
      "ringlab verify --laws P14,P29 --cases 1000 --seed 7",
      "ringlab verify ./libattention.so --timeout 2",
      "ringlab verify ./libattention.so --time 3600 --seed 7 --html report.html",
      "ringlab verify ./libattention.so --certificate attention.html",
      "ringlab verify --check-certificate attention.html --again",
  };
  command.more =
      "Without subjects all of them are verified; without --input and --text a built-in random "
      "input "
      "is used. Defaults are those of `ringlab run`, but for ranks, layout and mask: one rank with "
      "a full "
      "mask would leave most of the code of a subject unused. The laws use small random cases of "
      "their "
      "own, on the same device.\n\n"
      "With --time subjects take turns, one law at a time, the one that had least time first. "
      "Rounds never repeat a case, and equal seeds, rounds and cases give equal ones. A law that "
      "was broken is not tried again. Later rounds have larger cases, by a plan that is printed "
      "first.\n\n"
      "A problem that is given has to be one that the subjects named take; gradients of it are "
      "compared where it has a tensor do, or with --backward.\n\n"
      "Of a subject that is wrong the mistake comes first, by name where it is known, with the "
      "smallest case that shows it; --all adds everything else.\n\n"
      "Exit codes: 0 all pass, 1 a subject is wrong, refuses the problem that is given or two "
      "thirds of "
      "what it claims, or falls short of --strict or --require; 4 none is but a kind of case that "
      "a subject "
      "supports made up less than 2 % of all (with all laws and 500 cases or more), or a device, "
      "its "
      "driver or its memory failed: no verdict.\n\n"
      "--check-certificate --again runs the command that the certificate holds, plugins and all: "
      "do so with certificates that you trust.\n\n" +
      std::string(kAboutPlugins);
  command.run = run_verification;
  return command;
}

}  // namespace ringlab::cli
