-- The access log: caller, operation, time and EHR of each request. An entry holds no clinical value, and is never changed
-- or removed. 0060_removal_and_log.sql replaces this table by a database of its own.
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
  request_id TEXT NOT NULL
) STRICT;
CREATE INDEX access_log_by_time ON access_log (time);
CREATE INDEX access_log_by_ehr ON access_log (ehr_id) WHERE ehr_id IS NOT NULL;
CREATE TRIGGER access_log_is_never_changed BEFORE UPDATE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never changed'); END;
CREATE TRIGGER access_log_is_never_removed BEFORE DELETE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never removed'); END;
