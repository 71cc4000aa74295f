-- A page of a history: an index range, cut at a number of records and at a number of bytes.
SELECT
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, h.payload, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM (
    SELECT h.*,
        row_number() OVER upward AS place,
        -- Sizes are known without fetching what is stored out of line.
        sum(octet_length(h.data) + coalesce(octet_length(h.payload), 0)) OVER upward AS total
    FROM history h
    WHERE h.tenant = $1 AND h.workflow_id = $2 AND h.seq >= $3 AND h.seq <= $4
    WINDOW upward AS (ORDER BY h.seq ROWS UNBOUNDED PRECEDING)
    ORDER BY h.seq
    LIMIT $5
) h
-- One record always fits, however large it is.
WHERE h.place = 1 OR h.total <= $6
ORDER BY h.seq
