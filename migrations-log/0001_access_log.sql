-- Who did what, when, to which EHR, in a database of its own. An entry holds no clinical value, is never changed, and is removed by its
-- age alone.
CREATE TABLE access_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time TEXT NOT NULL,         -- UTC with milliseconds
  who TEXT NOT NULL,          -- subject of the token or name of the user; empty: nobody was recognised
  issuer TEXT NOT NULL,       -- who vouches for it
  operation TEXT NOT NULL,    -- method and pattern of the path
  object TEXT,                -- what it was done to: uid or name; absent where it was refused
  ehr_id TEXT,
  query TEXT,                 -- digest of the query text
  status INTEGER NOT NULL,    -- of the answer; 102: an administrative operation that is about to begin
  request_id TEXT NOT NULL,
  key TEXT,                   -- of an entry that was written with a change set and moved here
  refused INTEGER             -- how many requests of callers that were not recognised the entry stands for; NULL: of others
) STRICT;
CREATE UNIQUE INDEX access_log_key ON access_log (key) WHERE key IS NOT NULL;
CREATE INDEX access_log_by_time ON access_log (time);
CREATE INDEX access_log_by_ehr ON access_log (ehr_id) WHERE ehr_id IS NOT NULL;
CREATE INDEX access_log_refused ON access_log (time) WHERE refused IS NOT NULL;

-- Days that entries are kept: the variable LOG_RETENTION_DAYS, as the last maintenance found it.
CREATE TABLE retention (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  days INTEGER NOT NULL CHECK (days >= 1)
) STRICT;
INSERT INTO retention VALUES (1, 3650);

CREATE TRIGGER access_log_is_never_changed BEFORE UPDATE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never changed'); END;
CREATE TRIGGER access_log_is_kept BEFORE DELETE ON access_log WHEN OLD.time >= (SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now', '-' || days || ' days') FROM retention) BEGIN SELECT RAISE(ABORT, 'the access log is kept for the days that the table retention says'); END;
