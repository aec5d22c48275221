/* Time that at least one stream was busy: measured intervals of several streams overlap, and count once. */
#ifndef VGPU_CORE_UNION_H
#define VGPU_CORE_UNION_H

#include <stdint.h>

enum { UNION_INTERVALS = 32 };

struct busy_union {
  struct {
    int64_t start, end;
  } intervals[UNION_INTERVALS]; /* apart, in order of time; the oldest are forgotten */
  int count;
};

/* Adds an interval and returns by how much the union grew. */
int64_t union_add(struct busy_union *busy, int64_t start, int64_t end);

#endif
