// The language of ringlab and the process that runs a plugin: plain structures over one socket,
// whole or not at all, the tensors beside them in two memory files.
#pragma once

#include <cstdint>

#include "reference/core/ringlab_plugin.h"

namespace ringlab::plugins {

/// The number of the socket in the process of the plugin.
inline constexpr int kSocket = 3;
inline constexpr std::int64_t kPage = 4096;
inline constexpr std::int64_t kAlignment = 64;  ///< of outputs and of dense inputs

/// Arrays of one call, each on pages of its own. Inputs first: they are read-only.
enum SegmentId {
  kQ,
  kK,
  kV,
  kDout,
  kStarts,
  kPositions,
  kBegins,
  kEnds,
  kBytes,
  kSlopes,
  kSinks,
  kKept,
  kInputs,  ///< number of inputs
  kOut = kInputs,
  kLse,
  kDq,
  kDk,
  kDv,
  kSegments
};
inline constexpr const char* kSegmentNames[kSegments] = {"q",
                                                         "k",
                                                         "v",
                                                         "dout",
                                                         "mask.starts",
                                                         "mask.positions",
                                                         "mask.visible_begin",
                                                         "mask.visible_end",
                                                         "mask.bytes",
                                                         "modifiers.alibi_slopes",
                                                         "modifiers.sinks",
                                                         "modifiers.kept",
                                                         "o",
                                                         "lse",
                                                         "dq",
                                                         "dk",
                                                         "dv"};

/// Pages of a sparse array, one after the other.
struct PageRun {
  std::int64_t page = 0;  ///< the first, counted from that of the array
  std::int64_t pages = 0;
  std::int64_t file_offset = 0;
};

struct Segment {
  std::int64_t file_offset = 0;  ///< of its first page, in the file of inputs or of outputs
  std::int64_t pages = 0;        ///< 0: this array is not there
  std::int64_t lead = 0;         ///< bytes from the first page to the array
  std::int64_t bytes = 0;        ///< of the array
  std::int64_t origin = 0;       ///< bytes from the array's start to element (0, 0, 0, 0)
  std::uint64_t address = 0;     ///< where to put the first page if that is free; 0: anywhere
  /// Number of PageRuns at file_offset, for a sparse input, which spans more than memory; no other
  /// page of it is there. 0: all of its pages are there, one after the other.
  std::int64_t runs = 0;
};

/// A call. The pointers in `call` are empty: the segments say where they point.
struct CallMessage {
  std::uint64_t sequence = 0;
  double deadline_s = 0;
  Segment segments[kSegments] = {};
  ringlab_call call = {};
};

/// Kinds of replies. no_memory: the plugin was not called, for want of memory for its tensors.
/// no_addresses: it was not called, for want of free addresses for a sparse tensor.
enum class ReplyKind : std::int32_t {
  ready,
  load_failed,
  done,
  threw,
  crashed,
  no_memory,
  no_addresses
};

/// Changes of the floating-point mode that a plugin left behind.
enum ModeChange : std::uint32_t { kRounding = 1, kFlushToZero = 2, kTraps = 4 };

struct Reply {
  ReplyKind kind = ReplyKind::done;
  /// 1 for a failure while a limit from outside left next to no memory, and for a library that the
  /// machine had no means to load: nobody's fault.
  std::int32_t ran_out = 0;
  std::uint64_t sequence = 0;
  std::int32_t code = 0;           ///< done: return code of the call
  std::int32_t signal = 0;         ///< crashed
  std::uint32_t mode_changes = 0;  ///< ready, done: ModeChange bits
  std::int32_t children = 0;       ///< done: processes that it left running
  char message[1024] = {};     ///< zero-terminated; crashed: what it touched; ready: missing walls
  char name[128] = {};         ///< ready
  char title[256] = {};        ///< ready
  ringlab_abilities can = {};  ///< ready
  ringlab_numerics numerics[RINGLAB_DTYPES] = {};  ///< ready
};

}  // namespace ringlab::plugins
