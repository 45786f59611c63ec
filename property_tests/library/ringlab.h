// ringlab in one header: problems, the exact reference, stages, the engine, files, and verdicts
// about attention of yours. Link ringlab::verifier.
#pragma once

#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/transport/in_process.h"
#include "property_tests/library/own_attention.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "reference/core/report.h"
#include "reference/io/tensor_file.h"
#include "reference/io/text_input.h"
#include "stages/common/stage.h"
