// Anybody's shared library as a subject.
#pragma once

#include <string>

#include "property_tests/plugins/plugin_process.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

/// The plugin in this file (reference/core/ringlab_plugin.h), running in a process of its own that
/// ends with the last copy of the subject. Its code is kept behind the walls
/// of docs/plugins.md. The subject is named by its path, and in tokens by its content.
/// Errors as of plugins::PluginProcess; input error for a description that makes no sense.
Subject plugin_subject(const std::string& path, const plugins::PluginOptions& options = {});

/// True when a word names a plugin rather than a subject of ours: it has a slash, or ends in ".so".
bool names_a_plugin(const std::string& word);

/// "libmine.so@1f3c…": the same for the same library, wherever it lies.
std::string content_name(const std::string& path);

}  // namespace ringlab::verify
