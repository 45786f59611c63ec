// A stage that somebody else wrote, as a subject: judged as the stage it stands for.
#pragma once

#include <string>

#include "property_tests/plugins/plugin_process.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

/// True when the file has the name of the symbol that stage libraries export.
bool names_a_stage_library(const std::string& path);

/// The stage in a shared library made with RINGLAB_STAGE_LIBRARY. It has the abilities, the
/// promised numerics and the closed forms of the stage that it names, in f32 and on CPUs. All its
/// ranks run in a process of its own, which is started again when it has died; a deadlock among
/// them is an error after 2 s. Errors as of PluginProcess.
Subject stage_library_subject(const std::string& path, const plugins::PluginOptions& options = {});

}  // namespace ringlab::verify
