// Subjects by name: ours, those of vendors, and plugins by their paths.
#pragma once

#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// "ring", "05", "cudnn", or "./libmine.so": anything with a slash, or that ends in ".so", is a
/// plugin, which is loaded. Its calls may take as long as --timeout says where it is given, else 10
/// s. Errors as of find_subject() and plugin_subject().
verify::Subject subject_named(const std::string& name, Arguments& arguments);

/// What a reader of the verdict should know of these subjects: what was not checked because they
/// do not give it.
std::vector<std::string> notes_on(const std::vector<verify::Subject>& subjects);

/// For the help of commands that take plugins.
inline constexpr const char* kAboutPlugins =
    "A subject with a slash, or that ends in .so, is a plugin: a shared library with the C "
    "interface of ringlab_plugin.h (docs/plugins.md). Its code runs in a process of its own, as "
    "you, and can do whatever you can: verify only what you would run anyway. --timeout limits "
    "each of its calls (10 s).";

}  // namespace ringlab::cli
