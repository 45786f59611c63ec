// The committed inputs of the fuzzers, and everything one edit away from them.
#pragma once

#include <functional>
#include <string>

#include "tests/fuzz/laws.h"

namespace ringlab::fuzz {

/// Puts every file of tests/fuzz/corpus/TARGET, every prefix of it and every file with one byte
/// changed to the laws, which say whether they accepted. Expects four that are accepted and two
/// that are rejected among the files themselves.
void replay(const std::string& target, const std::function<bool(const Bytes&)>& laws);

}  // namespace ringlab::fuzz
