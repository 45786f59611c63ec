// `ringlab plan --model` of a model that serves: a prefill, or a token more of many sequences.
#pragma once

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// Weigh all splits and tell the fastest that fits. Exit code 4 where none does.
int plan_prefill(Arguments& arguments);
int plan_decode(Arguments& arguments);

}  // namespace ringlab::cli
