// The plugins that were built for the tests.
#pragma once

#include <string>

#include "property_tests/law.h"
#include "property_tests/plugins/plugin_subject.h"

namespace ringlab::verify {

/// The path of `NAME_plugin`, whether it was built or not.
std::string plugin_path(const std::string& name);
/// Loads it.
Subject plugin_named(const std::string& name, const plugins::PluginOptions& options = {});
/// The misbehaving one. A mistake holds for the process that is started next, so that only one of
/// these subjects may be in use at a time.
Subject plugin_with(const std::string& mistake, const plugins::PluginOptions& options = {});
/// What the first failing case of a law said, unshrunk; "held" when there is none.
std::string finding(const Subject& subject, const std::string& law, int cases = 40);

}  // namespace ringlab::verify
