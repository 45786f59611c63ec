// The ring engine on the caller's own memory.
#pragma once

#include "optimized/ring/engine_parts.h"
#include "python/core/given_input.h"

namespace ringlab::python {

/// Results in the types the engine computes them in.
template <class Element>
struct EngineResults {
  Tensor<Element> out;
  Tensor<Accumulator<Element>> lse;
  std::optional<Tensor<Element>> dq = {}, dk = {}, dv = {};
};

/// Runs all ranks inside this process. A rank's rows are read where they lie if their tokens are
/// one run, and packed if not. Needs no GIL.
template <class Element>
EngineResults<Element> run_engine_on(const GivenInput& given, const RunOptions& options,
                                     const ring::EngineParts& parts);
extern template EngineResults<double> run_engine_on(const GivenInput&, const RunOptions&,
                                                    const ring::EngineParts&);
extern template EngineResults<float> run_engine_on(const GivenInput&, const RunOptions&,
                                                   const ring::EngineParts&);
extern template EngineResults<Half> run_engine_on(const GivenInput&, const RunOptions&,
                                                  const ring::EngineParts&);
extern template EngineResults<BFloat16> run_engine_on(const GivenInput&, const RunOptions&,
                                                      const ring::EngineParts&);

}  // namespace ringlab::python
