// Machines as JSON, each figure with its source (docs/formats.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/model/machine.h"

namespace ringlab::model {

/// A machine and what of it is expected. Input errors, with `where` and the name of the figure, for
/// what is missing, unknown, of another type or makes no sense.
Machine machine_of_json(std::string_view text, const std::string& where);

/// machine_of_json() of a file of at most 1 MiB.
Machine read_machine(const std::string& path);

/// A machine of a name, or of a file, whose path ends in .json, which names do not.
Machine machine_named(const std::string& name);

/// The files of reference/model/machines, as they were when the program was built.
struct MachineText {
  std::string_view name;
  std::string_view text;
};
const std::vector<MachineText>& machine_texts();

}  // namespace ringlab::model
