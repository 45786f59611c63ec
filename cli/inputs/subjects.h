// Subjects by name: ours, those of vendors, and plugins by their paths; and what they answer to the
// command line.
#pragma once

#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// "ring", "05", "cudnn", or "./libmine.so": anything with a slash, or that ends in ".so", is a
/// plugin, which is loaded. Its calls may take as long as --timeout says where it is given, else 10
/// s. Errors as of find_subject() and plugin_subject().
verify::Subject subject_named(const std::string& name, Arguments& arguments);
/// The subjects that operands name, each once; all subjects where there are none.
std::vector<verify::Subject> subjects_named(Arguments& arguments);

/// Notes for a reader of the verdict: results that subjects do not give, so that no check compared
/// them; walls around plugins that this machine lacks.
std::vector<std::string> notes_on(const std::vector<verify::Subject>& subjects);

/// Device and transport of the command line. Unknown words are skipped here, and refused where the
/// options are taken.
verify::Place place_of(const Arguments& arguments);

/// "mpi", as the command line has it.
std::string transport_word(TransportKind kind);

/// Usage error for the first option of the command line that has no effect on a subject, unless one
/// of the subjects honours all.
void refuse_without_effect(const Arguments& arguments, const std::vector<verify::Subject>& subjects,
                           const verify::Place& place, const std::vector<OptionGroup>& groups = {});

/// Usage error for options of devices that need or exclude another.
void check_device_options(const Arguments& arguments, const RunOptions& options);

/// Input error: the problem is one that the implementation of others does not take.
[[noreturn]] void refuse_problem(const verify::Subject& subject, const std::string& reason);

/// Usage error for what the subject cannot do on any machine, so that the same command line ends
/// alike on all; input error for a problem that the implementation of others does not take.
void check_subject_takes(const verify::Subject& subject, const Problem& problem,
                         const RunOptions& options, Pass last_pass);

/// Usage error where the subject does not run on that device; environment error that says what is
/// missing where it cannot be used here.
void require_device_of(const verify::Subject& subject, DeviceKind device);

/// The subject on the device, and with the order of sums, that `options` ask for.
verify::Subject as_asked(const verify::Subject& subject, const RunOptions& options);

/// Appends the options that had an effect on a run of one of these subjects.
void describe_effects(const std::vector<verify::Subject>& subjects, const verify::Place& place,
                      const RunOptions& options, Json& configuration);

/// Appends the effects on one subject, and in this process the device and kernels it computes with.
void describe_run(const verify::Subject& subject, const verify::Place& place,
                  const Problem& problem, const RunOptions& options, Json& configuration);

/// For the help of commands that take plugins.
inline constexpr const char* kAboutPlugins =
    "A subject with a slash, or that ends in .so, is a plugin: a shared library with the C "
    "interface of ringlab_plugin.h (docs/plugins.md). Its code runs in a process of its own, as "
    "you, behind walls of which a note says which ones this machine lacks. --timeout limits each "
    "of its calls (10 s).";

}  // namespace ringlab::cli
