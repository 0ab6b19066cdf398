-- The access log: caller, operation, time and EHR of each request, in a database of its own. An entry holds no clinical
-- value, is never changed, and is removed by its age alone.
CREATE TABLE access_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time TEXT NOT NULL,         -- UTC with milliseconds
  who TEXT NOT NULL,          -- subject of the token or name of the user; empty: the caller was not authenticated
  issuer TEXT NOT NULL,       -- issuer of the token
  operation TEXT NOT NULL,    -- method and pattern of the path
  object TEXT,                -- uid or name of the object; NULL: the request was refused
  ehr_id TEXT,
  query TEXT,                 -- digest of the query text
  status INTEGER NOT NULL,    -- HTTP status of the answer; 102: written before an administrative operation starts
  request_id TEXT NOT NULL,
  key TEXT,                   -- key of an entry that was written with a change set and moved here; NULL: written here
  refused INTEGER             -- number of unauthenticated requests that the entry counts; NULL: an authenticated one
) STRICT;
CREATE UNIQUE INDEX access_log_key ON access_log (key) WHERE key IS NOT NULL;
CREATE INDEX access_log_by_time ON access_log (time);
CREATE INDEX access_log_by_ehr ON access_log (ehr_id) WHERE ehr_id IS NOT NULL;
CREATE INDEX access_log_refused ON access_log (time) WHERE refused IS NOT NULL;

-- The minimum age in days of entries that may be removed: LOG_RETENTION_DAYS at the time of the last maintenance.
CREATE TABLE retention (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  days INTEGER NOT NULL CHECK (days >= 1)
) STRICT;
INSERT INTO retention VALUES (1, 3650);

CREATE TRIGGER access_log_is_never_changed BEFORE UPDATE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never changed'); END;
CREATE TRIGGER access_log_is_kept BEFORE DELETE ON access_log WHEN OLD.time >= (SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now', '-' || days || ' days') FROM retention) BEGIN SELECT RAISE(ABORT, 'the access log is kept for the days that the table retention says'); END;
