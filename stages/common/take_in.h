// A launch of stage 04's kernel, which the rings from 05 on share.
#pragma once

#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/row_states.h"

namespace ringlab::stages {

/// Keys and values of every head, and the part of them to attend to.
template <class Element>
struct KeyRows {
  const Element* k = nullptr;
  const Element* v = nullptr;
  KeyInterval part;
};

/// The running state takes in these keys, by a kernel as stage 04 has it. `visible` has the
/// positions of all rows of k and v.
template <template <class, class> class Kernel, class Element, class Visible>
void take_in(RankProblem<Element>& r, const Visible& visible, const KeyRows<Element>& keys,
             RowStates<Element>& running) {
  const KernelShape shape = kernel_shape(r, visible.key_positions.size);
  const std::int64_t rows = r.k.extents.batch * r.k.extents.heads * shape.keys;
  launch(r, shape.blocks(r.options.tile_queries),
         Kernel<Element, Visible>{shape,
                                  r.options.tile_keys,
                                  keys.part,
                                  visible,
                                  array_of(r.q),
                                  {keys.k, rows * shape.head_dim},
                                  {keys.v, rows * shape.v_dim},
                                  array_of(running.states),
                                  array_of(running.accs)});
}

}  // namespace ringlab::stages
