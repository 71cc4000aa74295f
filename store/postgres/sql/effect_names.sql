-- The effect keys of a run.
SELECT DISTINCT h.effect
FROM history h
-- The predicate of the index is spelt out: the planner cannot know that no key is empty.
WHERE h.tenant COLLATE "POSIX" = $1 AND h.run_id = $2 AND h.effect <> ''
ORDER BY h.effect
LIMIT $3
