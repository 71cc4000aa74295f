-- A copy to this store got on, unless another one did.
UPDATE meta m SET value = $2::text WHERE m.name = 'copy' AND m.value = $1::text
