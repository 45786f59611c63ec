#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/line/build_info.h"
#include "cli/line/output.h"
#include "cli/machine/machine.h"
#include "cli/verify/verify.h"
#include "optimized/cpu/vectors.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

using Unchecked = std::vector<std::pair<std::string, std::string>>;

/// Options that say where results go, how long to try, or are no part of a verification.
constexpr std::array kNotOfTheRun = {"json",  "html", "certificate", "check-certificate",
                                     "again", "time", "rounds"};

std::string device_text(DeviceKind device, const CudaDriver& driver) {
  if (device == DeviceKind::cpu) return "cpu";
  return driver.devices.empty() ? "cuda" : "cuda: " + driver.devices.front().name;
}

void note_devices(const report::VerifyRun& run, const CudaDriver& driver, Unchecked& unchecked) {
  if (run.options.device != DeviceKind::cpu) return;
  const std::string none = driver.problem.empty() ? "this machine has none" : driver.problem;
  unchecked.emplace_back("on devices",
                         driver.devices.empty() ? none : "it was not asked for (--device cuda)");
}

void note_input(const report::VerifyRun& run, Unchecked& unchecked) {
  const std::int64_t rows = run.problem.shape.q_tokens;
  for (const report::SubjectResult& subject : run.subjects) {
    if (!subject.input_skipped.empty()) {
      unchecked.emplace_back(subject.subject.name + " on the input", subject.input_skipped);
    } else if (subject.on_input.rows_checked < rows) {
      unchecked.emplace_back(
          subject.subject.name + ", other rows of the input",
          fmt::format("{} of {} were compared (--rows)", subject.on_input.rows_checked, rows));
    }
    if (!subject.subject.can.has(verify::Ability::lse)) {
      unchecked.emplace_back(subject.subject.name + ", the lse", "it gives none");
    }
    if (!subject.subject.can.has(verify::Ability::backward)) {
      unchecked.emplace_back(subject.subject.name + ", gradients", "it gives none");
    }
  }
}

}  // namespace

std::optional<std::string> take_certificate_file(Arguments& arguments) {
  std::optional<std::string> path = arguments.take_text("certificate");
  if (!path) return path;
  if (!path->ends_with(".json") && !path->ends_with(".html")) {
    throw_usage_error({"--certificate", "a file that ends in .json or .html", *path, ""});
  }
  check_writable("certificate", *path);
  return path;
}

std::vector<std::string> command_words(const Command& command, const Arguments& arguments,
                                       const std::vector<report::SubjectResult>& subjects) {
  std::vector<std::string> words = arguments.operands();
  std::vector<OptionSpec> options = command.options;
  std::erase_if(options, [](const OptionSpec& option) {
    return std::ranges::find(kNotOfTheRun, option.name) != kNotOfTheRun.end();
  });
  for (const auto& [name, value] : arguments.given_options(options)) {
    words.push_back("--" + name + (value.empty() ? "" : "=" + value));
  }
  if (!arguments.given("time") && !arguments.given("rounds")) return words;
  std::int64_t rounds = subjects.empty() ? 1 : subjects.front().rounds;
  for (const report::SubjectResult& subject : subjects) rounds = std::min(rounds, subject.rounds);
  words.push_back(fmt::format("--rounds={}", std::max<std::int64_t>(1, rounds)));
  return words;
}

report::CertificateFacts certificate_facts(const VerifyPlan& plan, const report::VerifyRun& run) {
  const Processor processor = find_processor();
  const CudaDriver driver = find_cuda_driver();
  report::CertificateFacts facts{.written = utc_now(),
                                 .build_type = build_info().build_type,
                                 .processor = processor.model,
                                 .vectors = cpu::vectors_in_use(),
                                 .device = device_text(run.options.device, driver),
                                 .threads = processor.threads,
                                 .oracle = verify::check_oracle(),
                                 .strength = strength_summary(),
                                 .strength_sha256 = strength_digest(),
                                 .seed = plan.laws.seed,
                                 .cases_per_law = plan.laws.cases_per_law,
                                 .seconds = plan.seconds,
                                 .all_laws = plan.laws.laws.empty()};
  note_devices(run, driver, facts.not_checked);
  note_input(run, facts.not_checked);
  return facts;
}

std::string certificate_text(const std::string& path, const report::CertificateJson& certificate) {
  if (path.ends_with(".html")) return report::certificate_page(certificate);
  return certificate.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringlab::cli
