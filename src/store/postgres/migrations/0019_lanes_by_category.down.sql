-- A lane is a queue and a type again: the first of each stays, and takes what the others hold.

CREATE TABLE moved AS
    SELECT l.lane AS was, f.lane
    FROM lanes l JOIN (SELECT namespace, queue, type, min(lane) AS lane FROM lanes
        GROUP BY namespace, queue, type) f USING (namespace, queue, type)
    WHERE l.lane <> f.lane;
UPDATE ready_rows r SET lane = m.lane FROM moved m WHERE m.was = r.lane;
UPDATE task_specs p SET lane = m.lane FROM moved m WHERE m.was = p.lane;
UPDATE task_states s SET lane = m.lane FROM moved m WHERE m.was = s.lane;
UPDATE lane_counts c SET lane = m.lane FROM moved m WHERE m.was = c.lane;
DELETE FROM lanes l USING moved m WHERE m.was = l.lane;
DROP TABLE moved;

ALTER TABLE lanes DROP CONSTRAINT lanes_namespace_queue_type_category_id_key;
ALTER TABLE lanes DROP COLUMN category_id;
ALTER TABLE lanes ADD UNIQUE (namespace, queue, type);
