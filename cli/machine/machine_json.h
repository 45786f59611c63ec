// Pieces of machines' files (docs/formats.md), for the commands that write them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reference/model/kernel_speeds.h"

namespace ringlab::cli {

/// A figure with four digits, and its source.
nlohmann::ordered_json figure(double value, const std::string& source);

/// A line of "attention", `with_place`: with mask and length, as in "expected".
nlohmann::ordered_json speed_json(const model::KernelSpeed& speed, bool with_place);

/// "between_nodes" of a machine that shows nothing of its network.
nlohmann::ordered_json assumed_network();

/// The text of a machine's file, checked to be readable: errors as of machine_of_json().
std::string machine_text(const nlohmann::ordered_json& machine);

}  // namespace ringlab::cli
