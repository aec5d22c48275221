/* Marks: timed events in the program's streams, never in a capturing one. */
#ifndef VGPU_CORE_MARK_H
#define VGPU_CORE_MARK_H

#include "core_limiter.h"

/* Whether this thread can put marks into the stream: not into another thread's own default stream. */
bool mark_possible(const struct stream *stream);

/* Puts a mark into a stream; NULL if it is capturing, another thread's or another context's, or the driver refuses. */
struct mark *mark_record(struct limiter *limiter, struct stream *stream);

void mark_release(struct mark *mark);

enum mark_state { MARK_PENDING, MARK_DONE, MARK_BROKEN };
enum mark_state mark_state(const struct mark *mark);

/* Time between two marks that are done, ns; a negative value if the driver does not tell. */
int64_t mark_between(const struct mark *from, const struct mark *to);

/* Whether the stream has nothing left to do, and whether it has; neither is known where it cannot be asked. */
bool mark_stream_idle(const struct stream *stream);
bool mark_stream_busy(const struct stream *stream);

/* While one thread captures, calls that look at events would break its capture: these brackets allow them. */
int mark_allow(void);
void mark_restore(int mode);

#endif
