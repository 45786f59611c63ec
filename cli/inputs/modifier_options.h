// From the command line to score modifiers: --softcap, --alibi, --sinks, --dropout.
#pragma once

#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "property_tests/subject.h"
#include "reference/core/modifiers.h"

namespace ringlab::cli {

/// The options that take_modifiers() takes.
std::vector<OptionSpec> modifier_options();

/// What the command line asks for; numbers per head are one for all, or one each.
struct ModifierWish {
  Modifiers given;
  bool default_slopes = false;  ///< --alibi default
};
/// Usage errors for what is no number or out of range. To be asked before anything is loaded.
ModifierWish take_modifiers(Arguments& arguments);

/// The wish for so many query heads. Usage error when another number of them was given.
Modifiers modifiers_for(const ModifierWish& wish, std::int64_t q_heads);

/// The first option that asks for a modifier that a subject with these abilities does not know;
/// empty when it knows them all.
std::string unknown_modifier(const Arguments& arguments, const verify::ModifierAbilities& can);
/// Usage error naming that option; first that of take_modifiers(), if there is one.
void refuse_unknown_modifiers(const Arguments& arguments, const verify::Subject& subject);

}  // namespace ringlab::cli
