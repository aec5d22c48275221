/* Measuring: segments of about half a millisecond between two events of a stream.

   A stream that is expected to be idle when a launch comes is charged by prediction, and one launch in some is measured
   alone; a busy stream is measured without gaps, each segment's end being the next one's start. A segment in which the
   stream ran dry is dropped: it would count idle time. All functions need the limiter's lock. */
#ifndef VGPU_CORE_SEGMENT_H
#define VGPU_CORE_SEGMENT_H

#include "core_limiter.h"

/* Before a launch: opens what is to be measured and says by how much the card's busy time is expected to grow. */
void segment_before(struct limiter *limiter, struct launch *launch, CUcontext context, int64_t now);

/* After it. */
void segment_after(struct limiter *limiter, struct launch *launch, bool launched);

/* By how much the card's busy time would grow. */
int64_t segment_growth(const struct limiter *limiter, const struct stream *stream, int64_t now, int64_t duration);

/* Ends what is being measured in a stream, in all of them. */
void segment_close(struct limiter *limiter, struct stream *stream, int64_t now);
void segment_close_all(struct limiter *limiter, int64_t now);

/* Takes in what is done. soon: also what is not expected to be done yet. */
void segment_reap(struct limiter *limiter, int64_t now, bool soon);

/* A stream or a context, and its events with it, is gone. */
void segment_forget_stream(struct limiter *limiter, struct stream *stream);
void segment_forget_context(struct limiter *limiter, CUcontext context);

#endif
