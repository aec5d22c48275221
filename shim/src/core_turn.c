#include "core_turn.h"

#include "core_limiter.h"
#include "core_mark.h"
#include "core_publish.h"
#include "core_time.h"
#include "process.h"

/* Measured on an H200: a change of context; sums and latencies by period and by work in flight. */
static const int64_t switch_time = 150 * MICROSECOND;
static const int64_t in_flight = 2 * MILLISECOND, in_flight_light = 400 * MICROSECOND;
static const int64_t periods[] = {25 * MILLISECOND, 25 * MILLISECOND, 25 * MILLISECOND, 100 * MILLISECOND / 3, 50 * MILLISECOND, 50 * MILLISECOND};
static const int64_t longest_period = 100 * MILLISECOND; /* divided without rest by all but one: windows of 100 ms look alike */

static const int64_t look_alone = 10 * MILLISECOND, look_absent = SECOND, look_turn = 250 * MICROSECOND;
static const int64_t there = SECOND;                    /* a tenant seen within this time is there */
static const int64_t awake = 100 * MILLISECOND;         /* and within this one busy */
static const int64_t waits = 15 * MILLISECOND;          /* a waiter seen within this time still waits */
static const int64_t stale = 10ll * SECOND;             /* a record not used for so long is free */
static const int64_t lead = 80 * MICROSECOND;           /* from the turn's end to the card's being done */
static const int64_t lead_most = 5 * MILLISECOND;       /* longer launches are not predicted that well */
static const int64_t oversleep = 150 * MICROSECOND, late = 200 * MICROSECOND, careful_time = SECOND;
enum { MOST_LATE = 3 }; /* turns in a row: now and then the driver's slice ends within the lead */
static const int64_t shortest_sleep = 20 * MICROSECOND, longest_sleep = 200 * MICROSECOND;
static const int64_t write_interval = 500 * MICROSECOND;
static const int64_t next_grace = 300 * MICROSECOND;    /* for the one whose turn it is to take it */
static const int64_t grace = MILLISECOND;               /* for one that does not show itself any more */
static const int64_t unknown_most = 20 * MILLISECOND, finish_most = SECOND;
static const int64_t overstay = 50 * MILLISECOND, long_launch_most = 100 * MILLISECOND, ignore_time = 10ll * SECOND;
static const int64_t through_grace = MILLISECOND;       /* for a light one's launch to be done */
static const int64_t passed_grace = 100 * MICROSECOND, passed_time = SECOND, linger_most = 2 * MILLISECOND;
static const int64_t unmanaged_time = SECOND;
static const int64_t together_time = 10ll * SECOND;
static const int64_t starving = 500 * MILLISECOND;
static const int64_t light_patience = MILLISECOND;
static const int64_t light_rest = 5 * MILLISECOND;      /* after a launch without the turn */
static const int64_t light_window = 100 * MILLISECOND;
static const int64_t lag_least = 200 * MILLISECOND, lag_most = 2ll * SECOND; /* of an account behind the others' */
static const int64_t hold_most = 500 * MICROSECOND;     /* after the program waited for the card */
static const int64_t credit_most_alone = 100 * MILLISECOND, credit_most_shared = 150 * MILLISECOND;
static const int64_t part_least = 50000;                /* of a container without a limit, parts per million */

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t bounded(int64_t value, int64_t least, int64_t most) { return value < least ? least : value > most ? most : value; }

static uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

static struct core_turn *container(const struct limiter *limiter) { return &limiter->shared->turn; }
static int own_slot(const struct limiter *limiter) {
  uint64_t slot = load(&container(limiter)->slot);
  return slot >= 1 && slot <= CARD_TENANTS ? (int)slot - 1 : -1;
}
static bool has_turn(const struct limiter *limiter) { return load(&container(limiter)->word) != 0; }
static int holder(uint64_t word) { return (word & 0xff) <= CARD_TENANTS ? (int)(word & 0xff) - 1 : -1; }

/* What this process saw of the tenant whose record that is now. */
static struct turn_seen *seen_of(struct limiter *limiter, int slot) {
  struct turn_seen *seen = &limiter->turn.seen[slot];
  uint64_t owner = limiter->turn.file.tenants[slot].owner;
  if (seen->owner != owner) *seen = (struct turn_seen){.owner = owner};
  return seen;
}

static bool is_there(struct limiter *limiter, int slot, int64_t now) {
  const struct card_tenant *tenant = &limiter->turn.file.tenants[slot];
  int64_t age = now - (int64_t)tenant->seen;
  return slot != own_slot(limiter) && tenant->owner && age <= there && age >= -there && seen_of(limiter, slot)->ignored <= now;
}

static bool is_waiting(struct limiter *limiter, int slot, int64_t now) {
  const struct card_tenant *tenant = &limiter->turn.file.tenants[slot];
  return is_there(limiter, slot, now) && tenant->wants && now - (int64_t)tenant->seen <= waits;
}

static unsigned percent_of(const struct card_tenant *tenant) { return tenant->percent <= 99 ? tenant->percent : 0; }

/* The parts of the card: limits, scaled down to 100 together; who has none shares what they leave. */
static void divide(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  int64_t limits = 0, unlimited = 0, busy = 0, busy_limits = 0, busy_unlimited = 0;
  unsigned own = limiter_percent(limiter);
  for (int i = 0; i < CARD_TENANTS; i++) {
    bool self = i == own_slot(limiter);
    if (!self && (!is_there(limiter, i, now) || seen_of(limiter, i)->passed > now)) continue;
    unsigned percent = self ? own : percent_of(&turn->file.tenants[i]);
    bool is_busy = self || now - (int64_t)turn->file.tenants[i].seen <= awake;
    limits += percent;
    unlimited += !percent;
    busy += is_busy;
    busy_limits += is_busy ? percent : 0;
    busy_unlimited += is_busy && !percent;
  }
  int64_t each = unlimited ? later((100 - limits) * 10000 / unlimited, part_least) : 0; /* ppm */
  int64_t total = later(limits * 10000 + unlimited * each, 1000000);
  int64_t busy_total = busy_limits * 10000 + busy_unlimited * each;
  int64_t mine = own ? own * 10000 : each;
  int64_t period = busy < (int64_t)(sizeof periods / sizeof periods[0]) ? periods[busy] : longest_period;
  bool capped = own && !turn_unlimited(limiter);
  turn->part = later(mine * 1000000 / total, 1000);
  turn->quantum = later(period * mine / (capped ? total : later(busy_total, mine)), 200 * MICROSECOND);
}

/* What the container had in the last 100 ms, ns. */
static int64_t busy_lately(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  uint64_t busy = load(&limiter->shared->busy_time);
  int latest = (turn->samples + TURN_SAMPLES - 1) % TURN_SAMPLES;
  if (!turn->samples || now - turn->sample_time[latest] >= light_window / (TURN_SAMPLES - 1)) {
    turn->sample_time[turn->samples % TURN_SAMPLES] = now;
    turn->sample_busy[turn->samples++ % TURN_SAMPLES] = busy;
  }
  uint64_t before = busy;
  for (int i = 0; i < TURN_SAMPLES && i < turn->samples; i++)
    if (now - turn->sample_time[i] <= light_window + light_window / 5 && turn->sample_busy[i] < before) before = turn->sample_busy[i];
  return bounded((int64_t)(busy - before), 0, light_window);
}

/* Below it a container is light. */
static int64_t light_most(const struct limiter *limiter) { return light_window * limiter->turn.part / 4000000; }

static void become_tenant(struct limiter *limiter, int64_t now) {
  struct core_turn *own = container(limiter);
  struct turn *turn = &limiter->turn;
  int process = process_slot();
  const struct core_process *record = process < 0 ? NULL : &limiter->region->processes[process];
  uint64_t pid_namespace = record ? load(&record->pid_namespace) : 0, none = 0;
  uint64_t identity = predict_key(record ? load(&record->owner) : (uintptr_t)limiter, pid_namespace, 0, 0);
  __atomic_compare_exchange_n(&own->owner, &none, identity, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  turn->shown = (struct card_tenant){.owner = load(&own->owner), .pid_namespace = pid_namespace, .seen = (uint64_t)now};
  store(&own->slot, (uint64_t)(card_file_slot(&turn->handle, &turn->shown, stale, now) + 1));
}

static void show(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  struct core_turn *own = container(limiter);
  int slot = own_slot(limiter);
  if (slot < 0) return;
  int64_t busy = busy_lately(limiter, now);
  turn->written = now;
  turn->shown.owner = load(&own->owner);
  turn->shown.seen = (uint64_t)now;
  if (now - turn->lingers > linger_most) turn->lingers = 0;
  if (!has_turn(limiter)) turn->shown.frees = 0;
  turn->shown.wants = has_turn(limiter) ? 0 : (uint64_t)(turn->wanted ? turn->wanted : turn->lingers);
  turn->shown.light = turn->lingers && !turn->wanted ? CARD_LIGHT_LAUNCHED : turn->light;
  turn->shown.finish = now < turn->unknown ? CARD_FINISH_UNKNOWN : load(&own->finish);
  turn->shown.account = load(&own->account);
  turn->shown.percent = limiter_percent(limiter);
  turn->shown.policy = __atomic_load_n(&limiter->region->header->policy, __ATOMIC_RELAXED);
  turn->shown.launch = (uint64_t)(turn->duration * 1000000 / later(turn->part, 1000));
  turn->shown.busy = (uint32_t)(busy * 1000000 / light_window);
  card_file_write(&turn->handle, slot, &turn->shown);
}

/* The account if the turn ended then. */
static uint64_t account_at(const struct limiter *limiter, int64_t now) {
  const struct core_turn *own = container(limiter);
  int64_t passed = bounded(now - (int64_t)load(&own->since), 0, 100ll * SECOND);
  return load(&own->account) + (uint64_t)(passed * 1000000 / later(limiter->turn.part, 1000));
}

/* Moves the part of the turn that is over into the account. */
static void settle(struct limiter *limiter, int64_t now) {
  struct core_turn *own = container(limiter);
  store(&own->account, account_at(limiter, now));
  if ((int64_t)load(&own->since) < now) store(&own->since, (uint64_t)now);
  limiter->turn.active = now;
}

static void lose(struct limiter *limiter, uint64_t word, int64_t now) {
  if (!word || !__atomic_compare_exchange_n(&container(limiter)->word, &word, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  settle(limiter, now);
}

/* Reads the card file. False: nobody else is there, or there is no file: no turns. */
static bool look(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  struct core_turn *own = container(limiter);
  turn->open = card_file_read(&turn->handle, limiter->shared->uuid, now, &turn->file);
  turn->looked = now;
  turn->next_look = now + look_turn;
  if (!turn->open || now < turn->unmanaged) {
    turn->quiet = later(turn->unmanaged, now + (turn->handle.next_open > now ? bounded(turn->handle.next_open - now, look_alone, look_absent) : look_alone));
    turn->others = 0;
    turn->wanted = 0;
    lose(limiter, load(&own->word), now);
    return false;
  }
  int slot = own_slot(limiter);
  if (slot < 0 || turn->file.tenants[slot].owner != load(&own->owner) || !load(&own->owner)) {
    become_tenant(limiter, now);
    slot = own_slot(limiter);
  }
  uint64_t word = turn->file.turn.word, held = load(&own->word);
  if (held && held != word) lose(limiter, held, now);
  if (word != turn->watched_word) {
    turn->watched_word = word;
    turn->watched = now;
    if (holder(word) >= 0) seen_of(limiter, holder(word))->passed = seen_of(limiter, holder(word))->unused = 0;
  }
  int present = 0, busy = 0;
  bool light = false;
  turn->yield = false;
  for (int i = 0; i < CARD_TENANTS; i++) {
    if (!is_there(limiter, i, now)) continue;
    present++;
    if (!turn->file.tenants[i].wants) seen_of(limiter, i)->unused = 0;
    busy += now - (int64_t)turn->file.tenants[i].seen <= awake;
    light = light || turn->file.tenants[i].light;
    if (is_waiting(limiter, i, now) && turn->file.tenants[i].light && seen_of(limiter, i)->passed <= now) turn->yield = true;
  }
  if (light) turn->light_about = now + there;
  if (turn->light) turn->yield = false;
  if (busy) turn->others = now + awake;
  if (busy) turn->together = now + together_time;
  if (!present || slot < 0) {
    turn->quiet = now + look_alone;
    lose(limiter, load(&own->word), now);
    turn->wanted = 0;
    show(limiter, now);
    return false;
  }
  divide(limiter, now);
  return true;
}

/* Whether all that the container launched is done. Of what its other processes launched only the prediction is known. */
static bool drained(struct limiter *limiter, int64_t now, int64_t *wake) {
  struct core_turn *own = container(limiter);
  struct turn *turn = &limiter->turn;
  bool busy = false;
  *wake = now + shortest_sleep;
  int mode = mark_allow();
  for (int i = 0; i < limiter->stream_high && !busy; i++) {
    struct stream *stream = &limiter->streams[i];
    if (stream->used && stream->finish > now - there) busy = mark_stream_busy(stream);
  }
  mark_restore(mode);
  if (busy) return false;
  turn->unknown = 0;
  uint64_t finish = (uint64_t)turn->raised;
  if (finish > (uint64_t)now) __atomic_compare_exchange_n(&own->finish, &finish, (uint64_t)now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  int64_t others = (int64_t)load(&own->finish);
  if (others <= now || others > now + finish_most) return true;
  *wake = later(*wake, others);
  return false;
}

static void free_turn(struct limiter *limiter, int64_t now) {
  struct core_turn *own = container(limiter);
  struct turn *turn = &limiter->turn;
  uint64_t word = load(&own->word);
  const struct card_turn next = {.word = ((word >> 8) + 1) << 8, .since = (uint64_t)now, .ends = 0};
  turn->next_look = 0;
  if (!card_file_swap(&turn->handle, word, &next, now)) return; /* another process has the lock, or the turn */
  lose(limiter, word, now);
  turn->shown.frees = 0;
  turn->yield = false;
  show(limiter, now);
}

/* When what other processes of the container launched is expected to be done. */
static int64_t others_finish(const struct limiter *limiter) {
  uint64_t finish = load(&container(limiter)->finish);
  return finish == (uint64_t)limiter->turn.raised || finish > INT64_MAX ? 0 : (int64_t)finish;
}

/* Whether what was launched may take longer than predicted. */
static bool is_careful(const struct limiter *limiter, int64_t now) {
  return now < limiter->turn.careful || now < limiter->turn.unknown || limiter->active_streams > 1 || limiter->turn.duration > lead_most ||
         others_finish(limiter) > now - awake;
}

/* Ends the turn; returns when to look again. The next tenant is let in a little early, so that its launch waits in the driver
   when the card is done, and without waiting for this process, should it not get a processor in time. */
static int64_t end_turn(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  int64_t finish = limiter->horizon, wake = finish - lead;
  bool careful = is_careful(limiter, now);
  int64_t frees = later(finish, now) + (careful ? grace : oversleep), shown = (int64_t)turn->shown.frees;
  if (frees < shown || frees > shown + oversleep / 2) {
    turn->shown.frees = (uint64_t)frees;
    show(limiter, now);
  }
  if (wake > now + shortest_sleep) return wake;
  if ((careful || others_finish(limiter) > now + lead) && !drained(limiter, now, &wake)) return wake;
  turn->expected = finish > now ? finish : 0;
  free_turn(limiter, now);
  return now + shortest_sleep;
}

/* Later, while it waits for the next turn: was the card done when it should have been? */
static void check_prediction(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  int64_t wake;
  if (!turn->expected || now < turn->expected + late) return;
  if (now < turn->expected + 2 * late) turn->late = drained(limiter, now, &wake) ? 0 : turn->late + 1;
  if (turn->late >= MOST_LATE) turn->careful = now + careful_time;
  turn->expected = 0;
}

static void raise_finish(struct limiter *limiter, int64_t finish) {
  uint64_t *word = &container(limiter)->finish, known = load(word);
  while (known < (uint64_t)finish) {
    if (!__atomic_compare_exchange_n(word, &known, (uint64_t)finish, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    limiter->turn.raised = finish;
    return;
  }
}

static bool goes_before(const struct card_tenant *other, bool light, uint64_t account, bool slot_before) {
  if (!other->light != !light) return other->light;
  if (other->account != account) return other->account < account;
  return slot_before;
}

/* Whether a tenant that waits comes before this container with that account. */
static bool anybody_before(struct limiter *limiter, uint64_t account, int64_t now) {
  const struct turn *turn = &limiter->turn;
  for (int i = 0; i < CARD_TENANTS; i++)
    if (is_waiting(limiter, i, now) && goes_before(&turn->file.tenants[i], turn->light, account, i < own_slot(limiter))) return true;
  return false;
}

/* Whether those who come before this container left the turn alone, that has been to be had since then. */
static bool left_by_others(struct limiter *limiter, int64_t since, int64_t passed, int64_t now) {
  struct turn *turn = &limiter->turn;
  uint64_t account = load(&container(limiter)->account);
  int64_t courtesy = 0;
  passed = sooner(passed, now - since);
  for (int i = 0; i < CARD_TENANTS; i++) {
    if (!is_waiting(limiter, i, now) || !goes_before(&turn->file.tenants[i], turn->light, account, i < own_slot(limiter))) continue;
    struct turn_seen *seen = seen_of(limiter, i);
    seen->unused += passed;
    if (seen->unused >= (turn->file.tenants[i].light == CARD_LIGHT_LAUNCHED ? through_grace : next_grace)) seen->passed = now + passed_time;
    courtesy = later(courtesy, seen->passed > now ? passed_grace : INT64_MAX);
  }
  return now - since >= courtesy;
}

/* The holder's look, now and then: whether it still has the turn, and whether somebody light waits. */
static bool look_in_turn(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  if (!look(limiter, now)) return false;
  if (!has_turn(limiter)) return true;
  turn->light = turn->light && busy_lately(limiter, now) < light_most(limiter);
  turn->shown.frees = 0;
  raise_finish(limiter, later(limiter->horizon, now));
  show(limiter, now);
  return true;
}

/* Time not used is not saved up: who comes back after a pause stands beside the others, and one that uses less than its part
   falls behind by so much only. */
static void keep_up(struct limiter *limiter, bool paused, int64_t now) {
  struct turn *turn = &limiter->turn;
  struct core_turn *own = container(limiter);
  uint64_t least = UINT64_MAX, account = load(&own->account);
  int64_t lag = 0;
  for (int i = 0; i < CARD_TENANTS; i++) {
    const struct card_tenant *tenant = &turn->file.tenants[i];
    if (!is_there(limiter, i, now) || now - (int64_t)tenant->seen > awake || tenant->account >= least) continue;
    least = tenant->account;
    lag = bounded(2 * (int64_t)tenant->launch, lag_least, lag_most);
  }
  if (least > INT64_MAX) return;
  if (paused)
    store(&own->account, least);
  else if (account + (uint64_t)lag < least)
    store(&own->account, least - (uint64_t)lag);
}

/* Within the turn. Returns 0, or when to look again; *paced: the card has enough to do until then. The first launch of a
   turn always goes: if it is longer than the turn, it is the others' turn so much longer. */
static int64_t within(struct limiter *limiter, int64_t now, int64_t duration, bool *paced) {
  struct turn *turn = &limiter->turn;
  struct core_turn *own = container(limiter);
  int64_t start = later(limiter->horizon, later(now, limiter->ready)), ends = (int64_t)load(&own->ends);
  bool first = load(&own->finish) <= load(&own->since);
  *paced = false;
  if (turn->yield && !first) return end_turn(limiter, now);
  if (ends - start <= duration / 2 && !first) {
    if (now - turn->looked > look_turn / 4 && !look_in_turn(limiter, now)) return 0;
    if (!has_turn(limiter)) return now + shortest_sleep;
    keep_up(limiter, false, now);
    if (anybody_before(limiter, account_at(limiter, start), now)) return end_turn(limiter, now);
    settle(limiter, start);
    store(&own->ends, (uint64_t)(start + turn->quantum));
  }
  int64_t most = now < turn->light_about ? in_flight_light : is_careful(limiter, now) ? in_flight : longest_period, ahead = limiter->horizon - now;
  if (ahead + duration > most && ahead > most / 2) {
    *paced = true;
    return limiter->horizon - later(most / 2, sooner(most * 3 / 4, most - duration));
  }
  turn->duration = duration;
  if (!duration) turn->unknown = now + unknown_most;
  raise_finish(limiter, start + duration);
  if (duration >= look_turn || !duration) show(limiter, now);
  return 0;
}

/* Whether the turn may be taken; else when to look again. A tenant that keeps it waits in vain for its launches if it has
   been killed, stopped, or does something else: then the time that it named plus a tenth counts. One that names times that
   go on for ever is ignored. */
static bool takes_over(struct limiter *limiter, int64_t now, int64_t *wake) {
  struct turn *turn = &limiter->turn;
  int slot = holder(turn->watched_word);
  int64_t passed = bounded(now - later(turn->polled, turn->watched), 0, 2 * longest_sleep);
  turn->polled = now;
  *wake = now + shortest_sleep;
  if (slot == own_slot(limiter)) return true;
  if (slot < 0 || !is_there(limiter, slot, now)) return left_by_others(limiter, turn->watched, passed, now);
  const struct card_tenant *tenant = &turn->file.tenants[slot];
  turn->predecessor_finish = (int64_t)tenant->finish;
  int64_t seen = (int64_t)tenant->seen, frees = (int64_t)tenant->frees;
  int64_t ends = bounded((int64_t)turn->file.turn.ends, turn->watched - longest_period, turn->watched + longest_period);
  int64_t finish = bounded((int64_t)tenant->finish, turn->watched - finish_most, now + finish_most);
  if (frees < (int64_t)turn->file.turn.since) frees = 0; /* of an earlier turn */
  if (frees && now >= frees) return left_by_others(limiter, frees, passed, now);
  if (tenant->finish == CARD_FINISH_UNKNOWN) finish = seen + unknown_most;
  turn->longest = bounded(finish - now, turn->longest, finish_most);
  int64_t deadline = later(later(finish, seen), turn->watched) + later(finish - seen, 0) / 10 + grace;
  struct turn_seen *kept_by = seen_of(limiter, slot);
  if (!kept_by->kept) kept_by->account = tenant->account;
  kept_by->kept += passed;
  int64_t beyond = kept_by->kept - longest_period - overstay - bounded(finish - ends, 0, long_launch_most);
  if (beyond > 0 && (tenant->account >= load(&container(limiter)->account) || (int64_t)(tenant->account - kept_by->account) < beyond)) {
    kept_by->ignored = now + ignore_time;
    return true;
  }
  if (now > deadline) return left_by_others(limiter, deadline, passed, now);
  int64_t expected = frees ? finish - lead : later(ends, finish);
  *wake = now + bounded((expected - now) / 4, shortest_sleep, turn->light ? shortest_sleep * 2 : longest_sleep);
  return false;
}

static void count_wait_for_turn(struct limiter *limiter, int64_t waited) {
  if (!waited) return;
  __atomic_fetch_add(&limiter->shared->context_switches, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&limiter->shared->context_switch_latency[core_histogram_bucket(waited)], 1, __ATOMIC_RELAXED);
}

static int64_t want(struct limiter *limiter, int64_t now, int64_t duration) {
  struct turn *turn = &limiter->turn;
  struct core_turn *own = container(limiter);
  int64_t wake;
  bool new = !turn->wanted;
  keep_up(limiter, new && now - turn->active > awake, now);
  if (new) {
    turn->wanted = now;
    turn->longest = 0;
  }
  int64_t waited = now - turn->wanted;
  bool light = busy_lately(limiter, now) + duration < light_most(limiter) && now - turn->skipped > light_rest;
  new = new || light != turn->light;
  turn->light = light;
  turn->active = now;
  if (waited > starving + 10 * turn->longest + 2 * duration * 1000000 / turn->part) {
    turn->unmanaged = now + unmanaged_time;
    turn->wanted = 0;
    return 0;
  }
  if (new || now - turn->written > write_interval) show(limiter, now);
  if (light && waited > light_patience) {
    __atomic_fetch_add(&own->without, 1, __ATOMIC_RELAXED);
    count_wait_for_turn(limiter, waited);
    turn->wanted = 0;
    turn->skipped = turn->lingers = now;
    show(limiter, now);
    return 0;
  }
  check_prediction(limiter, now);
  if (!takes_over(limiter, now, &wake)) return wake;
  uint64_t found = turn->watched_word;
  int64_t done = later(now, sooner(turn->predecessor_finish, now + 2 * lead));
  const struct card_turn next = {.word = ((found >> 8) + 1) << 8 | (uint64_t)(own_slot(limiter) + 1),
                                 .since = (uint64_t)now,
                                 .ends = (uint64_t)(done + switch_time + turn->quantum)};
  if (!card_file_swap(&turn->handle, found, &next, now)) return now + shortest_sleep;
  if (holder(found) >= 0) __atomic_fetch_add(&own->taken_over, 1, __ATOMIC_RELAXED);
  count_wait_for_turn(limiter, waited);
  __atomic_fetch_add(&own->turns, 1, __ATOMIC_RELAXED);
  limiter->ready = done + switch_time;
  store(&own->since, (uint64_t)limiter->ready);
  store(&own->ends, next.ends);
  store(&own->finish, (uint64_t)limiter->ready);
  store(&own->word, next.word);
  turn->watched_word = next.word;
  turn->watched = now;
  turn->wanted = turn->lingers = 0;
  for (int i = 0; i < CARD_TENANTS; i++) turn->seen[i].kept = 0;
  turn->next_look = now + look_turn;
  turn->yield = false;
  show(limiter, now);
  return 0;
}

static int64_t hold(struct limiter *limiter, int64_t now, int64_t duration, bool *paced) {
  struct turn *turn = &limiter->turn;
  *paced = false;
  if (turn->synchronized) {
    turn->gap += (now - turn->synchronized - turn->gap) / 8;
    turn->synchronized = 0;
  }
  if (has_turn(limiter) ? now >= turn->next_look && !look_in_turn(limiter, now) : !look(limiter, now)) return 0;
  if (!has_turn(limiter)) {
    int64_t wake = want(limiter, now, duration);
    if (wake || !has_turn(limiter)) return wake;
  }
  return within(limiter, now, duration, paced);
}

int64_t turn_hold(struct limiter *limiter, int64_t *now, int64_t duration) {
  for (;;) {
    bool paced = false;
    if (*now < limiter->turn.quiet) return 0;
    if (!limiter_lock(limiter)) return *now + shortest_sleep;
    int64_t wake = hold(limiter, *now, duration, &paced);
    limiter_unlock(limiter);
    if (!paced) return wake;
    core_sleep_until(wake);
    *now = core_now();
  }
}

int64_t turn_blocked(struct limiter *limiter, int64_t now, int64_t wake) {
  struct turn *turn = &limiter->turn;
  if (now < turn->quiet || (!has_turn(limiter) && !turn->wanted) || !limiter_lock(limiter)) return wake;
  turn->wanted = 0;
  if (!has_turn(limiter)) {
    show(limiter, now);
  } else if (look(limiter, now) && has_turn(limiter)) {
    int64_t look_again = end_turn(limiter, now);
    if (has_turn(limiter)) wake = sooner(wake, look_again);
  }
  limiter_unlock(limiter);
  return wake;
}

void turn_synchronized(struct limiter *limiter, int64_t now) {
  struct turn *turn = &limiter->turn;
  int64_t wake;
  if (now < turn->quiet) return;
  turn->synchronized = now;
  if (turn->lingers) {
    turn->lingers = 0;
    show(limiter, now);
  }
  if (!has_turn(limiter) || !drained(limiter, now, &wake)) return;
  if (limiter->horizon > now) limiter->horizon = now;
  if (now >= turn->next_look && !look_in_turn(limiter, now)) return;
  if (!has_turn(limiter)) return;
  int64_t hold = turn->gap * 5 / 2;
  turn->next_look = 0; /* the next launch looks whether the turn is still there */
  if (turn->yield || hold > hold_most || now >= (int64_t)load(&container(limiter)->ends)) {
    free_turn(limiter, now);
  } else {
    turn->shown.frees = (uint64_t)(now + hold);
    show(limiter, now);
  }
}

bool turn_shared(const struct limiter *limiter, int64_t now) { return now < limiter->turn.others; }

bool turn_together(const struct limiter *limiter, int64_t now) { return now < limiter->turn.together; }

bool turn_missed(const struct limiter *limiter, int64_t now) { return turn_shared(limiter, now) && !has_turn(limiter); }

bool turn_unlimited(const struct limiter *limiter) {
  return limiter->turn.open && __atomic_load_n(&limiter->region->header->policy, __ATOMIC_RELAXED) == CORE_POLICY_DEFAULT;
}

int64_t turn_credit(const struct limiter *limiter, unsigned percent) { return limiter->turn.quantum * 80 / (int64_t)percent; }

/* At a high limit credit is used up slowly: it shall not last longer than two tenths of a second. */
int64_t turn_credit_most(const struct limiter *limiter, int64_t now) {
  if (turn_shared(limiter, now)) return credit_most_shared;
  return bounded(2 * credit_most_alone * (100 - (int64_t)limiter_percent(limiter)) / 100, credit_most_alone / 10, credit_most_alone);
}

bool turn_watch(struct limiter *limiter, int64_t now) {
  if (!limiter_lock(limiter)) return false;
  bool takes_turns = now >= limiter->turn.quiet ? look(limiter, now) : false;
  limiter_unlock(limiter);
  return takes_turns;
}
