-- A copy to this store begins.
INSERT INTO meta (name, value) VALUES ('copy', $1::text) ON CONFLICT (name) DO NOTHING
