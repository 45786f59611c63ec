/* Legal ways of one query that are no loop over tiles: parts that are merged. */
#include <math.h>
#include <string.h>

#include "tests/plugin_mistakes/row.h"

/* (o, lse) of keys [first, last), normalised. */
static void attend_part(const row_t* row, int64_t first, int64_t last, float* s, float* o,
                        float* lse) {
  float top = -INFINITY, sum = 0, lost = 0;
  memset(o, 0, (size_t)row->v_dim * sizeof(float));
  *lse = -INFINITY;
  for (int64_t j = first; j < last; ++j) {
    s[j] = sees(row, j) ? score(row, j, NULL) : -INFINITY;
    if (!(s[j] <= top)) top = s[j];
  }
  if (top == -INFINITY) return;
  for (int64_t j = first; j < last; ++j) {
    if (!sees(row, j)) continue;
    const float weight = weight_of(s[j] - top);
    if (IS(compensated)) {
      const float term = weight - lost, next = sum + term;
      lost = next - sum - term;
      sum = next;
    } else {
      sum += weight;
    }
    const float part = weight * share_kept(row, j);
    if (part == 0 && row->kept != NULL) continue;
    for (int64_t c = 0; c < row->v_dim; ++c) o[c] += part * row->v[j * row->v_dim + c];
  }
  for (int64_t c = 0; c < row->v_dim; ++c) o[c] /= sum;
  *lse = top + logf(sum);
}

static void merge(int64_t v_dim, float* o, float* lse, const float* part, float part_lse) {
  if (part_lse == -INFINITY) return;
  const float top = *lse > part_lse ? *lse : part_lse;
  const float both = top + logf(expf(*lse - top) + expf(part_lse - top));
  const float kept = expf(*lse - both), added = expf(part_lse - both);
  for (int64_t c = 0; c < v_dim; ++c) o[c] = kept * o[c] + added * part[c];
  *lse = both;
}

/* The halves of the keys, each in the same way, down to 8 of them. */
static void attend_tree(const row_t* row, int64_t first, int64_t last, float* s, float* o,
                        float* lse) {
  if (last - first <= 8) {
    attend_part(row, first, last, s, o, lse);
    return;
  }
  const int64_t middle = first + (last - first) / 2;
  float right[row->v_dim + 1], right_lse;
  attend_tree(row, first, middle, s, o, lse);
  attend_tree(row, middle, last, s, right, &right_lse);
  merge(row->v_dim, o, lse, right, right_lse);
}

static void attend_split(const row_t* row, float* s, float* o, float* lse) {
  float part[row->v_dim + 1], part_lse;
  *lse = -INFINITY;
  for (int split = 0; split < 4; ++split) {
    const int64_t seen = row->end - row->begin;
    attend_part(row, row->begin + seen * split / 4, row->begin + seen * (split + 1) / 4, s, part,
                &part_lse);
    merge(row->v_dim, o, lse, part, part_lse);
  }
}

/* A sink is one more part, without a value. */
static void add_sink(const row_t* row, float* o, float* lse) {
  if (!row->has_sink) return;
  float nothing[row->v_dim + 1];
  memset(nothing, 0, sizeof(nothing));
  merge(row->v_dim, o, lse, nothing, row->sink);
}

/* The maximum and the row sum first, then weights that sum up to 1. */
static void attend_divided(const row_t* row, float* s, float* o, float* lse) {
  float top = row->has_sink ? row->sink : -INFINITY, sum = row->has_sink ? 1 : 0;
  *lse = -INFINITY;
  for (int64_t j = row->begin; j < row->end; ++j) {
    s[j] = sees(row, j) ? score(row, j, NULL) : -INFINITY;
    if (s[j] <= top) continue;
    if (row->has_sink) sum = weight_of(row->sink - s[j]);
    top = s[j];
  }
  if (top == -INFINITY) return;
  for (int64_t j = row->begin; j < row->end; ++j) {
    if (sees(row, j)) sum += weight_of(s[j] - top);
  }
  for (int64_t j = row->begin; j < row->end; ++j) {
    if (!sees(row, j)) continue;
    const float part = weight_of(s[j] - top) / sum * share_kept(row, j);
    if (part == 0 && row->kept != NULL) continue;
    for (int64_t c = 0; c < row->v_dim; ++c) o[c] += part * row->v[j * row->v_dim + c];
  }
  *lse = top + logf(sum);
}

int attend_unusually(const row_t* row, float* s, float* o, float* lse) {
  if (IS(divided_early)) {
    attend_divided(row, s, o, lse);
    return 1;
  }
  if (IS(split_keys)) attend_split(row, s, o, lse);
  if (IS(tree)) attend_tree(row, row->begin, row->end, s, o, lse);
  if (IS(compensated)) attend_part(row, row->begin, row->end, s, o, lse);
  if (!IS(split_keys) && !IS(tree) && !IS(compensated)) return 0;
  add_sink(row, o, lse);
  return 1;
}
