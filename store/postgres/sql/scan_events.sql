-- The walk over all events: their numbers and sizes, by number. Sizes are known without fetching what is stored out of line.
SELECT '', '', '', e.number, coalesce(octet_length(e.payload), 0)::bigint, false
FROM events e
WHERE e.number > $1::bigint
ORDER BY e.number
LIMIT $2::bigint
