#include "cli/line/build_info.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <span>

namespace ringlab::cli {
namespace {

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

using Bytes = std::span<const unsigned char>;

/// The build-id among the notes of a segment; empty where there is none.
Bytes id_among(const unsigned char* notes, std::size_t bytes) {
  ElfW(Nhdr) note;
  for (std::size_t at = 0; at + sizeof note <= bytes;) {
    std::memcpy(&note, notes + at, sizeof note);
    const unsigned char* const name = notes + at + sizeof note;
    const std::size_t text = sizeof note + padded(note.n_namesz);
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return {notes + at + text, note.n_descsz};
    at += text + padded(note.n_descsz);
  }
  return {};
}

/// For dl_iterate_phdr(), whose first object is the program itself; `id` is Bytes. Nothing may be
/// thrown through a function of C.
int note_id(dl_phdr_info* object, std::size_t, void* id) noexcept {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    auto& found = *static_cast<Bytes*>(id);
    if (found.empty()) found = id_among(notes, segment.p_memsz);
  }
  return 1;  // no further object
}

}  // namespace

// The other values come from cli/CMakeLists.txt.
BuildInfo build_info() {
  const std::string architectures = RINGLAB_CUDA_ARCHITECTURES;
  BuildInfo info{RINGLAB_VERSION,        RINGLAB_COMPILER, RINGLAB_BUILD_TYPE,   RINGLAB_FLAGS,
                 !architectures.empty(), architectures,    RINGLAB_CUDA_RUNTIME, {}};
  Bytes id;
  ::dl_iterate_phdr(note_id, &id);
  for (const unsigned char byte : id) info.id += fmt::format("{:02x}", byte);
  return info;
}

}  // namespace ringlab::cli
