-- I3: a wait records at most one answer.
SELECT format('%s/%s %s', tenant, run_id, effect)
FROM history
WHERE kind = 'wait.answered'
GROUP BY tenant, run_id, effect
HAVING count(*) > 1
