#include "tests/property_tests/plugins/plugin_folder.h"

#include <cstdlib>

#include "property_tests/verify.h"

namespace ringlab::verify {

std::string plugin_path(const std::string& name) {
  return RINGLAB_TEST_PLUGINS "lib" + name + "_plugin.so";
}

Subject plugin_named(const std::string& name, const plugins::PluginOptions& options) {
  return plugin_subject(plugin_path(name), options);
}

Subject plugin_with(const std::string& mistake, const plugins::PluginOptions& options) {
  setenv("RINGLAB_TEST_MISTAKE", mistake.c_str(), 1);
  return plugin_named("misbehaving", options);
}

std::string finding(const Subject& subject, const std::string& law, int cases) {
  const LawVerdict verdict =
      verify_law(subject, find_law(law), {.cases_per_law = cases, .shrink = false});
  if (verdict.failure) return verdict.failure->message;
  return verdict.skipped.empty() ? "held" : "skipped: " + verdict.skipped;
}

}  // namespace ringlab::verify
