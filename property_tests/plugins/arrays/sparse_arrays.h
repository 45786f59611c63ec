// Tensors whose elements lie so far apart that most of their pages are not there.
#pragma once

#include <optional>

#include "property_tests/plugins/arrays/arrays.h"

namespace ringlab::plugins {

/// Copies a tensor as add_tensor() does, but only the pages that have an element on them. Nothing
/// where those are too many.
std::optional<Segment> add_sparse_tensor(Pages& pages, const TensorView<const double>& values,
                                         DType dtype, ringlab_tensor& shape);

}  // namespace ringlab::plugins
