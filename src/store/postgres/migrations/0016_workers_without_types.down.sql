-- Every live worker of the queue says what it runs, and none runs this type.
CREATE OR REPLACE FUNCTION perdura_handler_gone(in_queue text, of_type text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(bool_and(w.types IS NOT NULL AND jsonb_array_length(w.types::jsonb) > 0
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements_text(w.types::jsonb) t (pattern)
            WHERE t.pattern = of_type OR (right(t.pattern, 1) = '*'
                AND starts_with(of_type, left(t.pattern, -1))))), false)
    FROM workers w
    WHERE w.lease_until >= now() AND w.queues::jsonb ? in_queue
$$;
