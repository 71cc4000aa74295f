-- Which of some dead letters pass what is looked at in the rows.
SELECT e.number
FROM unnest($1::bigint[]) AS k (number)
CROSS JOIN LATERAL (
    SELECT * FROM events e
    WHERE e.number = k.number
        AND ($2::text = '' OR e.dead_reason = $2) AND ($3::text = '' OR e.type = $3) AND ($4::text = '' OR e.source = $4)
        AND ($5::timestamptz IS NULL OR e.received_at >= $5) AND ($6::timestamptz IS NULL OR e.received_at <= $6)
        AND ($7::timestamptz IS NULL OR e.dead_at >= $7) AND ($8::timestamptz IS NULL OR e.dead_at <= $8)
    OFFSET 0
) e
