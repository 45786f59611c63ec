// `ringlab verify --check-certificate FILE [--again]`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/report/certificate.h"

namespace ringlab::cli {

/// Runs the words after `ringlab verify` and gives the certificate of that.
using RunAgain = std::function<report::CertificateJson(const std::vector<std::string>& words)>;

/// Reads a certificate back, compares its digest, says what it says, and with --again runs its
/// command and compares verdicts and cases: exit code 1 where they differ. Input error for what is
/// no certificate, or not as it was written.
int check_certificate(Arguments& arguments, Output& output, const RunAgain& run_again);

}  // namespace ringlab::cli
