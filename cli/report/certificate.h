// The certificate of a verification: what was checked, with what, how well, and the verdicts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/results.h"
#include "property_tests/oracle_check.h"

namespace ringlab::report {

using CertificateJson = nlohmann::ordered_json;

inline constexpr int kCertificateFormat = 1;

/// Facts for a certificate that a VerifyRun does not hold.
struct CertificateFacts {
  std::vector<std::string> command = {};  ///< the words that give the same run again
  std::string written = {};               ///< UTC, "2026-01-31T12:00:00Z"
  std::string build_type = {};
  std::string processor = {}, vectors = {}, device = {};
  int threads = 1;
  verify::OracleCheck oracle = {};
  std::string strength = {};         ///< docs/mutants.json when this was built; empty: unknown
  std::string strength_sha256 = {};  ///< of that file
  std::uint64_t seed = 1;
  int cases_per_law = 0;
  std::optional<double> seconds = {};  ///< the limit in time, if there was one
  bool all_laws = true;
  /// Checks left out on this machine or in this build, each with the reason.
  std::vector<std::pair<std::string, std::string>> not_checked = {};
};

/// The document; docs/certificates.md describes its fields.
CertificateJson make_certificate(const VerifyRun& run, const CertificateFacts& facts);

/// The part of the certificate about one subject.
CertificateJson certified_subject(const SubjectResult& subject, bool all_laws);

/// SHA-256 of the document without its "digest", compact, with its keys in order and its fractions
/// as texts of 17 digits.
std::string certificate_digest(const CertificateJson& certificate);

/// A page that shows the certificate, to be read or printed, with the document inside.
std::string certificate_page(const CertificateJson& certificate);

/// The document from a JSON file or a page. Input error unless it is a certificate of this format,
/// with all fields that this program reads; its digest is not looked at.
CertificateJson parse_certificate(const std::string& text, const std::string& file);

/// "PASS ring", one per subject, joined by ", ".
std::string certificate_words(const CertificateJson& certificate);

}  // namespace ringlab::report
