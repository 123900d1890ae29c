"""What tests of months need: tasks are moved into the past by SQL, ids and all, while no node runs;
and a look at which months there are."""
import datetime

TABLES = ("task_event_rows", "execution_rows")

# Shifts an id, which carries its time in its first 48 bits, by some time.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION public.test_shifted(id uuid, by interval) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex(('x' || lpad(left(hex, 12), 16, '0'))::bit(64)::bigint
            + (extract(epoch FROM by) * 1000)::bigint), 12, '0') || substr(hex, 13))::uuid
    FROM (SELECT replace(id::text, '-', '')) AS t (hex)
$$;
"""

SHIFT_TASKS = """
CREATE TEMPORARY TABLE shifted AS
    SELECT perdura_key(id) AS task FROM unnest('{ids}'::uuid[]) AS id;
UPDATE execution_logs
    SET execution_id = public.test_shifted(execution_id, {by}), logged_at = logged_at + {by}
    WHERE execution_id IN (SELECT id FROM execution_rows WHERE task IN (SELECT task FROM shifted));
UPDATE execution_rows SET id = public.test_shifted(id, {by}), created_at = created_at + {by},
    started_at = started_at + {by}, completed_at = completed_at + {by}, failed_at = failed_at + {by}
    WHERE task IN (SELECT task FROM shifted);
UPDATE task_event_rows SET id = public.test_shifted(id, {by}), created_at = created_at + {by}
    WHERE task IN (SELECT task FROM shifted);
UPDATE task_results SET task_id = public.test_shifted(task_id, {by}), created_at = created_at + {by}
    WHERE perdura_key(task_id) IN (SELECT task FROM shifted);
UPDATE task_specs SET created_at = created_at + {by} WHERE task IN (SELECT task FROM shifted);
UPDATE task_states SET id = public.test_shifted(id, {by}), execution_id = public.test_shifted(execution_id, {by}),
    updated_at = updated_at + {by}, claimed_at = claimed_at + {by}, started_at = started_at + {by},
    completed_at = completed_at + {by} WHERE task IN (SELECT task FROM shifted);
SELECT s.id FROM unnest('{ids}'::uuid[]) WITH ORDINALITY AS t (id, nth)
    JOIN task_states s ON s.task = perdura_key(t.id) ORDER BY t.nth;
"""

SHIFT_END = """
UPDATE execution_rows SET id = public.test_shifted(id, {by}), created_at = created_at + {by},
    started_at = started_at + {by}, completed_at = completed_at + {by}
    WHERE task = perdura_key('{id}') AND end_seq IS NOT NULL;
UPDATE task_states SET execution_id = public.test_shifted(execution_id, {by}),
    completed_at = completed_at + {by} WHERE task = perdura_key('{id}');
"""


def month(back):
    """The first day of the month so many months back (or, below 0, ahead), in UTC."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    count = today.year * 12 + today.month - 1 - back
    return datetime.date(count // 12, count % 12 + 1, 1)


def name(table, back):
    return f"{table}_{month(back).strftime('%Y_%m')}"


def there(cluster):
    """The names of all partitions that are months."""
    return {row[0] for row in cluster.sql(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE "
        "i.inhparent IN ('task_event_rows'::regclass, 'execution_rows'::regclass) "
        "AND c.relname ~ '[0-9]$'")}


def by(back):
    """SQL: from now to the eleventh of a month."""
    return f"(timestamptz '{month(back)} 00:00Z' + interval '10 days' - now())"


def make(cluster, *backs):
    cluster.sql("; ".join(f"SELECT perdura_partition('{table}', date '{month(back)}')"
                          for back in backs for table in TABLES))


def shift(cluster, back, ids):
    """Moves tasks of now to a month; their new ids, in the same order. No node may run."""
    cluster.sql(FUNCTIONS)
    text = SHIFT_TASKS.format(ids="{" + ",".join(ids) + "}", by=by(back))
    return [row[0] for row in cluster.sql(text)]


def shift_end(cluster, task_id, back, to_back):
    """The run that completed a task moves from one month to another."""
    cluster.sql(SHIFT_END.format(id=task_id, by=f"({by(to_back)} - {by(back)})"))


def rows(cluster, table, where="true"):
    return int(cluster.sql(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])
