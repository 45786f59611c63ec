// `ringlab verify --certificate FILE`, and the facts that go into it besides the results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/report/certificate.h"
#include "cli/verify/verify_work.h"

namespace ringlab::cli {

/// The file that --certificate names: .json or .html, in a folder that can be written. Usage and
/// environment errors otherwise.
std::optional<std::string> take_certificate_file(Arguments& arguments);

/// The words that give the same run again: what was given, less what says where results go. A limit
/// in time becomes as many rounds as every subject had.
std::vector<std::string> command_words(const Command& command, const Arguments& arguments,
                                       const std::vector<report::SubjectResult>& subjects);

/// Of this machine, this build and this plan. Tries the exact reference.
report::CertificateFacts certificate_facts(const VerifyPlan& plan, const report::VerifyRun& run);

/// As JSON or as a page, by the ending of the name.
void write_certificate(const std::string& path, const report::CertificateJson& certificate);

}  // namespace ringlab::cli
