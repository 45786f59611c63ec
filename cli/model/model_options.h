// Options that `simulate` and `plan` share: from the command line to a job without tensors, and a
// machine, a named one with the user's own figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "reference/model/job.h"
#include "reference/model/machine.h"

namespace ringlab::cli {

/// The options that take_modelled_job() takes.
std::vector<OptionSpec> modelled_job_options();

/// All options of a command about a job: modelled_job_options(), `run` of the run,
/// machine_options(), `own` and --json.
std::vector<OptionSpec> model_options(const std::vector<OptionSpec>& run,
                                      const std::vector<OptionSpec>& own = {});

/// Options that are given, of `specs`, as words of another command: " --name value", quoted.
std::string given_words(const Arguments& arguments, const std::vector<OptionSpec>& specs);

/// A job of the problem and passes asked for; its options are the defaults.
model::Job take_modelled_job(Arguments& arguments);

/// Problem and passes, as the output echoes them.
Json modelled_job_figures(const model::Job& job);

/// Inputs, outputs and all that the engine holds on the fullest rank, by the closed forms that runs
/// are held to.
std::int64_t largest_memory(const model::Job& job, const model::JobNeeds& needs);

/// The file that `option` names, if it is given. Usage error unless its name ends in .json, by
/// which `--machine` knows files.
std::optional<std::string> take_machine_file(Arguments& arguments, const std::string& option);

/// The options that take_machine() takes.
std::vector<OptionSpec> machine_options();

model::Machine take_machine(Arguments& arguments, const Problem& problem);

/// The figures of a machine with their units, for people, and where they come from.
Json machine_figures(const model::Machine& machine);
/// The figures of a machine as numbers, in units that their names say.
Json machine_json(const model::Machine& machine);

}  // namespace ringlab::cli
