// Completion and manual pages of the commands, from the same tables as --help.
#pragma once

#include <string>

#include "cli/line/command.h"

namespace ringlab::cli {

/// A script for bash that completes commands, options and files: eval "$(ringlab help --bash)".
std::string bash_completion();

/// `man ringlab`, as groff reads it, with the text of `ringlab --help`.
std::string program_man_page(const std::string& version, const std::string& help);

/// `man ringlab-COMMAND`, as groff reads it.
std::string man_page(const Command& command, const std::string& version);

}  // namespace ringlab::cli
