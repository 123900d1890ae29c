-- Workers may take the tasks of some categories only. So a lane is a queue, a type and a category: a
-- claim goes by the lanes it wants, and tasks of other categories cost it nothing.

ALTER TABLE lanes ADD COLUMN category_id uuid NOT NULL
    DEFAULT '00000000-0000-0000-0000-000000000000'; -- all zeros: none
ALTER TABLE lanes DROP CONSTRAINT lanes_namespace_queue_type_key;
ALTER TABLE lanes ADD UNIQUE (namespace, queue, type, category_id);

-- Tasks that have a category get lanes of their own; the counts go with them.
INSERT INTO lanes (namespace, queue, type, category_id)
    SELECT DISTINCT l.namespace, l.queue, l.type, p.category_id
    FROM task_specs p JOIN lanes l ON l.lane = p.lane WHERE p.category_id IS NOT NULL;
CREATE TABLE moved AS
    SELECT p.task, p.lane AS was, t.lane
    FROM task_specs p JOIN lanes l ON l.lane = p.lane
    JOIN lanes t ON t.namespace = l.namespace AND t.queue = l.queue AND t.type = l.type
        AND t.category_id = p.category_id
    WHERE p.category_id IS NOT NULL;
INSERT INTO lane_counts (lane, status, tasks)
    SELECT v.lane, c.status, sum(v.by)
    FROM moved m JOIN task_states s ON s.task = m.task
    CROSS JOIN LATERAL (VALUES (m.was, -1), (m.lane, 1)) AS v (lane, by)
    CROSS JOIN LATERAL (SELECT s.status::text UNION ALL SELECT 'parked' WHERE s.parked
        UNION ALL SELECT 'held' WHERE s.held) AS c (status)
    GROUP BY v.lane, c.status;
UPDATE ready_rows r SET lane = m.lane FROM moved m WHERE m.task = r.task AND m.was = r.lane;
UPDATE task_specs p SET lane = m.lane FROM moved m WHERE m.task = p.task;
UPDATE task_states s SET lane = m.lane FROM moved m WHERE m.task = s.task;
DROP TABLE moved;
