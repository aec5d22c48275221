#include "core_segment.h"

#include "core_publish.h"
#include "core_mark.h"
#include "core_queue.h"
#include "core_time.h"

#include <stdlib.h>

/* Measured on an H200, driver 580. */
static const int64_t mark_cost = 2100;          /* a mark between two busy launches takes the card so long */
static const int64_t overlap_gain = 800;         /* a dependent launch begins so much earlier, if there is no mark before it */
static const int64_t queued_alone_cost = 1500;  /* two marks around one launch in a busy stream, against its dense period */
static const int64_t idle_alone_cost = 500;     /* in an idle stream, beside the host's gap */
static const int64_t start_latency = 2600;      /* a launch's return to the kernel's start */
static const int64_t nearly_idle = 5 * MICROSECOND, overdue = 10 * MICROSECOND; /* overdue: more than marks and launches vary */
static const int64_t segment_length = 500 * MICROSECOND, overlapping_length = 2 * MILLISECOND;
static const int64_t long_launch = 200 * MICROSECOND; /* measured alone each time it finds its stream idle */
static const int64_t longest_shared = 10 * MILLISECOND;
static const int64_t reap_interval = 250 * MICROSECOND;
static const int64_t rebase_interval = SECOND;
static const int64_t active_time = 100 * MILLISECOND, active_most = 60ll * SECOND;
static const int64_t burst_beginning = MILLISECOND;
enum { PROBE_NEW = 16, PROBE_ISOLATED = 64, PROBE_DENSE = 4096, NEW = 16, MOST_OUTLIERS = 8, ACTIVE_LAUNCHES = 16 }; /* one launch in so many is measured alone */

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static void release(struct limiter *limiter, struct segment *segment) {
  mark_release(segment->start);
  mark_release(segment->end);
  segment->next = limiter->free_segments;
  limiter->free_segments = segment;
}

static struct segment *begin(struct limiter *limiter, struct mark *start) {
  struct segment *segment = limiter->free_segments;
  if (!segment || !start) {
    mark_release(start);
    return NULL;
  }
  limiter->free_segments = segment->next;
  *segment = (struct segment){.start = start};
  return segment;
}

static void drop_open(struct limiter *limiter, struct stream *stream) {
  if (!stream->open) return;
  release(limiter, stream->open);
  stream->open = NULL;
}

static void queue(struct limiter *limiter, struct stream *stream, struct segment *segment, struct mark *end) {
  segment->end = end;
  segment->due = stream->finish;
  segment->next = NULL;
  if (stream->last)
    stream->last->next = segment;
  else
    stream->first = segment;
  stream->last = segment;
  limiter->pending++;
}

/* The stream may have run dry unseen: then the segment holds idle time and what was predicted is too long. */
static bool ran_dry(struct stream *stream, int64_t now) {
  if (stream->finish > now && !mark_stream_idle(stream)) return false;
  if (stream->finish > now) stream->finish = now;
  return true;
}

static void close_open(struct limiter *limiter, struct stream *stream, int64_t now, bool chain) {
  struct segment *segment = stream->open;
  if (!segment) return;
  if (!segment->launches || stream->launching > (chain ? 1 : 0) || ran_dry(stream, now)) {
    if (segment->launches) stream->isolated = PROBE_ISOLATED * 2; /* measure the next one alone */
    drop_open(limiter, stream);
    return;
  }
  struct mark *end = mark_record(limiter, stream);
  stream->open = NULL;
  if (!end) {
    release(limiter, segment);
    return;
  }
  queue(limiter, stream, segment, end);
  if (!chain) return;
  end->users++;
  stream->open = begin(limiter, end);
}

void segment_close(struct limiter *limiter, struct stream *stream, int64_t now) { close_open(limiter, stream, now, false); }

void segment_close_all(struct limiter *limiter, int64_t now) {
  for (int i = 0; i < limiter->stream_high; i++)
    if (limiter->streams[i].open && mark_possible(&limiter->streams[i])) close_open(limiter, &limiter->streams[i], now, false);
}

static int64_t start_of(const struct limiter *limiter, const struct stream *stream, int64_t now) {
  return later(later(stream->finish, now + start_latency), limiter->ready);
}

int64_t segment_growth(const struct limiter *limiter, const struct stream *stream, int64_t now, int64_t duration) {
  int64_t start = start_of(limiter, stream, now), finish = start + duration;
  int64_t growth = finish - later(limiter->horizon, start);
  return growth > 0 ? growth : 0;
}

static bool is_full(const struct stream *stream) {
  const struct segment *open = stream->open;
  return open && open->predicted >= (stream->overlaps ? overlapping_length : segment_length);
}

static void join(struct segment *segment, const struct launch *launch) {
  int i = 0, kinds = segment->kinds < SEGMENT_KINDS ? segment->kinds : SEGMENT_KINDS;
  while (i < kinds && segment->kind[i].prediction != launch->prediction) i++;
  if (i < SEGMENT_KINDS) {
    if (i == kinds) {
      segment->kind[i].prediction = launch->prediction;
      segment->kind[i].launches = 0;
      segment->kinds++;
    }
    segment->kind[i].launches++;
  } else {
    segment->kinds = SEGMENT_KINDS + 1;
  }
  if (!segment->launches) segment->overlaps = launch->overlaps;
  segment->launches++;
  segment->charged += launch->charged;
  segment->predicted += launch->duration;
}

static bool chance(struct stream *stream, unsigned *count, unsigned one_in) {
  stream->random = stream->random * 6364136223846793005ull + 1442695040888963407ull;
  if (++*count < one_in / 2 || (*count < one_in * 2 && (stream->random >> 33) % one_in)) return false;
  *count = 0;
  return true;
}

/* One that should be idle but is not is about to be: the mark comes at nobody knows what time before the launch. */
static struct mark *mark_start(struct limiter *limiter, struct launch *launch, struct stream *stream, bool expect_idle) {
  launch->idle = expect_idle && mark_stream_idle(stream);
  if (expect_idle && !launch->idle && launch->duration) launch->at_most = true;
  struct mark *start = mark_record(limiter, stream);
  launch->start_returned = core_now();
  return start;
}

static void measure_alone(struct limiter *limiter, struct launch *launch, struct stream *stream, bool expect_idle) {
  launch->start = mark_start(limiter, launch, stream, expect_idle);
  launch->alone = launch->start != NULL;
}

void segment_before(struct limiter *limiter, struct launch *launch, CUcontext context, int64_t now) {
  struct stream *stream = stream_find(limiter, context, launch->stream, launch->per_thread);
  launch->duration = predict_duration(launch->prediction);
  launch->on = stream;
  if (!stream) {
    launch->charged = launch->duration;
    return;
  }
  /* What runs in the legacy default stream waits for all blocking streams. */
  if (stream->handle == (CUstream)1 && limiter->active_streams > 1) stream->finish = later(stream->finish, limiter->horizon);
  bool idle = stream->finish <= now + nearly_idle, known = launch->duration != 0;
  /* What another thread is just launching would come before or after a mark, nobody knows. */
  bool mark = stream->launching <= 0;
  launch->number = ++stream->launches;
  stream->used_at = limiter->launches++;
  if (launch->overlaps) stream->overlaps = true;
  if (idle) {
    drop_open(limiter, stream);
    /* Another process may have had the card: the time would hold the change of context. */
    launch->at_most = known && ((launch->duration < longest_shared && (limiter->after_others || now < limiter->ready)) || turn_missed(limiter, now));
    bool new = launch->prediction->measured < NEW, beginning = now - limiter->resumed < burst_beginning, several = limiter->active_streams > 1 && beginning;
    bool probe = !known || launch->duration >= long_launch || (new && beginning) || chance(stream, &stream->isolated, new || beginning ? PROBE_NEW : PROBE_ISOLATED);
    if (probe && mark) {
      measure_alone(limiter, launch, stream, true);
    } else if (mark && several) {
      /* Its time must be known: what other streams are measured to do meanwhile would be charged once more. */
      stream->open = begin(limiter, mark_start(limiter, launch, stream, true));
      if (stream->open) {
        stream->open->idle = launch->idle;
        stream->open->at_most = launch->at_most;
      }
    }
  } else if (mark && (!known || (!launch->overlaps && chance(stream, &stream->dense, PROBE_DENSE)))) {
    close_open(limiter, stream, now, false);
    measure_alone(limiter, launch, stream, false);
  } else if (mark && !stream->open) {
    stream->open = begin(limiter, mark_record(limiter, stream));
  }
  if (launch->alone && stream->open) drop_open(limiter, stream);
  int64_t start = start_of(limiter, stream, now);
  launch->charged = segment_growth(limiter, stream, now, launch->duration);
  stream->finish = start + launch->duration;
  limiter->horizon = later(limiter->horizon, stream->finish);
  queue_launched(limiter, now, limiter->horizon);
  limiter->after_others = false;
  if (!launch->alone && stream->open) join(stream->open, launch);
  const struct segment *open = stream->open;
  launch->measures = launch->alone || (open && (is_full(stream) || (open->idle && open->launches == 1)));
  stream->launching++;
}

void segment_after(struct limiter *limiter, struct launch *launch, bool launched) {
  struct stream *stream = launch->on;
  if (!stream) return;
  int64_t now = core_now();
  bool last = stream->launches == launch->number && stream->launching <= 1;
  if (launch->alone && (!launched || !last)) {
    mark_release(launch->start);
  } else if (launch->alone) {
    struct mark *end = mark_record(limiter, stream);
    struct segment *segment = begin(limiter, launch->start);
    if (!segment || !end) {
      mark_release(end);
      if (segment) {
        segment->end = NULL;
        release(limiter, segment);
      }
      return;
    }
    segment->alone = true;
    segment->idle = launch->idle;
    segment->at_most = launch->at_most;
    if (launch->at_most && !launch->idle && !turn_shared(limiter, now) && !queue_shared(limiter, now) && mark_state(launch->start) == MARK_PENDING) {
      segment->at_most = false; /* the stream did not run dry: what was predicted is too short */
      stream->finish = later(stream->finish, now + overdue + launch->duration);
    }
    segment->host_gap = now - launch->start_returned;
    join(segment, launch);
    if (!__atomic_load_n(&launch->prediction->launched, __ATOMIC_RELAXED)) __atomic_store_n(&launch->prediction->launched, now, __ATOMIC_RELAXED);
    queue(limiter, stream, segment, end);
    end->users++;
    stream->open = begin(limiter, end);
    return;
  }
  if (stream->open && stream->open->idle && stream->open->launches == 1) stream->open->host_gap = now - launch->start_returned;
  if (last && is_full(stream)) close_open(limiter, stream, now, true);
}

/* The time in the segment that its launches took, ns; -1: unknown. In an idle stream the first launch began somewhere within
   the host's gap. Usually the gap is some microseconds and the kernel begins at its end; if the thread lost its processor
   meanwhile only bounds are known. */
static int64_t worth(const struct segment *segment, int64_t between) {
  if (between < 0) return -1;
  if (!segment->idle) return later(between - (segment->alone ? queued_alone_cost : mark_cost + (segment->overlaps ? overlap_gain : 0)), 0);
  if (segment->at_most) return later(between - idle_alone_cost, 0);
  int64_t least = later(between - segment->host_gap - idle_alone_cost, MICROSECOND / 2), known = segment->predicted;
  bool late = segment->host_gap > 20 * MICROSECOND && segment->host_gap > between / 50;
  if (!late || known <= least) return least;
  return known < between - idle_alone_cost ? known : later(between - idle_alone_cost, least);
}

/* Of a mixture only the sum is known: what was often measured alone keeps its value, or the errors would wander among the
   kinds. If the sum is quite another one, all have to be measured anew. */
static void learn(struct segment *segment, int64_t busy) {
  if (segment->kinds == 1) {
    int64_t each = busy / segment->launches;
    struct prediction *prediction = segment->kind[0].prediction;
    int64_t known = predict_duration(prediction);
    if (each > known * 5 / 4 || each < known * 3 / 4) prediction->measured = 0;
    unsigned first = 100 / (prediction->measured + 1), weight = each >= MILLISECOND ? 50 : segment->alone ? 10 : 30;
    predict_learn(prediction, each, weight > first ? weight : first);
    return;
  }
  bool another = busy > segment->predicted * 11 / 10 || busy < segment->predicted * 9 / 10;
  for (int i = 0; i < segment->kinds && i < SEGMENT_KINDS; i++) {
    struct prediction *prediction = segment->kind[i].prediction;
    if (another) prediction->measured = 0;
    if (prediction->measured < NEW) predict_scale(prediction, busy, segment->predicted, 5);
  }
}

static void rebase(struct timeline *timeline, struct mark *mark, int64_t time) {
  mark->users++;
  mark_release(timeline->base);
  timeline->base = mark;
  timeline->base_time = time;
}

/* Where other tenants are, a time much longer than predicted may hold some of theirs: then what was predicted stays charged,
   unless it is always so. */
static bool held_up_by_others(struct limiter *limiter, const struct segment *segment, int64_t busy, int64_t now) {
  if (segment->at_most) return busy > segment->predicted;
  if (!turn_together(limiter, now) || !segment->predicted || busy < segment->predicted * 13 / 10)
    limiter->outliers = 0;
  else if (++limiter->outliers < MOST_OUTLIERS)
    return true;
  return false;
}

static void measure(struct limiter *limiter, struct stream *stream, struct segment *segment, int64_t now) {
  struct timeline *timeline = stream->timeline;
  if (!timeline->base) rebase(timeline, segment->start, now);
  int64_t between = mark_between(segment->start, segment->end), busy = worth(segment, between);
  int64_t from_base = mark_between(timeline->base, segment->end);
  if (segment->alone) __atomic_store_n(&segment->kind[0].prediction->launched, 0, __ATOMIC_RELAXED);
  if (busy < 0 || held_up_by_others(limiter, segment, busy, now)) return;
  int64_t end = timeline->base_time + from_base, grown = union_add(&timeline->busy, end - busy, end);
  core_charge(limiter, now, grown - segment->charged);
  learn(segment, busy);
  if (from_base > rebase_interval) rebase(timeline, segment->end, end);
}

static void delay(struct limiter *limiter, struct stream *stream, int64_t time) {
  stream->finish += time;
  for (struct segment *segment = stream->first; segment; segment = segment->next) segment->due += time;
  limiter->horizon = later(limiter->horizon, stream->finish);
}

static void reap_stream(struct limiter *limiter, struct stream *stream, int64_t now, bool soon) {
  while (stream->first) {
    struct segment *segment = stream->first;
    if (!soon && segment->due > now) break;
    enum mark_state state = mark_state(segment->end);
    if (state == MARK_PENDING) {
      /* It takes longer than predicted, and so will what comes behind it. */
      if (segment->due < now - overdue) {
        if (limiter->active_streams <= 1 && turn_shared(limiter, now)) delay(limiter, stream, now - segment->due);
        stream->finish = later(stream->finish, now + nearly_idle * 2);
      }
      break;
    }
    if (state == MARK_DONE) measure(limiter, stream, segment, now);
    stream->first = segment->next;
    if (!stream->first) stream->last = NULL;
    release(limiter, segment);
    limiter->pending--;
  }
}

void segment_reap(struct limiter *limiter, int64_t now, bool soon) {
  if (!soon && now < limiter->next_reap) return;
  limiter->next_reap = now + reap_interval;
  int active = 0;
  int mode = mark_allow();
  for (int i = 0; i < limiter->stream_high; i++) {
    struct stream *stream = &limiter->streams[i];
    if (!stream->used) continue;
    if (stream->finish > now - active_time || (limiter->launches - stream->used_at < ACTIVE_LAUNCHES && stream->finish > now - active_most)) active++;
    if (stream->first) reap_stream(limiter, stream, now, soon);
  }
  mark_restore(mode);
  limiter->active_streams = active;
}

static void forget(struct limiter *limiter, struct stream *stream) {
  drop_open(limiter, stream);
  while (stream->first) {
    struct segment *segment = stream->first;
    stream->first = segment->next;
    for (int i = 0; i < segment->kinds && i < SEGMENT_KINDS; i++) __atomic_store_n(&segment->kind[i].prediction->launched, 0, __ATOMIC_RELAXED);
    release(limiter, segment);
    limiter->pending--;
  }
  stream->last = NULL;
  stream->used = false;
}

void segment_forget_stream(struct limiter *limiter, struct stream *stream) { forget(limiter, stream); }

void segment_forget_context(struct limiter *limiter, CUcontext context) {
  for (int i = 0; i < limiter->stream_high; i++)
    if (limiter->streams[i].used && limiter->streams[i].context == context) forget(limiter, &limiter->streams[i]);
  for (int i = 0; i < MAX_TIMELINES; i++) {
    struct timeline *timeline = &limiter->timelines[i];
    if (timeline->context != context) continue;
    mark_release(timeline->base);
    for (struct mark *mark = timeline->free, *next; mark; mark = next) {
      next = mark->next;
      free(mark); /* its event goes with the context */
    }
    *timeline = (struct timeline){0};
  }
}
