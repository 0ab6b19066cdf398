-- Segments: copies of versions as columns, in a blob store. The loss of a segment loses no data: its versions are then
-- read from their rows.

-- The live segments. `first` to `last` are ids of versions. `state` is the id of the newest version when the rows were
-- read. `files` is the number of blobs beside the head; their keys start with `blob`. `bytes` is the size of all blobs.
CREATE TABLE segment (
  id INTEGER PRIMARY KEY,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL UNIQUE,
  state INTEGER NOT NULL,
  versions INTEGER NOT NULL,
  blob TEXT NOT NULL UNIQUE,
  files INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;

-- Blobs that no live segment uses. Maintenance deletes them from the store after the time `after` (milliseconds since
-- 1970). The blobs of a segment that is being written are here, too, until the row of the segment exists.
CREATE TABLE segment_garbage (
  blob TEXT PRIMARY KEY,
  files INTEGER NOT NULL,
  after INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A segment that holds a removed version is removed with it.
CREATE TRIGGER version_leaves_segments AFTER DELETE ON version BEGIN DELETE FROM segment WHERE last >= old.id AND first <= old.id; END;
CREATE TRIGGER segment_leaves_garbage AFTER DELETE ON segment BEGIN INSERT OR REPLACE INTO segment_garbage VALUES (old.blob, old.files, 0); END;

-- The rows that a query of a segment must leave out: superseded versions, and versions of EHRs that are not queryable.
CREATE INDEX version_by_successor ON version (successor) WHERE successor IS NOT NULL;
CREATE INDEX ehr_unqueryable ON ehr (id) WHERE NOT is_queryable;
