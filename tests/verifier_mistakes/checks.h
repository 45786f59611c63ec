// What a verifier that works does on subjects of which we know whether they are right.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ringlab::verify {

struct SelfCheck {
  std::string name;                    ///< a sentence
  std::function<std::string()> check;  ///< empty when it holds, else what is wrong
};

/// The cheapest first.
std::vector<SelfCheck> self_checks();

}  // namespace ringlab::verify
