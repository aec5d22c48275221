/* What the core limit charges, and what it publishes in the region and in <region>.core. */
#ifndef VGPU_CORE_PUBLISH_H
#define VGPU_CORE_PUBLISH_H

#include "core_limiter.h"

/* Charges compute time to the bucket and to busy_time, ns; a negative one is given back. */
void core_charge(struct limiter *limiter, int64_t now, int64_t busy);

/* The place of a time in a histogram, see CORE_HIST_BUCKETS. */
int core_histogram_bucket(int64_t time);

/* Counts a launch that was held back. */
void core_count_wait(struct limiter *limiter, int64_t waited);

/* Writes the limits in force. */
void core_publish_limits(const struct region *region);

/* Writes the shares, at most ten times a second. */
void core_publish(struct limiter *limiter, int64_t now);

#endif
