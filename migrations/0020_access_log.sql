-- Who did what, when, to which EHR. A line holds no clinical value, is never changed and never removed.
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
  request_id TEXT NOT NULL
) STRICT;
CREATE INDEX access_log_by_time ON access_log (time);
CREATE INDEX access_log_by_ehr ON access_log (ehr_id) WHERE ehr_id IS NOT NULL;
CREATE TRIGGER access_log_is_never_changed BEFORE UPDATE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never changed'); END;
CREATE TRIGGER access_log_is_never_removed BEFORE DELETE ON access_log BEGIN SELECT RAISE(ABORT, 'the access log is never removed'); END;
