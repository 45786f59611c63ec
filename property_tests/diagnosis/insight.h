// Findings about a subject besides its verdict: diagnosis, bias, arithmetic that it could declare.
#pragma once

#include <string>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

struct Insight {
  Diagnosis diagnosis;    ///< diagnosis of its failures; empty when there are none
  std::string of_law;     ///< the law whose failing case was diagnosed; one by which two
                          ///< runs differ only where no answer is wrong by itself
  std::string passes_if;  ///< an arithmetic that it keeps and could declare
  std::vector<std::string> warnings;  ///< bias found by matched filters
  std::vector<std::string> remarks;   ///< remarks on the arithmetic that it declares
};

/// Extent of the search: failures only, or also bias in the numbers of a subject that passed.
enum class Depth { failures, everything };

/// Diagnoses the failures of a verdict, which `search` found with `options`, or looks at the
/// numbers of a subject that passed. Takes a few runs of a subject that passed; hundreds where it
/// failed, for at most some seconds.
Insight look_into(const Subject& subject, const SubjectVerdict& verdict,
                  const VerifyOptions& options, Depth depth, const SearchLaw& search = verify_law);

}  // namespace ringlab::verify
