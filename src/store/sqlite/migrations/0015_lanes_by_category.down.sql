-- A lane is a queue and a type again: the first of each stays, and takes what the others hold.

CREATE TABLE moved AS SELECT l.lane AS was, (SELECT min(f.lane) FROM lanes f
        WHERE f.namespace = l.namespace AND f.queue = l.queue AND f.type = l.type) AS lane
    FROM lanes l;
DELETE FROM moved WHERE was = lane;
UPDATE task_specs SET lane = m.lane FROM moved m WHERE m.was = task_specs.lane;
UPDATE task_states SET lane = m.lane FROM moved m WHERE m.was = task_states.lane;
INSERT INTO lane_counts (lane, status, tasks)
    SELECT m.lane, c.status, sum(c.tasks) FROM moved m JOIN lane_counts c ON c.lane = m.was
    WHERE true GROUP BY m.lane, c.status
    ON CONFLICT (lane, status) DO UPDATE SET tasks = tasks + excluded.tasks;
DELETE FROM lane_counts WHERE lane IN (SELECT was FROM moved);
DELETE FROM lanes WHERE lane IN (SELECT was FROM moved);
DROP TABLE moved;

CREATE TABLE lanes_before AS SELECT lane, namespace, queue, type FROM lanes;
DROP TABLE lanes;
CREATE TABLE lanes ( -- a queue and a type: the unit of the ready lines and of the counts
    lane INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL DEFAULT 'default',
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    UNIQUE (namespace, queue, type)
);
INSERT INTO lanes (lane, namespace, queue, type)
    SELECT lane, namespace, queue, type FROM lanes_before;
DROP TABLE lanes_before;
