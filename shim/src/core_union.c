#include "core_union.h"

#include <string.h>

int64_t union_add(struct busy_union *busy, int64_t start, int64_t end) {
  if (end <= start) return 0;
  int64_t grown = end - start;
  int first = busy->count;
  while (first > 0 && busy->intervals[first - 1].end >= start) first--;
  int last = first; /* intervals first to last - 1 touch the new one */
  for (; last < busy->count && busy->intervals[last].start <= end; last++) {
    int64_t from = busy->intervals[last].start, to = busy->intervals[last].end;
    int64_t overlap_start = from > start ? from : start, overlap_end = to < end ? to : end;
    grown -= overlap_end - overlap_start;
    if (last == first && from < start) start = from;
    if (to > end) end = to;
  }
  int removed = last - first;
  if (!removed && busy->count == UNION_INTERVALS) {
    if (!first) return grown; /* older than all that is remembered */
    memmove(&busy->intervals[0], &busy->intervals[1], sizeof busy->intervals[0] * (UNION_INTERVALS - 1));
    busy->count--;
    first--;
    last--;
  }
  memmove(&busy->intervals[first + 1], &busy->intervals[last], sizeof busy->intervals[0] * (size_t)(busy->count - last));
  busy->intervals[first].start = start;
  busy->intervals[first].end = end;
  busy->count += 1 - removed;
  return grown;
}
