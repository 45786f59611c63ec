#include "tests/optimized/ring/fake_streams.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "optimized/cuda/device.h"
#include "tests/optimized/ring/fake_devices.h"

namespace ringlab::ring {
namespace {

using cuda::Event;
using cuda::Graph;
using cuda::Stream;

void demand(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

/// Pieces of work that others come after.
using Pieces = std::set<std::size_t>;

/// A piece of work, and what must have ended before.
struct Piece {
  std::function<void()> start;
  std::function<bool()> is_over;  // empty: it is when it was started
  Pieces after;
  std::int64_t duration_ns = 0;
  std::vector<std::size_t> before = {};  // which pieces
};

class FakeGraph {
 public:
  std::size_t add(Piece piece) {
    for (const std::size_t earlier : piece.after) pieces_[earlier].before.push_back(pieces_.size());
    pieces_.push_back(std::move(piece));
    return pieces_.size() - 1;
  }
  bool is_empty() const { return pieces_.empty(); }
  bool all_lead_to(const Pieces& ends) const {
    Pieces found = ends;
    std::vector<std::size_t> left(ends.begin(), ends.end());
    while (!left.empty()) {
      const std::size_t piece = left.back();
      left.pop_back();
      for (const std::size_t before : pieces_[piece].after) {
        if (found.insert(before).second) left.push_back(before);
      }
    }
    return found.size() == pieces_.size();
  }

  void launch(const CUstream_st* stream, std::uint64_t seed) {
    const std::scoped_lock lock(mutex_);
    demand(left_ == 0, "a graph that is launched while it runs");
    stream_ = stream;
    thread_ = std::this_thread::get_id();
    order_.seed(seed);
    left_ = pieces_.size();
    missing_.clear();
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      missing_.push_back(pieces_[piece].after.size());
      if (missing_.back() == 0) ready_.push_back(piece);
    }
  }
  /// As far as it can go; true at its end.
  bool run() {
    const std::scoped_lock lock(mutex_);
    for (;;) {
      while (!ready_.empty()) start_one();
      const std::vector<std::size_t> ended = take_ended();
      if (ended.empty()) return left_ == 0;
      for (const std::size_t piece : ended) end(piece);
    }
  }
  /// To its end, in the order in which pieces end.
  void run_by_a_clock() {
    constexpr std::int64_t kIssue_ns = 5000;
    std::vector<std::int64_t> ends;
    std::multimap<std::int64_t, const Piece*> in_order;
    for (const Piece& piece : pieces_) {
      std::int64_t begin = static_cast<std::int64_t>(ends.size()) * kIssue_ns;
      for (const std::size_t earlier : piece.after) begin = std::max(begin, ends[earlier]);
      ends.push_back(begin + piece.duration_ns + 1);  // after all that it comes after
      in_order.emplace(ends.back(), &piece);
    }
    for (const auto& [end, piece] : in_order) piece->start();
  }
  void stop() {
    const std::scoped_lock lock(mutex_);
    left_ = 0;
    ready_.clear();
    started_.clear();
  }
  bool runs() {
    const std::scoped_lock lock(mutex_);
    return left_ > 0;
  }
  bool is_on(const CUstream_st* stream) const { return stream_ == stream; }
  bool is_of_this_thread() const { return thread_ == std::this_thread::get_id(); }

 private:
  void start_one() {
    std::swap(ready_[order_() % ready_.size()], ready_.back());
    const std::size_t piece = ready_.back();
    ready_.pop_back();
    pieces_[piece].start();
    if (pieces_[piece].is_over) {
      started_.push_back(piece);
    } else {
      end(piece);
    }
  }
  std::vector<std::size_t> take_ended() {
    std::vector<std::size_t> ended, others;
    for (const std::size_t piece : started_) {
      (pieces_[piece].is_over() ? ended : others).push_back(piece);
    }
    started_ = std::move(others);
    return ended;
  }
  void end(std::size_t piece) {
    --left_;
    for (const std::size_t next : pieces_[piece].before) {
      if (--missing_[next] == 0) ready_.push_back(next);
    }
  }

  std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::size_t left_ = 0;  // that have not ended
  std::vector<std::size_t> ready_, started_;
  std::vector<std::size_t> missing_;  // by piece: that it comes after, and that have not ended
  std::atomic<const CUstream_st*> stream_ = nullptr;
  std::atomic<std::thread::id> thread_;
  std::mt19937_64 order_;
};

/// What this thread captures: after which pieces the next one of a stream comes, or what waits for
/// an event.
struct Capture {
  const CUstream_st* origin = nullptr;
  std::shared_ptr<FakeGraph> graph = std::make_shared<FakeGraph>();
  std::map<const CUstream_st*, Pieces> streams;
  std::map<Event, Pieces> events;
};
thread_local std::unique_ptr<Capture> capture;
/// What this thread defers, and the seed of its order.
thread_local std::unique_ptr<Capture> deferred;
thread_local std::uint64_t deferred_seed = 0;
thread_local bool deferred_by_a_clock = false;

/// Where this thread saw to it that kernels are loaded.
thread_local std::set<int> devices_with_kernels;

/// What work becomes part of: null when it is done at once.
Capture* collector() { return capture ? capture.get() : deferred.get(); }
bool is_collected(const CUstream_st* stream) {
  const Capture* const into = collector();
  return into && (into == deferred.get() || into->streams.contains(stream));
}

// Of all graphs: those that are held, and those that run though nobody holds them.
std::mutex graphs_mutex;
std::map<Graph, std::shared_ptr<FakeGraph>> held_graphs;
std::vector<std::shared_ptr<FakeGraph>> dropped;
std::uintptr_t next_graph = 16;

std::vector<std::shared_ptr<FakeGraph>> all_held() {
  const std::scoped_lock lock(graphs_mutex);
  std::vector<std::shared_ptr<FakeGraph>> graphs;
  for (const auto& [handle, graph] : held_graphs) graphs.push_back(graph);
  return graphs;
}

bool add_to_capture(const CUstream_st* stream, Piece piece) {
  Capture* const into = collector();
  if (!into) return false;
  demand(is_collected(stream), "work on a stream that was left out of the capture");
  Pieces& last = into->streams[stream];
  piece.after = last;
  last = {into->graph->add(std::move(piece))};
  return true;
}

}  // namespace

void put_on(Stream stream, std::function<void()> work, std::int64_t duration_ns) {
  if (!collector()) return work();
  add_to_capture(
      stream, {.start = std::move(work), .is_over = {}, .after = {}, .duration_ns = duration_ns});
}

bool capture_on(const CUstream_st* stream, std::function<void()> start,
                std::function<bool()> is_over) {
  return add_to_capture(stream,
                        {.start = std::move(start), .is_over = std::move(is_over), .after = {}});
}

void defer_work(std::uint64_t seed) {
  must_not_capture("work is deferred");
  deferred = std::make_unique<Capture>();
  deferred_seed = seed;
  deferred_by_a_clock = false;
}
void defer_work_by_a_clock() {
  defer_work(0);
  deferred_by_a_clock = true;
}
void do_work_at_once() noexcept { deferred = nullptr; }

EventMistakes& event_mistakes() {
  thread_local EventMistakes mistakes;
  return mistakes;
}

void run_dropped_graphs() {
  std::vector<std::shared_ptr<FakeGraph>> graphs;
  {
    const std::scoped_lock lock(graphs_mutex);
    graphs = dropped;
  }
  for (const auto& graph : graphs) graph->run();
  const std::scoped_lock lock(graphs_mutex);
  std::erase_if(dropped, [](const auto& graph) { return !graph->runs(); });
}

/// What waits until its end is asked for.
void end_deferred() {
  if (!deferred) return;
  const std::unique_ptr<Capture> work = std::exchange(deferred, nullptr);
  if (deferred_by_a_clock) {
    work->graph->run_by_a_clock();
    return defer_work_by_a_clock();
  }
  work->graph->launch(nullptr, deferred_seed);
  demand(work->graph->run(), "deferred work that does not end");
  defer_work(deferred_seed + 1);
}

bool graphs_have_ended(const CUstream_st* stream) {
  must_not_capture("a stream's end is asked for");
  end_deferred();
  return std::ranges::all_of(
      all_held(), [&](const auto& graph) { return !graph->is_on(stream) || graph->run(); });
}

void end_graphs_of_thread() {
  must_not_capture("a device is waited for");
  end_deferred();
  for (const auto& graph : all_held()) {
    if (graph->is_of_this_thread()) demand(graph->run(), "a graph that does not end");
  }
}

int stop_graphs_of_thread() noexcept {
  int stopped = 0;
  std::vector<std::shared_ptr<FakeGraph>> graphs = all_held();
  const std::scoped_lock lock(graphs_mutex);
  graphs.insert(graphs.end(), dropped.begin(), dropped.end());
  for (const auto& graph : graphs) {
    if (!graph->is_of_this_thread() || !graph->runs()) continue;
    graph->stop();
    ++stopped;
  }
  return stopped;
}

void must_not_capture(const char* what) {
  demand(!capture, std::string(what) + " in the midst of a capture");
}
void must_not_run(const char* what) {
  demand(!deferred || deferred->graph->is_empty(),
         std::string(what) + " before work that was put on a stream");
  for (const auto& graph : all_held()) {
    demand(!graph->is_of_this_thread() || !graph->runs(),
           std::string(what) + " while a graph runs");
  }
}

}  // namespace ringlab::ring

namespace ringlab::cuda {

using namespace ring;

void record_event(int, Event event, Stream stream, const std::string& where) {
  demand(event && stream, "no event or stream");
  note_recorded(event);
  Capture* const into = collector();
  if (!into) return;
  const auto& records_on = event_mistakes().records_on;
  const Stream on = records_on ? records_on(where, stream) : stream;
  demand(is_collected(on), "an event of a stream that was left out of the capture");
  into->events[event] = into->streams[on];
}

void wait_for_event(int, Event event, Stream stream, const std::string& where) {
  demand(event && stream, "no event or stream");
  Capture* const into = collector();
  if (!into) return;
  const auto& leaves_out_wait = event_mistakes().leaves_out_wait;
  if (leaves_out_wait && leaves_out_wait(where)) return;
  const auto recorded = into->events.find(event);
  if (recorded == into->events.end() && into == deferred.get() && deferred_by_a_clock) return;
  // On a device it is no wait at all, and nobody says so.
  demand(recorded != into->events.end(), "a wait for an event that was not captured");
  into->streams[stream].insert(recorded->second.begin(), recorded->second.end());
}

void load_kernels(int device) {
  must_not_capture("kernels are loaded");
  devices_with_kernels.insert(device);
}

void begin_capture(int device, Stream stream) {
  must_not_capture("a capture begins");
  demand(devices_with_kernels.contains(device), "a capture begins before kernels are loaded");
  capture = std::make_unique<Capture>();
  capture->origin = stream;
  capture->streams[stream] = {};
}

OwnedGraph end_capture(int device, Stream stream) {
  demand(capture && capture->origin == stream, "a capture ends that did not begin here");
  const auto ended = std::exchange(capture, nullptr);
  demand(ended->graph->all_lead_to(ended->streams[stream]), "work that was not joined at the end");
  const std::scoped_lock lock(graphs_mutex);
  const auto handle = reinterpret_cast<Graph>(next_graph += 16);
  held_graphs[handle] = ended->graph;
  return {device, handle};
}

void drop_capture(int, Stream) noexcept { capture = nullptr; }

void launch(const OwnedGraph& graph, Stream stream) {
  must_not_capture("a graph is launched");
  const std::scoped_lock lock(graphs_mutex);
  const auto at = held_graphs.find(graph.get());
  demand(at != held_graphs.end(), "a graph that was destroyed before it was launched");
  at->second->launch(stream, static_cast<std::uint64_t>(++fake_devices().graphs));
}

void GraphTraits::destroy(int, Graph handle) noexcept {
  const std::scoped_lock lock(graphs_mutex);
  const auto at = held_graphs.find(handle);
  if (at->second->runs()) dropped.push_back(at->second);
  held_graphs.erase(at);
}

}  // namespace ringlab::cuda
