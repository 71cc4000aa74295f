-- How far a copy to this store got.
SELECT m.value FROM meta m WHERE m.name = 'copy'
