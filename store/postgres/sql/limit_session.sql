-- For the rest of the transaction: a pod that stands still in it loses it soon, and with it the locks on its shards (shards.md section 2).
SELECT set_config('statement_timeout', '2000', true), set_config('idle_in_transaction_session_timeout', '2000', true)
