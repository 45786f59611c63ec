// A ring on devices: chunks are copied from rank to rank while kernels run on others.
//
// One host thread drives all ranks. It only puts work on streams, two per rank, and waits once, at
// the end. A stream does its work in order, and knows nothing of other streams: what has to wait for
// another stream's work waits for an event. Every event that is waited for was recorded in an
// earlier line or step: a wait for an event that nobody has recorded yet is no wait at all.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/cuda/stuck_device.h"
#include "reference/core/machine/machine_error.h"
#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// The slots of a rank's device, and the place of its own chunk.
struct SlotPlan {
  int slots = 2;             ///< of each rank, where it has so many chunks to fetch
  bool own_in_slot = false;  ///< the own chunk takes a slot too; else it stays where it is
};

/// A place for one K/V chunk on a rank's device, and its two events.
template <class Element>
struct DeviceSlot {
  ringlab::cuda::DeviceTensor<Element> k, v;
  ringlab::cuda::OwnedEvent arrived;  ///< the chunk is there: recorded on the copy stream
  ringlab::cuda::OwnedEvent used;     ///< the kernel has read it: recorded on the compute stream

  DeviceSlot(int device, std::int64_t k_values, std::int64_t v_values)
      : k(device, k_values),
        v(device, v_values),
        arrived(ringlab::cuda::make_event(device)),
        used(ringlab::cuda::make_event(device)) {}
  std::int64_t bytes() const { return k.bytes() + v.bytes(); }
};

/// A chunk where a kernel finds it: (batch, kv_heads, keys of the owner, channels).
template <class Element>
struct DeviceChunk {
  int owner = 0;
  const Element* k = nullptr;
  const Element* v = nullptr;
};

/// The device that a rank is on: ranks take those that there are in turn.
inline int device_of(int rank, int devices) { return rank % devices; }

template <class Element>
class StreamedRing {
 public:
  /// Allocates everything and copies the ranks' own chunks in. `moved`: counts what travels.
  StreamedRing(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved,
               const SlotPlan& plan)
      : ranks_(ranks),
        moved_(moved),
        plan_(plan),
        slots_(std::min(plan.slots, count() - (plan.own_in_slot ? 0 : 1))),
        devices_(std::min(ringlab::cuda::device_count(), count())) {
    ringlab::cuda::connect_devices(devices_);
    for (RankProblem<Element>& r : ranks) make_place(r);
  }
  int devices() const { return devices_; }

  // [streams: a step]
  /// Chunk `step` of `rank` is copied into its slot: by the rank's copy stream, from the neighbour,
  /// who has had it for one step; with a single slot, straight from its owner.
  void fetch(int rank, int step) {
    const Place& mine = place(rank);
    DeviceSlot<Element>& to = slot_of(rank, step);
    const int from_rank = rank_at(rank, straight() ? -step : -1);
    DeviceSlot<Element>& from = slot_of(from_rank, straight() ? 0 : step - 1);
    const int before = step - slots_;  // the chunk that lay there
    if (before >= (plan_.own_in_slot ? 0 : 1)) {
      wait(mine.copies, to.used, rank, "computed on, before another one comes");
      // The old chunk has left when it has arrived at the next rank; none leaves a single slot.
      const int next = rank_at(rank, 1);
      if (!straight()) {
        wait(mine.copies, slot_of(next, before + 1).arrived, rank,
             "sent on, before another one comes");
      }
    }
    if (step > 1 && !straight())
      wait(mine.copies, from.arrived, rank, "there, before it is sent on");
    copy(mine, to, from, from_rank, owner_of(rank, step), rank);
    record(to.arrived, mine.copies, rank, "arrived");
  }

  /// Chunk `step` is computed on, by the rank's compute stream, as `compute.attend(step, chunk,
  /// stream)` does.
  template <class Compute>
  void attend(int rank, int step, Compute& compute) {
    const Place& mine = place(rank);
    DeviceSlot<Element>& slot = slot_of(rank, step);
    if (step > 0) wait(mine.compute, slot.arrived, rank, "there, before it is computed on");
    compute.attend(step, {owner_of(rank, step), slot.k.data(), slot.v.data()},
                   compute_stream(rank));
    record(slot.used, mine.compute, rank, "computed on");
  }
  // end [streams: a step]

  /// Work of the rank's compute stream before its first chunk, and behind its last one.
  template <class Compute>
  void begin(int rank, Compute& compute) {
    compute.begin(compute_stream(rank));
  }
  template <class Compute>
  void finish(int rank, Compute& compute) {
    compute.finish(compute_stream(rank));
  }

  /// Waits until all work on all streams has ended; errors of kernels are thrown here. DeviceStuck
  /// when that takes more than `timeout_s`: it names `where` and the streams that have not ended.
  void wait_for_all(const std::string& where, double timeout_s) const {
    if (ringlab::cuda::ends_within(timeout_s, [&] { return unended().empty(); })) return;
    ringlab::cuda::throw_stuck(where, timeout_s, unended());
  }

 private:
  struct Place {
    std::vector<DeviceSlot<Element>> home;  ///< one, unless the own chunk takes a slot
    std::vector<DeviceSlot<Element>> slots;
    ringlab::cuda::OwnedStream compute, copies;
  };

  /// Streams with something left to do.
  std::vector<std::string> unended() const {
    std::vector<std::string> streams;
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      for (const auto& [stream, work] : {std::pair(&places_[rank].compute, "kernels"),
                                         std::pair(&places_[rank].copies, "copies")}) {
        if (ringlab::cuda::has_ended(stream->device(), stream->get())) continue;
        streams.push_back("rank " + std::to_string(rank) + "'s " + work + " on device " +
                          std::to_string(stream->device()));
      }
    }
    return streams;
  }
  /// The stream of a rank's kernels; its device becomes the current one.
  ringlab::cuda::Stream compute_stream(int rank) {
    const ringlab::cuda::OwnedStream& stream = place(rank).compute;
    ringlab::cuda::select_device(stream.device());
    return stream.get();
  }
  int count() const { return static_cast<int>(ranks_.size()); }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  /// Two ranks cannot pass chunks on from a single slot each: each would wait for the other's.
  bool straight() const { return slots_ == 1 && !plan_.own_in_slot; }
  /// The rank `hops` further on in the direction in which chunks travel.
  int rank_at(int rank, int hops) const {
    const bool next = ranks_.front().options.direction == RingDirection::next;
    return (rank + (next ? hops : -hops) % count() + count()) % count();
  }
  int owner_of(int rank, int step) const { return rank_at(rank, -step); }
  DeviceSlot<Element>& slot_of(int rank, int step) {
    Place& mine = place(rank);
    if (plan_.own_in_slot) return mine.slots[static_cast<std::size_t>(step % slots_)];
    if (step == 0) return mine.home.front();
    return mine.slots[static_cast<std::size_t>((step - 1) % slots_)];
  }
  std::int64_t keys(int owner) const { return ranks_.front().kv_layout.positions(owner).size(); }
  static std::int64_t per_key(const TensorView<const Element>& shard) {
    return shard.extents.batch * shard.extents.heads * shard.extents.channels;
  }

  void make_place(RankProblem<Element>& r) {
    const int device = device_of(r.rank(), devices_);
    places_.push_back(
        {{}, {}, ringlab::cuda::make_stream(device), ringlab::cuda::make_stream(device)});
    Place& mine = places_.back();
    const std::int64_t largest = r.kv_layout.largest_chunk();
    std::int64_t held = 0, own = 0;
    if (!plan_.own_in_slot) {
      mine.home.emplace_back(device, r.k.extents.size(), r.v.extents.size());
      own = mine.home.front().bytes();
    }
    for (int slot = 0; slot < slots_; ++slot) {
      mine.slots.emplace_back(device, per_key(r.k) * largest, per_key(r.v) * largest);
      held += mine.slots.back().bytes();
    }
    r.memory.add(held);  // the own chunk is an input
    r.work.hold_kv(held + own);
    DeviceSlot<Element>& first = slot_of(r.rank(), 0);
    first.k.write(0, {r.k.data, static_cast<std::size_t>(r.k.extents.size())});
    first.v.write(0, {r.v.data, static_cast<std::size_t>(r.v.extents.size())});
  }

  /// K and V, one copy each.
  void copy(const Place& mine, const DeviceSlot<Element>& to, const DeviceSlot<Element>& from,
            int from_rank, int owner, int rank) {
    for (const auto& [into, out_of, width] :
         {std::tuple(&to.k, &from.k, per_key(ranks_.front().k)),
          std::tuple(&to.v, &from.v, per_key(ranks_.front().v))}) {
      const std::int64_t bytes = width * keys(owner) * std::int64_t{sizeof(Element)};
      ringlab::cuda::copy_between({into->device(), reinterpret_cast<std::byte*>(into->data())},
                                  {out_of->device(), reinterpret_cast<std::byte*>(out_of->data())},
                                  bytes, mine.copies.get());
      Traffic &sender = moved_[static_cast<std::size_t>(from_rank)],
              &receiver = moved_[static_cast<std::size_t>(rank)];
      sender.sent_bytes += bytes, ++sender.sent_messages;
      receiver.received_bytes += bytes, ++receiver.received_messages;
    }
  }

  static void wait(const ringlab::cuda::OwnedStream& stream, const ringlab::cuda::OwnedEvent& event,
                   int rank, const char* what) {
    ringlab::cuda::wait_for_event(stream.device(), event.get(), stream.get(), where(rank, what));
  }
  static void record(const ringlab::cuda::OwnedEvent& event,
                     const ringlab::cuda::OwnedStream& stream, int rank, const char* what) {
    ringlab::cuda::record_event(stream.device(), event.get(), stream.get(), where(rank, what));
  }
  static std::string where(int rank, const char* what) {
    return "rank " + std::to_string(rank) + ": chunk is " + what;
  }

  std::span<RankProblem<Element>> ranks_;
  std::span<Traffic> moved_;
  SlotPlan plan_;
  int slots_;
  int devices_;
  std::vector<Place> places_;
};

/// A run of all ranks: the ring, and what each of them computes with.
template <class Element, class Compute>
struct StreamedRun {
  StreamedRing<Element> ring;
  std::vector<Compute> computes;  // by rank

  void run(const std::string& stage, double timeout_s) {
    const int count = static_cast<int>(computes.size());
    const auto compute_of = [&](int rank) -> Compute& {
      return computes[static_cast<std::size_t>(rank)];
    };
    // [streams: the loop]
    for (int rank = 0; rank < count; ++rank) ring.begin(rank, compute_of(rank));
    for (int step = 0; step < count; ++step) {
      for (int rank = 0; rank < count && step > 0; ++rank) ring.fetch(rank, step);
      for (int rank = 0; rank < count; ++rank) ring.attend(rank, step, compute_of(rank));
    }
    for (int rank = 0; rank < count; ++rank) ring.finish(rank, compute_of(rank));
    // end [streams: the loop]
    ring.wait_for_all("stage " + stage, timeout_s);
    for (Compute& compute : computes) compute.read_back();
  }
};

/// All ranks of a stage from their chunks to their results. `make(r, device)` is what rank r
/// computes with: begin(stream), attend(step, chunk, stream) for every chunk and finish(stream),
/// and read_back() when all of it has ended. DeviceStuck when it has not within options.timeout_s;
/// what it uses is not freed then.
template <class Element, class Make>
void run_streamed_ring(const std::string& stage, std::span<RankProblem<Element>> ranks,
                       std::span<Traffic> moved, const SlotPlan& plan, Make make) {
  using Run = StreamedRun<Element, decltype(make(ranks.front(), 0))>;
  const auto run = std::make_shared<Run>(Run{{ranks, moved, plan}, {}});
  for (RankProblem<Element>& r : ranks) {
    run->computes.push_back(make(r, device_of(r.rank(), run->ring.devices())));
  }
  try {
    run->run(stage, ranks.front().options.timeout_s);
  } catch (const DeviceStuck&) {
    ringlab::cuda::keep_for_ever(run);
    throw;
  }
}

}  // namespace ringlab::stages
