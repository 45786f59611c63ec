/* One query of a call, and the parts that compute it. */
#ifndef RINGLAB_TESTS_PLUGIN_MISTAKES_ROW_H_
#define RINGLAB_TESTS_PLUGIN_MISTAKES_ROW_H_

#include <stdint.h>

#include "reference/core/ringlab_plugin.h"
#include "tests/plugin_mistakes/variants.h"

/* The inputs in f32, dense. */
typedef struct {
  float *q, *k, *v, *dout;
  float* rounded_q; /* scale · q in bf16, where a variant needs it */
} packed_t;

typedef struct {
  const ringlab_call* call;
  int64_t b, h, i, kv;
  const float *q, *k, *v; /* (d), (keys, d), (keys, v_dim) of its K/V head */
  const float* rounded_q; /* (d): scale · q in a narrower type */
  int64_t d, v_dim, keys;
  int64_t position, begin, end; /* the keys it sees, but for `bytes` */
  const uint8_t* bytes;         /* (keys) or NULL */
  const uint8_t* kept;          /* (keys) or NULL */
  float scale, softcap, slope, sink, factor;
  int has_sink;
} row_t;

/* inputs.c: a tensor as dense f32, to be freed; and back. */
float* packed(const ringlab_call* call, const ringlab_tensor* tensor);
float* packed_k(const ringlab_call* call);
void store(const ringlab_tensor* tensor, int64_t index, float value);
float rounded_to(float value, int significant);
float as_f16(float weight);

/* masks.c: fills position, begin, end and bytes. */
void find_visible_keys(row_t* row);
int sees(const row_t* row, int64_t j);

/* scores.c: fills what the modifiers say; a score, and how much of it is left as a derivative. */
void take_modifiers(row_t* row);
void keep_slopes(const ringlab_call* call);
float score(const row_t* row, int64_t j, float* slope_of_cap);
float share_kept(const row_t* row, int64_t j);
float weight_of(float exponent);
float product(float x, float y);

/* forward.c and unusual.c: o (v_dim) and lse of one query; memory holds keys + v_dim floats. */
row_t row_of(const ringlab_call* call, const packed_t* in, int64_t row);
void attend_row(const row_t* row, float* memory, float* o, float* lse);
int attend_unusually(const row_t* row, float* memory, float* o, float* lse);

/* backward.c: o and lse are those of all rows, in f32. */
int differentiate(const ringlab_call* call, const packed_t* in, const float* o, const float* lse);

#endif /* RINGLAB_TESTS_PLUGIN_MISTAKES_ROW_H_ */
