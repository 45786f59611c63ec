/* The keys that a query sees, from the kinds of a mask and their parameters. */
#include <string.h>

#include "tests/plugin_mistakes/row.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void keep(row_t* row, int64_t begin, int64_t end) {
  row->begin = most(row->begin, begin);
  row->end = least(row->end, end);
}

static void keep_window(row_t* row, const ringlab_mask* mask) {
  const int64_t p = row->position;
  if (mask->window_left != INT64_MAX) {
    const int64_t left = mask->window_left;
    const int off = IS(window_border_64) && left > 0 && left % 64 == 0;
    keep(row, p - left + off, INT64_MAX);
  }
  if (mask->window_right != INT64_MAX) keep(row, INT64_MIN, p + mask->window_right + 1);
}

static void keep_document(row_t* row, const ringlab_mask* mask) {
  if (row->position < 0) {
    keep(row, 0, 0);
    return;
  }
  for (int64_t d = 0; d < mask->documents; ++d) {
    if (row->position < mask->starts[d] || row->position >= mask->starts[d + 1]) continue;
    const int64_t start = mask->starts[d];
    const int off = IS(documents_border_16) && start > 0 && start % 16 == 0;
    keep(row, start - off, mask->starts[d + 1]);
    return;
  }
  keep(row, 0, 0);
}

/* The kinds of the call, but for what the variant overlooks. */
static uint32_t kinds_of(const ringlab_mask* mask) {
  const uint32_t kinds = mask->kinds & 15u;
  if (IS(prefix_over_causal) && (kinds & RINGLAB_MASK_PREFIX)) return kinds & ~1u;
  if (IS(second_of_three)) {
    int seen = 0;
    uint32_t second = 0;
    for (uint32_t bit = 1; bit < 16; bit *= 2) {
      if ((kinds & bit) != 0 && ++seen == 2) second = bit;
    }
    if (seen == 3) return kinds & ~second;
  }
  return kinds;
}

/* Where the mask says that the query stands. */
static int64_t position_of(const row_t* row) {
  const int64_t queries = row->call->q.extents[2], whole = queries / 32 * 32;
  /* The last tile begins so early that it is full, but its positions do not. */
  const int moved = IS(tail_of_queries) && queries > 32 && row->i >= queries - 32;
  return row->call->mask.positions[row->i] + (moved && whole < queries ? whole - queries + 32 : 0);
}

void find_visible_keys(row_t* row) {
  const ringlab_mask* mask = &row->call->mask;
  const uint32_t kinds = kinds_of(mask);
  row->position = position_of(row);
  row->begin = 0;
  row->end = row->keys;
  const int64_t p = row->position;
  if (kinds & RINGLAB_MASK_CAUSAL) keep(row, 0, p + 1);
  if (kinds & RINGLAB_MASK_WINDOW) keep_window(row, mask);
  if (kinds & RINGLAB_MASK_DOCUMENTS) keep_document(row, mask);
  if (kinds & RINGLAB_MASK_PREFIX) {
    const int64_t prefix = mask->prefix_tokens;
    keep(row, 0, IS(prefix_over_causal) && (mask->kinds & 1u) ? prefix : most(prefix, p + 1));
  }
  if (IS(causal_tile_skip) && (kinds & RINGLAB_MASK_CAUSAL)) {
    /* Tiles of 64 keys that begin after the first query of a tile of 64 queries are skipped. */
    const int64_t first = row->i / 64 * 64 + row->keys - row->call->q.extents[2];
    if (first >= 0) keep(row, 0, (first / 64 + 1) * 64);
  }
  if (row->end < row->begin) row->end = row->begin;
  row->bytes = NULL;
  if (mask->kinds & RINGLAB_MASK_BYTES) row->bytes = mask->bytes + row->i * row->keys;
}

int sees(const row_t* row, int64_t j) {
  if (row->bytes == NULL) return 1;
  if (IS(bits_by_eight) && row->keys > 16) {
    /* Eight keys whose ends are hidden are taken to be hidden. */
    const int64_t first = j / 8 * 8, last = least(first + 7, row->keys - 1);
    if (!row->bytes[first] && !row->bytes[last]) return 0;
  }
  return row->bytes[j];
}
