-- Workers may take the tasks of some categories only. So a lane is a queue, a type and a category: a
-- claim goes by the lanes it wants, and tasks of other categories cost it nothing.

CREATE TABLE lanes_before AS SELECT lane, namespace, queue, type FROM lanes;
DROP TABLE lanes;
CREATE TABLE lanes ( -- a queue, a type and a category: the unit of the ready lines and of the counts
    lane INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    category_id BLOB NOT NULL DEFAULT x'00000000000000000000000000000000', -- all zeros: none
    UNIQUE (namespace, queue, type, category_id)
);
INSERT INTO lanes (lane, namespace, queue, type)
    SELECT lane, namespace, queue, type FROM lanes_before;
DROP TABLE lanes_before;

-- Tasks that have a category get lanes of their own; the counts go with them.
CREATE TABLE moves AS SELECT p.task AS task, p.lane AS lane, o.category_id AS category_id
    FROM task_options o JOIN task_specs p ON p.task = o.task WHERE o.category_id IS NOT NULL;
INSERT INTO lanes (namespace, queue, type, category_id)
    SELECT DISTINCT l.namespace, l.queue, l.type, m.category_id
    FROM moves m JOIN lanes l ON l.lane = m.lane;
CREATE TABLE moved AS SELECT m.task AS task, m.lane AS was, t.lane AS lane
    FROM moves m JOIN lanes l ON l.lane = m.lane
    JOIN lanes t ON t.namespace = l.namespace AND t.queue = l.queue AND t.type = l.type
        AND t.category_id = m.category_id;
DROP TABLE moves;
INSERT INTO lane_counts (lane, status, tasks)
    SELECT lane, status, sum(tasks) FROM (
        SELECT m.was AS lane, s.status AS status, -count(*) AS tasks
            FROM moved m JOIN task_states s ON s.task = m.task GROUP BY m.was, s.status
        UNION ALL
        SELECT m.lane, s.status, count(*)
            FROM moved m JOIN task_states s ON s.task = m.task GROUP BY m.lane, s.status
        UNION ALL
        SELECT m.was, 'parked', -count(*) FROM moved m JOIN task_states s ON s.task = m.task
            WHERE s.parked IS NOT NULL GROUP BY m.was
        UNION ALL
        SELECT m.lane, 'parked', count(*) FROM moved m JOIN task_states s ON s.task = m.task
            WHERE s.parked IS NOT NULL GROUP BY m.lane)
    WHERE true GROUP BY lane, status
    ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + excluded.tasks;
UPDATE task_specs SET lane = m.lane FROM moved m WHERE m.task = task_specs.task;
UPDATE task_states SET lane = m.lane FROM moved m WHERE m.task = task_states.task;
DROP TABLE moved;
