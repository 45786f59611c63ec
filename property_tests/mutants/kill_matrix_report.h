// A kill matrix as JSON, as a text table and as a page of the documentation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "property_tests/mutants/kill_matrix_run.h"

namespace ringlab::mutants {

nlohmann::json to_json(const KillMatrix& matrix);
/// The file docs/mutants.json: the figures that a certificate quotes, without the rows.
nlohmann::json to_summary(const KillMatrix& matrix, const MatrixOptions& options);
/// A table with aligned columns, one line per mutant, then the summary.
std::string to_text(const KillMatrix& matrix);
/// The page docs/mutants.md. Holds no times, so that equal runs give equal pages.
std::string to_markdown(const KillMatrix& matrix);
/// The kills that the page docs/mutants.md names, of laws that still exist.
KnownKills known_kills(const std::string& page);

}  // namespace ringlab::mutants
