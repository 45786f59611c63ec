// Gradients that are to have the same bits in whatever order things happen.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

namespace ringlab::cuda {

/// `gradients(deterministic, seed)` computes them with orders drawn from the seed. The
/// deterministic ones are the same for seeds 0, 100, … 100 (seeds - 1); where `orders_are_drawn`,
/// the others are not.
template <class Compute>
void expect_same_bits(const Compute& gradients, std::uint64_t seeds, bool orders_are_drawn) {
  const auto first = gradients(true, 0);
  const auto any_order = gradients(false, 0);
  bool order_shows = false;
  for (std::uint64_t seed = 1; seed < seeds; ++seed) {
    const auto again = gradients(true, 100 * seed);
    EXPECT_EQ(again.dq.values(), first.dq.values()) << seed;
    EXPECT_EQ(again.dk.values(), first.dk.values()) << seed;
    EXPECT_EQ(again.dv.values(), first.dv.values()) << seed;
    order_shows |= gradients(false, 100 * seed).dq.values() != any_order.dq.values();
  }
  EXPECT_TRUE(order_shows || !orders_are_drawn) << "no order of additions was tried but one";
}

}  // namespace ringlab::cuda
