/* o and lse of one query: an online softmax over tiles of keys. */
#include <math.h>
#include <string.h>

#include "tests/plugin_mistakes/row.h"

row_t row_of(const ringlab_call* call, const packed_t* in, int64_t index) {
  const int64_t heads = call->q.extents[1], queries = call->q.extents[2];
  const int64_t kv_heads = call->k.extents[1], keys = call->k.extents[2];
  row_t row = {.call = call, .i = index % queries, .h = index / queries % heads};
  row.b = index / queries / heads;
  row.d = call->q.extents[3];
  row.v_dim = call->v.extents[3];
  row.keys = keys;
  int64_t group = heads / kv_heads;
  if (IS(group_of_eight) && group > 8) group = 8;
  const int64_t b = IS(batch_of_four) ? row.b % 4 : row.b;
  row.kv = b * kv_heads + row.h / group % kv_heads;
  row.q = in->q + index * row.d;
  row.rounded_q = in->rounded_q + index * row.d;
  row.k = in->k + row.kv * keys * row.d;
  row.v = in->v + row.kv * keys * row.v_dim;
  row.scale = (float)call->scale;
  if (IS(zero_scale) && call->scale == 0) row.scale = 1 / sqrtf((float)row.d);
  find_visible_keys(&row);
  take_modifiers(&row);
  return row;
}

typedef struct {
  float max, sum;
} state_t;

static int64_t tile_of(const row_t* row) {
  if (IS(odd_tiles)) return 37;
  if (IS(two_passes)) return row->keys + 1;
  return 32;
}

/* Scores of [first, last), hidden ones -inf, and their maximum. */
static float scores_of(const row_t* row, int64_t first, int64_t last, float* s) {
  float top = -INFINITY;
  for (int64_t j = first; j < last; ++j) {
    const int hidden = !sees(row, j) && !IS(masked_nan);
    s[j] = hidden ? -INFINITY : score(row, j, NULL);
    if (IS(masked_nan) && !sees(row, j)) s[j] += -INFINITY;
    if (!(s[j] <= top)) top = s[j];
  }
  return top;
}

static float maximum_after(const row_t* row, const state_t* state, float tile_max, int64_t first) {
  if (IS(first_maximum) && first > row->begin && state->max > -INFINITY) return state->max;
  /* Rescaled only when weights would grow beyond e^8. */
  if (IS(lazy_rescaling) && tile_max - state->max <= 8) return state->max;
  return tile_max <= state->max ? state->max : tile_max;
}

static void add_tile(const row_t* row, int64_t first, int64_t last, float* s, float* o,
                     state_t* state) {
  const float tile_max = scores_of(row, first, last, s);
  if (tile_max == -INFINITY) return;
  const float max = maximum_after(row, state, tile_max, first);
  const float kept = weight_of(state->max - max);
  state->sum *= kept;
  for (int64_t c = 0; c < row->v_dim; ++c) o[c] *= kept;
  if (IS(sinks_per_tile) && row->has_sink && first > row->begin) {
    state->sum += weight_of(row->sink - max);
  }
  for (int64_t j = first; j < last; ++j) {
    if (!sees(row, j) && !IS(masked_nan)) continue;
    float weight = weight_of(s[j] - max);
    if (IS(bf16_weights)) weight = rounded_to(weight, 8);
    if (IS(f16_weights)) weight = as_f16(weight);
    state->sum += weight;
    const float part = weight * share_kept(row, j);
    if (part == 0 && row->kept != NULL) continue;
    const float* v = row->v + j * row->v_dim;
    for (int64_t c = 0; c < row->v_dim; ++c) o[c] += product(part, v[c]);
  }
  state->max = max;
  if (IS(partial_bf16) || IS(partial_bf16_declared)) {
    for (int64_t c = 0; c < row->v_dim; ++c) o[c] = rounded_to(o[c], 8);
  }
}

/* As kernels do that take the maximum before they scale: the largest of q·k, times the scale. */
static void attend_unscaled(const row_t* row, float* s, float* o, float* lse) {
  float top = -INFINITY, sum = 0;
  for (int64_t j = row->begin; j < row->end; ++j) {
    s[j] = sees(row, j) ? score(row, j, NULL) / row->scale : -INFINITY;
    if (!(s[j] <= top)) top = s[j];
  }
  for (int64_t j = row->begin; j < row->end; ++j) {
    if (!sees(row, j)) continue;
    const float weight = expf(row->scale * s[j] - row->scale * top);
    sum += weight;
    for (int64_t c = 0; c < row->v_dim; ++c) {
      o[c] += weight * share_kept(row, j) * row->v[j * row->v_dim + c];
    }
  }
  if (row->has_sink) sum += expf(row->sink - row->scale * top);
  for (int64_t c = 0; c < row->v_dim; ++c) o[c] /= sum;
  *lse = row->scale * top + logf(sum);
}

static void finish(const row_t* row, const state_t* state, float* o, float* lse) {
  if (state->max == -INFINITY) {
    *lse = IS(lse_of_empty_rows) ? -1e30f : -INFINITY;
    return;
  }
  for (int64_t c = 0; c < row->v_dim; ++c) o[c] /= state->sum;
  *lse = state->max + logf(state->sum);
  if (IS(lse_base_2) && row->end - row->begin > 256) *lse *= 1.44269504f;
}

static int64_t last_key(const row_t* row) {
  const int64_t seen = row->end - row->begin;
  if (IS(tail_of_keys) && seen > 128) return row->begin + seen / 128 * 128;
  if (IS(last_whole_tile) && row->call->q.extents[2] == 1 && seen > 64 && seen % 64 == 0) {
    return row->end - 64;
  }
  if (IS(last_row_of_256) && row->i % 256 == 255) return row->end - (seen > 1);
  return row->end;
}

void attend_row(const row_t* row, float* s, float* o, float* lse) {
  memset(o, 0, (size_t)row->v_dim * sizeof(float));
  state_t state = {-INFINITY, 0};
  if (row->has_sink) state = (state_t){row->sink, 1};
  if (IS(no_keys) && row->keys == 0) {
    *lse = 0;
    return;
  }
  if (attend_unusually(row, s, o, lse)) return;
  if (IS(scale_after_maximum) && row->begin < row->end && row->scale < 0) {
    attend_unscaled(row, s, o, lse);
    return;
  }
  const int64_t end = last_key(row), tile = tile_of(row);
  if (IS(reversed)) {
    for (int64_t last = end; last > row->begin; last -= tile) {
      add_tile(row, last - tile > row->begin ? last - tile : row->begin, last, s, o, &state);
    }
  } else {
    for (int64_t first = row->begin; first < end; first += tile) {
      add_tile(row, first, first + tile < end ? first + tile : end, s, o, &state);
    }
  }
  finish(row, &state, o, lse);
  if (IS(one_visible_key) && row->end - row->begin == 1) *lse = row->scale < 1 ? *lse : 0;
  if (IS(row_in_thousands) && (row->h * 131 + row->i) % 4099 == 4098) o[0] *= 1.001f;
  for (int64_t c = row->d; IS(narrow_values) && c < row->v_dim; ++c) o[c] = 0;
}
