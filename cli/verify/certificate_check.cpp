#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "cli/line/build_info.h"
#include "cli/verify/verify.h"
#include "reference/core/error.h"
#include "reference/io/input_file.h"

namespace ringlab::cli {
namespace {

using Certificate = report::CertificateJson;

constexpr std::int64_t kMostCertificateBytes = std::int64_t{64} << 20;

std::string certificate_at(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path, kMostCertificateBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Certificate read_certificate(const std::string& path) {
  Certificate certificate = report::parse_certificate(certificate_at(path), path);
  const std::string found = report::certificate_digest(certificate);
  const std::string claimed = certificate.at("digest");
  if (found != claimed) {
    throw_input_error(
        {path, "the digest " + claimed, found, "It was changed after it was written, or damaged."});
  }
  return certificate;
}

/// The text of a field that may be missing: only the digest vouches for fields beyond the shape.
std::string text_at(const Certificate& certificate, const char* pointer) {
  const Certificate::json_pointer place(pointer);
  if (!certificate.contains(place)) return "unknown";
  const Certificate& value = certificate.at(place);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string oracle_text(const Certificate& certificate) {
  const std::string theirs = text_at(certificate, "/oracle/fingerprint");
  return theirs == verify::check_oracle().fingerprint
             ? "gives the same answers as this program's"
             : "gave other answers than this program's: " + theirs;
}

void print_certificate(const Certificate& certificate, Output& output) {
  output.print_configuration(
      {{"digest", "as written"},
       {"written", certificate.at("written").get<std::string>()},
       {"ringlab", text_at(certificate, "/ringlab/version") + ", this is " + build_info().version},
       {"reference", oracle_text(certificate)},
       {"seed", text_at(certificate, "/cases/seed")}});
  for (const Certificate& subject : certificate.at("subjects")) {
    output.print("\n{}  {}\n  {}\n", subject.at("verdict").get<std::string>(),
                 subject.at("subject").get<std::string>(),
                 subject.at("sentence").get<std::string>());
  }
}

/// Differences between a certificate and its repetition, in words; empty when there are none.
std::vector<std::string> differences(const Certificate& then, const Certificate& now) {
  std::vector<std::string> found;
  const Certificate& old_subjects = then.at("subjects");
  const Certificate& new_subjects = now.at("subjects");
  if (old_subjects.size() != new_subjects.size()) return {"another number of subjects"};
  const bool same_cases = !then.contains(Certificate::json_pointer("/cases/time_s"));
  for (std::size_t i = 0; i < old_subjects.size(); ++i) {
    const std::string name = old_subjects[i].at("subject");
    for (const char* field : {"subject", "content", "verdict", "cases_sha256"}) {
      if (!same_cases && field == std::string("cases_sha256")) continue;
      if (!old_subjects[i].contains(field)) continue;  // older certificates name no content
      if (old_subjects[i].at(field) == new_subjects[i].at(field)) continue;
      found.push_back(fmt::format("{}: {} was {}, is {}", name, field,
                                  old_subjects[i].at(field).get<std::string>(),
                                  new_subjects[i].at(field).get<std::string>()));
    }
  }
  return found;
}

}  // namespace

int check_certificate(Arguments& arguments, Output& output, const RunAgain& run_again) {
  const std::string path = *arguments.take_text("check-certificate");
  const bool again = arguments.take_switch("again");
  if (!arguments.operands().empty()) {
    throw_usage_error({"--check-certificate", "no subjects, the certificate names its own",
                       arguments.operands().front(), ""});
  }
  arguments.reject_unused();
  const Certificate certificate = read_certificate(path);
  print_certificate(certificate, output);
  std::vector<std::string> found;
  if (again) {
    const auto words = certificate.at("command").get<std::vector<std::string>>();
    output.print("\nringlab verify {}\n", fmt::join(words, " "));
    found = differences(certificate, run_again(words));
    output.print("\n{}\n", found.empty() ? "the same verdicts again" : "not the same again:");
    for (const std::string& difference : found) output.print("  {}\n", difference);
  }
  return output.finish("verify",
                       {{"certificate", path},
                        {"digest", certificate.at("digest")},
                        {"verdict", certificate.at("verdict")},
                        {"again", again},
                        {"differences", found}},
                       found.empty() ? 0 : 1);
}

}  // namespace ringlab::cli
