-- A copy to this store is done.
DELETE FROM meta m WHERE m.name = 'copy' AND m.value = $1::text
