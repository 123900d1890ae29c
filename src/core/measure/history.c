/* Two scales, each with a ring of steps per queue. A step is known by its number (time divided by
 * its length), so that one in which nothing was counted leaves a gap. What a step did is the
 * difference to the figures at the end of the one before; quantiles are those of the difference. */
#include "core/measure/history.h"

#include "base/enum_words.h"
#include "base/json.h"
#include "core/queue_name.h"
#include "core/render.h"

#include <math.h>
#include <stdlib.h>

#define FINE_STEPS 721    /* of 5 s: an hour, and the one under way */
#define COARSE_STEPS 1441 /* of 60 s: a day, the same */
#define COARSE_US INT64_C(60000000)
#define TRACKS_MAX (HISTORY_QUEUES_MAX + 2) /* all together, the others, one per queue */

enum { TRACK_TOTAL, TRACK_OTHERS, TRACK_FIRST };

/* One queue's values, steps of a series one behind the other; NAN = not known. */
struct track {
    struct str name;
    float *values[2]; /* per scale */
    char text[];
};

struct scale {
    int64_t step_us;
    uint32_t steps;
    int64_t open;             /* the number of the step under way */
    int64_t *numbers;         /* of the step in each place; -1 = none yet */
    struct measured *before;  /* the figures when the last one ended */
};

struct history {
    struct scale scales[2];
    uint32_t tracks_count;
    struct track *tracks[TRACKS_MAX];
};

bool history_window_parse(struct str word, enum history_window *window)
{
    static const char *const words[WINDOW_COUNT] = {"15m", "1h", "6h", "24h"};
    int found = enum_words_find(word, words, WINDOW_COUNT);

    if (found >= 0)
        *window = (enum history_window)found;
    return found >= 0;
}

static float *place(const struct history *history, const struct track *track, int scale,
                    enum history_series series, int64_t number)
{
    uint32_t steps = history->scales[scale].steps;

    return &track->values[scale][(size_t)series * steps + (size_t)(number % steps)];
}

static void track_free(struct track *track)
{
    if (!track)
        return;
    free(track->values[0]);
    free(track->values[1]);
    free(track);
}

/* A queue that is new had nothing before, and took no time. */
static bool fill(struct history *history, struct track *track, int scale)
{
    size_t steps = history->scales[scale].steps;

    track->values[scale] = calloc(HISTORY_SERIES * steps, sizeof(float));
    if (!track->values[scale])
        return false;
    for (size_t i = HISTORY_WAIT_P50 * steps; i < HISTORY_SERIES * steps; i++)
        track->values[scale][i] = NAN;
    return true;
}

static struct track *track_new(struct history *history, struct str name)
{
    struct track *track = calloc(1, sizeof *track + name.len + 1);

    if (!track)
        return NULL;
    if (!fill(history, track, 0) || !fill(history, track, 1)) {
        track_free(track);
        return NULL;
    }
    if (name.data) {
        memcpy(track->text, name.data, name.len);
        track->name = str_span(track->text, name.len);
    }
    history->tracks[history->tracks_count++] = track;
    return track;
}

static bool scale_init(struct scale *scale, int64_t step_us, uint32_t steps, int64_t now_us)
{
    *scale = (struct scale){.step_us = step_us, .steps = steps, .open = now_us / step_us};
    scale->numbers = malloc(steps * sizeof *scale->numbers);
    scale->before = calloc(1, sizeof *scale->before);
    for (uint32_t i = 0; scale->numbers && i < steps; i++)
        scale->numbers[i] = -1;
    return scale->numbers && scale->before;
}

struct history *history_new(int64_t now_us)
{
    struct history *history = calloc(1, sizeof *history);

    if (!history)
        return NULL;
    if (!scale_init(&history->scales[0], HISTORY_STEP_US, FINE_STEPS, now_us) ||
        !scale_init(&history->scales[1], COARSE_US, COARSE_STEPS, now_us) ||
        !track_new(history, STR_NONE) || !track_new(history, STR_NONE)) {
        history_free(history);
        return NULL;
    }
    return history;
}

void history_free(struct history *history)
{
    if (!history)
        return;
    for (uint32_t i = 0; i < history->tracks_count; i++)
        track_free(history->tracks[i]);
    for (int i = 0; i < 2; i++) {
        free(history->scales[i].numbers);
        free(history->scales[i].before);
    }
    free(history);
}

bool history_is_due(const struct history *history, int64_t now_us)
{
    return now_us / HISTORY_STEP_US > history->scales[0].open;
}

/* ---- adding ---- */

/* Without memory, or beyond the bound, it is one of the others. */
static struct track *track_of(struct history *history, struct str name)
{
    struct track *track;

    if (!name.data || measure_is_other(name))
        return history->tracks[TRACK_OTHERS];
    for (uint32_t i = TRACK_FIRST; i < history->tracks_count; i++)
        if (str_eq(history->tracks[i]->name, name))
            return history->tracks[i];
    track = history->tracks_count < TRACKS_MAX ? track_new(history, name) : NULL;
    return track ? track : history->tracks[TRACK_OTHERS];
}

static float quantile_ms(const struct histogram *histogram, double share)
{
    int64_t us = histogram_quantile_us(histogram, share);

    return us < 0 ? NAN : (float)us / 1000;
}

/* The difference of one queue, or the sum of all, as values of a step. */
static void put_did(struct history *history, struct track *track, int scale, int64_t number,
                    const struct measured_queue *did)
{
    const struct histogram *wait = &did->spans[MEASURE_WAIT], *run = &did->spans[MEASURE_RUN];

    *place(history, track, scale, HISTORY_COMPLETED, number) =
        (float)did->counts[MEASURE_COMPLETED];
    *place(history, track, scale, HISTORY_FAILED, number) =
        (float)(did->counts[MEASURE_FAILED] + did->counts[MEASURE_DEAD_LETTER]);
    *place(history, track, scale, HISTORY_RETRIED, number) = (float)did->counts[MEASURE_RETRIED];
    *place(history, track, scale, HISTORY_ENQUEUED, number) =
        (float)did->counts[MEASURE_ENQUEUED];
    *place(history, track, scale, HISTORY_WAIT_P50, number) = quantile_ms(wait, 0.5);
    *place(history, track, scale, HISTORY_WAIT_P99, number) = quantile_ms(wait, 0.99);
    *place(history, track, scale, HISTORY_RUN_P50, number) = quantile_ms(run, 0.5);
    *place(history, track, scale, HISTORY_RUN_P99, number) = quantile_ms(run, 0.99);
}

static void add_did(struct measured_queue *to, const struct measured_queue *from)
{
    for (int what = 0; what < MEASURE_COUNTS; what++)
        to->counts[what] += from->counts[what];
    for (int span = 0; span < MEASURE_SPANS; span++)
        histogram_add(&to->spans[span], &from->spans[span]);
}

static void put_counts(struct history *history, int scale, int64_t number,
                       const struct measured *measured)
{
    static const struct measured_queue none = {0};
    struct measured *before = history->scales[scale].before;
    struct measured_queue total = {0}, others = {0}, did;

    for (uint32_t i = 0; i < measured->queues_count; i++) {
        const struct measured_queue *now = &measured->queues[i];
        const struct measured_queue *then = measured_queue(before, now->name);
        struct track *track = track_of(history, now->name);

        if (now->name.data && !then->name.data)
            then = &none; /* it is new */
        for (int what = 0; what < MEASURE_COUNTS; what++)
            did.counts[what] = now->counts[what] - then->counts[what];
        for (int span = 0; span < MEASURE_SPANS; span++)
            histogram_since(&did.spans[span], &now->spans[span], &then->spans[span]);
        add_did(&total, &did);
        if (track == history->tracks[TRACK_OTHERS])
            add_did(&others, &did);
        else
            put_did(history, track, scale, number, &did);
    }
    put_did(history, history->tracks[TRACK_OTHERS], scale, number, &others);
    put_did(history, history->tracks[TRACK_TOTAL], scale, number, &total);
}

static void put_now(struct history *history, int scale, int64_t number,
                    const struct history_now *now, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct track *tracks[] = {history->tracks[TRACK_TOTAL], track_of(history, now[i].queue)};

        for (int t = 0; t < 2; t++) {
            *place(history, tracks[t], scale, HISTORY_WAITING, number) += (float)now[i].waiting;
            *place(history, tracks[t], scale, HISTORY_RUNNING, number) += (float)now[i].running;
            *place(history, tracks[t], scale, HISTORY_DEAD, number) += (float)now[i].dead;
        }
    }
}

static void clear_step(struct history *history, int scale, int64_t number, bool known)
{
    for (uint32_t i = 0; i < history->tracks_count; i++)
        for (int series = 0; series < HISTORY_SERIES; series++)
            *place(history, history->tracks[i], scale, (enum history_series)series, number) =
                series >= HISTORY_WAIT_P50 || (series <= HISTORY_DEAD && !known) ? NAN : 0;
}

void history_add(struct history *history, int64_t now_us, const struct measured *measured,
                 const struct history_now *now, uint32_t count)
{
    for (int i = 0; i < 2; i++) {
        struct scale *scale = &history->scales[i];
        int64_t current = now_us / scale->step_us;

        if (current <= scale->open)
            continue;
        scale->numbers[scale->open % scale->steps] = -1; /* what was looked at counts once */
        clear_step(history, i, current - 1, now != NULL);
        put_counts(history, i, current - 1, measured);
        *scale->before = *measured;
        if (now)
            put_now(history, i, current - 1, now, count);
        scale->numbers[(current - 1) % scale->steps] = current - 1;
        scale->open = current;
    }
}

void history_look(struct history *history, const struct measured *measured)
{
    for (int i = 0; i < 2; i++) {
        struct scale *scale = &history->scales[i];

        clear_step(history, i, scale->open, false);
        put_counts(history, i, scale->open, measured);
        scale->numbers[scale->open % scale->steps] = scale->open;
    }
}

/* ---- showing ---- */

static void render_number(struct buf *out, enum history_series series, float value)
{
    if (isnan(value))
        buf_text(out, "null");
    else if (series < HISTORY_WAIT_P50)
        buf_int(out, (int64_t)value);
    else
        buf_format(out, "%.3f", (double)value);
}

static void render_track(const struct history *history, const struct track *track, int scale,
                         int64_t from, int64_t points, struct buf *out)
{
    static const char *const words[HISTORY_SERIES] = {
        "waiting", "running", NULL, "completed", "failed", "retried", "enqueued",
        "wait_p50_ms", "wait_p99_ms", "run_p50_ms", "run_p99_ms"};
    const struct scale *ring = &history->scales[scale];

    for (int series = 0; series < HISTORY_SERIES; series++) {
        if (!words[series])
            continue;
        json_write_key(out, words[series]);
        buf_byte(out, '[');
        for (int64_t number = from; number < from + points; number++) {
            json_comma(out);
            if (number < 0 || ring->numbers[number % ring->steps] != number)
                buf_text(out, "null");
            else
                render_number(out, (enum history_series)series,
                              *place(history, track, scale, (enum history_series)series, number));
        }
        buf_byte(out, ']');
    }
}

static bool has_others(const struct history *history, int scale, int64_t from, int64_t points)
{
    const struct scale *ring = &history->scales[scale];

    for (int64_t number = from < 0 ? 0 : from; number < from + points; number++)
        for (int series = 0; series < HISTORY_WAIT_P50; series++)
            if (ring->numbers[number % ring->steps] == number &&
                *place(history, history->tracks[TRACK_OTHERS], scale,
                       (enum history_series)series, number) > 0)
                return true;
    return false;
}

/* The sums of the namespace's queues; times are those of its only queue, as quantiles do not add
 * up. NULL without memory. */
static struct track *sum_tracks(const struct history *history, int scale, struct str within)
{
    struct track *sum = calloc(1, sizeof *sum);
    size_t values = (size_t)HISTORY_SERIES * history->scales[scale].steps;
    uint32_t count = 0;

    if (!sum || !fill((struct history *)history, sum, scale)) {
        track_free(sum);
        return NULL;
    }
    for (uint32_t i = TRACK_FIRST; i < history->tracks_count; i++) {
        const float *from = history->tracks[i]->values[scale];
        size_t sums = (size_t)HISTORY_WAIT_P50 * history->scales[scale].steps;

        if (!queue_name_in(history->tracks[i]->name, within))
            continue;
        for (size_t v = 0; v < values; v++)
            sum->values[scale][v] = v < sums ? sum->values[scale][v] + from[v]
                                    : count  ? NAN
                                             : from[v];
        count++;
    }
    return sum;
}

void history_render(const struct history *history, enum history_window window, bool open,
                    struct str within, struct buf *out)
{
    static const struct {
        int scale;
        int64_t points;
    } windows[WINDOW_COUNT] = {{0, 180}, {0, 720}, {1, 360}, {1, 1440}};
    int scale = windows[window].scale;
    int64_t points = windows[window].points;
    int64_t from = history->scales[scale].open - points + open;
    bool others = !within.data && has_others(history, scale, from, points);
    struct track *sum = within.data ? sum_tracks(history, scale, within) : NULL;
    bool any = false;

    buf_byte(out, '{');
    render_time(out, "from", from * history->scales[scale].step_us);
    render_int(out, "step_ms", history->scales[scale].step_us / 1000);
    render_int(out, "points", points);
    buf_text(out, ",\"total\":{");
    if (!within.data || sum)
        render_track(history, sum ? sum : history->tracks[TRACK_TOTAL], scale, from, points, out);
    track_free(sum);
    buf_text(out, "},\"queues\":[");
    for (uint32_t i = TRACK_FIRST; i < history->tracks_count + others; i++) {
        bool last = i == history->tracks_count; /* the others come last */
        const struct track *track = history->tracks[last ? TRACK_OTHERS : i];

        if (within.data && !last && !queue_name_in(track->name, within))
            continue;
        buf_text(out, any ? ",{" : "{");
        any = true;
        render_text(out, "queue", last ? STR("*") : queue_name_plain(track->name));
        render_track(history, track, scale, from, points, out);
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
}

/* ---- for alerts ---- */

uint32_t history_queues(const struct history *history)
{
    return history->tracks_count - TRACK_OTHERS;
}

struct str history_queue(const struct history *history, uint32_t queue)
{
    return history->tracks[TRACK_OTHERS + queue]->name;
}

/* The step before `number` that has a value, at most `seconds` back; -1 at the end. number: from
 * the open step on. */
static int64_t step_before(const struct scale *ring, int64_t number, int64_t seconds)
{
    int64_t steps = seconds * 1000000 / HISTORY_STEP_US;

    steps = steps < FINE_STEPS ? steps : FINE_STEPS - 1;
    while (--number >= 0 && number >= ring->open - steps)
        if (ring->numbers[number % FINE_STEPS] == number)
            return number;
    return -1;
}

double history_sum(const struct history *history, uint32_t queue, enum history_series series,
                   int64_t seconds)
{
    const struct scale *ring = &history->scales[0];
    const struct track *track = history->tracks[TRACK_OTHERS + queue];
    double sum = 0;

    for (int64_t at = ring->open; (at = step_before(ring, at, seconds)) >= 0;) {
        float value = *place(history, track, 0, series, at);

        sum += isnan(value) ? 0 : (double)value;
    }
    return sum;
}

double history_least(const struct history *history, uint32_t queue, enum history_series series,
                     int64_t seconds)
{
    const struct scale *ring = &history->scales[0];
    const struct track *track = history->tracks[TRACK_OTHERS + queue];
    double least = -1;

    for (int64_t at = ring->open; (at = step_before(ring, at, seconds)) >= 0;) {
        float value = *place(history, track, 0, series, at);

        if (!isnan(value) && (least < 0 || (double)value < least))
            least = (double)value;
    }
    return least;
}
