// From the command line to an attention problem with its tensors: --input, --text and built-in
// inputs, --dtype, --mask, --scale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/inputs/modifier_options.h"
#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "reference/core/run.h"

namespace ringlab::cli {

struct LoadedInput {
  Problem problem;
  AttentionTensors tensors;
  std::optional<Tensor<double>> dout;  ///< gradient of out, where gradients are wanted
  std::string origin;                  ///< where the numbers come from, with their amount
  std::vector<std::string> notes;      ///< what was changed on the way in
  std::uint64_t seed = 1;              ///< of texts and built-in inputs
  std::size_t dimensions = 4;          ///< of q in its file: results are written with as many
  bool random = false;                 ///< --random: any row can be made again, from `seed`
  bool by_rows = false;                ///< the tensors are empty: whoever needs rows makes them
  AttentionInput input() const {
    AttentionInput input = tensors.input(problem);
    if (dout) input.dout = dout->view();
    return input;
  }
};

/// The source of the output's gradient.
enum class Gradients {
  none,
  if_there,           ///< `do` of a file that has one
  if_there_or_drawn,  ///< standard normal where there is none
  of_input            ///< `do` of a file, which has to have it; drawn for texts and built-in inputs
};

struct InputDefaults {
  std::int64_t tokens = 1024;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;  ///< 0: half of the heads
  std::int64_t head_dim = 32;
  DType dtype = DType::f32;
  std::string mask = "full";
  Gradients gradients = Gradients::none;
  bool built_in = false;  ///< without --input and --text: seeded random tensors, else a usage error
  bool by_rows = false;   ///< leave the tensors of --random to be made row by row
};

/// Input errors (tensor named) for shapes that do not fit together, NaN, ±inf, and values that
/// overflow the dtype; environment error when the tensors cannot fit into this machine's memory.
LoadedInput load_input(Arguments& arguments, const InputDefaults& defaults);

/// --mask, --scale and the modifiers, read before anything is loaded.
struct ProblemWish {
  Mask mask;
  std::optional<double> scale;
  ModifierWish modifiers;
};
ProblemWish take_problem_wish(Arguments& arguments, const std::string& default_mask = "full");
/// Sets mask, scale and modifiers in a problem with shape, dtype and default scale, and checks it.
void apply_wish(const ProblemWish& wish, Problem& problem);

/// --dtype. Usage error for one that attention does not take.
std::optional<DType> take_dtype(Arguments& arguments);

/// A problem without tensors, of --tokens, --heads, --kv-heads, --head-dim, --dtype and --mask.
Problem take_problem(Arguments& arguments, const InputDefaults& defaults);

/// Appends input, shapes, dtype, mask, scale and modifiers.
void describe_input(const LoadedInput& loaded, Json& configuration);

/// Environment error when q, k, v and the results would not fit into memory, input error when their
/// sizes overflow. To be asked before anything of this shape is allocated.
void check_fits_memory(const Shape& shape);
/// Environment error when `bytes` would not fit into memory, naming the shape.
void check_fits_memory(const Shape& shape, double bytes);

}  // namespace ringlab::cli
