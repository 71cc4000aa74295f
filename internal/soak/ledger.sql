-- What the plane promised, beside what it kept.
CREATE SCHEMA soak;
CREATE TABLE soak.accepted (tenant text COLLATE "C", source text COLLATE "C", id text COLLATE "C", door text, PRIMARY KEY (tenant, source, id));
CREATE TABLE soak.registered (tenant text COLLATE "C", run_id text COLLATE "C", effect text COLLATE "C", answered boolean, PRIMARY KEY (tenant, run_id, effect));
CREATE TABLE soak.started (tenant text COLLATE "C", run_id text COLLATE "C", workflow_id text COLLATE "C", ended boolean, PRIMARY KEY (tenant, run_id));
CREATE TABLE soak.pairs (tenant text COLLATE "C", run_id text COLLATE "C", effect text COLLATE "C", source text COLLATE "C", id text COLLATE "C");
CREATE TABLE soak.completes (tenant text COLLATE "C", workflow_id text COLLATE "C", PRIMARY KEY (tenant, workflow_id));
