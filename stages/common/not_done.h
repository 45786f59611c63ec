// The placeholder for code that a learner will write.
#pragma once

#include <string>

#include "reference/core/error.h"

namespace ringlab::stages {

/// Ends the run: this exercise is not written yet.
[[noreturn]] inline void not_done(const std::string& exercise) {
  throw_usage_error({.where = "exercise " + exercise,
                     .expected = "code of yours",
                     .actual = "not_done()",
                     .hint = "`ringlab lab hint` has hints"});
}

}  // namespace ringlab::stages
