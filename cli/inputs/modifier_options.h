// From the command line to score modifiers: --softcap, --alibi, --sinks, --dropout.
#pragma once

#include <cstdint>

#include "cli/line/arguments.h"
#include "reference/core/modifiers.h"

namespace ringlab::cli {

/// Modifiers of the command line; numbers per head are one for all, or one each.
struct ModifierWish {
  Modifiers given;
  bool default_slopes = false;  ///< --alibi default
};
/// Usage errors for what is no number or out of range. To be asked before anything is loaded.
ModifierWish take_modifiers(Arguments& arguments);

/// The wish for so many query heads. Usage error when another number of them was given.
Modifiers modifiers_for(const ModifierWish& wish, std::int64_t q_heads);

}  // namespace ringlab::cli
