#include "reference/core/memory_meter.h"

#include <gtest/gtest.h>

namespace ringlab {
namespace {

TEST(MemoryMeterTest, peak_is_the_most_that_was_live_at_one_time) {
  MemoryMeter meter;
  {
    MeteredBuffer<float> a(meter, 10);
    {
      const MeteredBuffer<double> b(meter, 5);
      EXPECT_EQ(meter.live_bytes(), 80);
    }
    EXPECT_EQ(meter.live_bytes(), 40);
    const MeteredBuffer<double> c(meter, 4);
    EXPECT_EQ(meter.live_bytes(), 72);
  }
  EXPECT_EQ(meter.live_bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 80);
}

TEST(MemoryMeterTest, a_moved_buffer_is_counted_once) {
  MemoryMeter meter;
  {
    MeteredBuffer<int> a(meter, 3, 7);
    const MeteredBuffer<int> b(std::move(a));
    EXPECT_EQ(meter.live_bytes(), 12);
    EXPECT_EQ(b.data()[2], 7);
  }
  EXPECT_EQ(meter.live_bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 12);
}

TEST(MemoryMeterTest, assigning_a_new_buffer_frees_the_old_one) {
  MemoryMeter meter;
  MeteredBuffer<char> buffer(meter, 100);
  buffer = MeteredBuffer<char>(meter, 30);
  EXPECT_EQ(buffer.size(), 30);
  EXPECT_EQ(meter.live_bytes(), 30);
  EXPECT_EQ(meter.peak_bytes(), 130);  // both lived until the assignment
}

TEST(MemoryMeterTest, buffers_of_two_meters_keep_to_their_own_when_swapped) {
  MemoryMeter first, second;
  {
    MeteredBuffer<char> a(first, 10);
    MeteredBuffer<char> b(second, 20);
    std::swap(a, b);
    EXPECT_EQ(a.size(), 20);
    EXPECT_EQ(first.live_bytes(), 10);
    EXPECT_EQ(second.live_bytes(), 20);
  }
  EXPECT_EQ(first.live_bytes(), 0);
  EXPECT_EQ(second.live_bytes(), 0);
}

TEST(MemoryMeterTest, an_empty_buffer_counts_nothing) {
  MemoryMeter meter;
  const MeteredBuffer<double> buffer(meter, 0);
  EXPECT_EQ(buffer.bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 0);
}

}  // namespace
}  // namespace ringlab
