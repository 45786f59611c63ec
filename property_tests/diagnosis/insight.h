// What can be said of a subject besides its verdict.
#pragma once

#include <string>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

struct Insight {
  Diagnosis diagnosis;                ///< of its failures; empty when there are none
  std::string of_law;                 ///< the law whose failing case was diagnosed
  std::string passes_if;              ///< an arithmetic that it keeps and could declare
  std::vector<std::string> warnings;  ///< bias found by matched filters
  std::vector<std::string> remarks;   ///< on the arithmetic that it declares
};

/// How much is looked at: failures only, or also the numbers of what passed.
enum class Depth { failures, everything };

/// Diagnoses the failures of a verdict, which `search` found with `options`, and looks at the numbers
/// of what passed. A few runs of the subject for what passed; where it failed hundreds, for at most
/// some seconds.
Insight look_into(const Subject& subject, const SubjectVerdict& verdict,
                  const VerifyOptions& options, Depth depth, const SearchLaw& search = verify_law);

}  // namespace ringlab::verify
