-- JSON that a person writes into the view tasks nests as deep as in a request at most, its numbers fit a
-- double and no key stands twice: the command line and workers elsewhere refuse lists that hold anything else.
CREATE TRIGGER tasks_json INSTEAD OF UPDATE ON tasks
BEGIN
    SELECT RAISE(ABORT, 'JSON of a task nests deeper than 64 levels, has a key twice or a number outside of a double')
        FROM (SELECT new.metadata AS given WHERE new.metadata IS NOT old.metadata
            UNION ALL SELECT new.error_details WHERE new.error_details IS NOT old.error_details
            UNION ALL SELECT new.recovery_metadata WHERE new.recovery_metadata IS NOT old.recovery_metadata)
        WHERE json_valid(given) AND ((EXISTS ( -- a path that is long enough, for this one is quick
                SELECT 1 FROM json_tree(given) WHERE type IN ('array', 'object')
                    AND length(fullkey) - length(replace(replace(fullkey, '.', ''), '[', '')) > 63)
            AND EXISTS (
                WITH RECURSIVE node(id, parent) AS MATERIALIZED (
                    SELECT id, parent FROM json_tree(given) WHERE type IN ('array', 'object')),
                level(id, depth) AS (
                    SELECT id, 1 FROM node WHERE parent IS NULL
                    UNION ALL SELECT node.id, depth + 1 FROM level JOIN node ON node.parent = level.id
                        WHERE depth < 65)
                SELECT 1 FROM level WHERE depth > 64))
            OR EXISTS (SELECT 1 FROM json_tree(given)
                WHERE type IN ('integer', 'real') AND abs(CAST(atom AS REAL)) > 1.7976931348623157e308)
            OR EXISTS (SELECT 1 FROM json_tree(given) WHERE typeof(key) = 'text'
                GROUP BY parent, key HAVING count(*) > 1));
END;
