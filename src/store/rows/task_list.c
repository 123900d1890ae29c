#include "store/rows/task_list.h"

#include "store/rows/rows.h"

/* How many of `rows` rows, `matching` of which fit, must be read to find `wanted`. */
static double rows_until(int64_t rows, int64_t matching, double wanted)
{
    double looks = (double)rows * wanted / (double)(matching > 0 ? matching : 1);

    return looks < (double)rows ? looks : (double)rows;
}

enum list_way list_way_of_counts(const struct list_counts *counts, enum status status,
                                 uint32_t limit, bool settled_last)
{
    double costs[WAYS_BY_COUNTS];
    double wanted = limit;
    enum list_way best = WAY_WALK;

    for (int way = 0; way < WAYS_BY_COUNTS; way++)
        costs[way] = 1e18; /* not possible */
    costs[WAY_WALK] = rows_until(counts->all, counts->matching, wanted);
    costs[WAY_LANES] = rows_until(counts->in_lanes, counts->matching,
                                  wanted * (double)counts->lanes) + (double)counts->lanes;
    switch (status) {
    case STATUS_NONE:
        break;
    case STATUS_PENDING: /* fetches and sorts every row, so it counts twice */
        costs[WAY_PENDING] = 2 * (double)counts->in_status;
        break;
    case STATUS_DELAYED:
        costs[WAY_DELAYED] = 2 * (double)counts->in_status;
        break;
    case STATUS_CLAIMED:
    case STATUS_RUNNING:
        costs[WAY_HELD] = (double)counts->in_status;
        break;
    default:
        costs[WAY_SETTLED] = rows_until(counts->in_status, counts->matching, wanted);
        if (settled_last) {
            costs[WAY_WALK] += (double)(counts->all - counts->in_status);
            costs[WAY_LANES] += (double)(counts->in_lanes - counts->matching);
        }
    }
    for (int way = 1; way < WAYS_BY_COUNTS; way++)
        if (costs[way] < costs[best])
            best = (enum list_way)way;
    return best;
}

int list_narrow(struct store_reader *reader, const struct task_filter *filter, int64_t margin_us,
                list_key_at *key_at, struct list_keys *keys, struct err *err)
{
    int64_t cursor = filter->before_key;
    int64_t end = KEY_END;

    keys->first = 1;
    keys->end = cursor > 0 && !filter->oldest_first ? cursor : KEY_END;
    if (filter->created_after_us)
        TRY(key_at(reader, filter->created_after_us - margin_us, &keys->first, err));
    if (filter->created_before_us && filter->created_before_us < INT64_MAX - margin_us)
        TRY(key_at(reader, filter->created_before_us + margin_us, &end, err));
    if (end < keys->end)
        keys->end = end;
    if (filter->oldest_first && cursor >= keys->first)
        keys->first = cursor + 1;
    return 0;
}
