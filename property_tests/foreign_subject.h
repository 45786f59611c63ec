// The implementations of others as subjects: plugins, callables of another language.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "property_tests/subject.h"

namespace ringlab::verify {

/// A subject that can be verified, made from a raw one that can do less than ours. `raw.can` says
/// what it can; `raw.run` is called with problems within that, and returns an empty lse where
/// `raw.can.has(Ability::lse)` is false. The result
///  - throws Unsupported for anything else, so that run_law() discards the case,
///  - gives raw.run a plainer mask where the matrix of bits it does not take has one that allows
///    the same pairs,
///  - gives dense copies of inputs to what reads no strided ones,
///  - gives the oracle's lse, rounded to f32, where there is none: laws about O can then run, and
///    laws about the lse alone do not apply. Input error as of exact_forward().
Subject foreign_subject(Subject raw);

/// The problem as a raw subject with these abilities gets it: with a plainer mask in place of a
/// matrix of bits that it does not take, where there is one.
Problem as_read(const Capabilities& can, Problem problem);

/// True when the elements lie one after the other, whatever the strides of extents of 1 are.
bool is_dense(const TensorView<const double>& view);

/// A mask without matrices of bits that allows the same pairs: none, causal, or a window. Nothing
/// when there is no such mask. O(queries · keys).
std::optional<Mask> plainer_mask(const Mask& mask, const MaskAbilities& can = {});

/// Further cases that no seed foretells, so that answers stored in another verification do not
/// pass. They count only where they break a law, so that a subject which computes has equal
/// verdicts for equal seeds. For laws that compare foreign subjects with the exact reference.
inline constexpr int kUnannouncedCases = 10;
bool is_tried_unannounced(const Subject& subject, const std::string& law_id);
/// A seed from the system's randomness, another one each time.
std::uint64_t unannounced_seed();

}  // namespace ringlab::verify
