-- Segments: copies of versions as columns, in a blob store. Nothing is lost with a segment: its versions are read from their rows.

-- The live segments. `first` to `last` are ids of versions; `state` is the newest version when the rows were read; `files` is the number of
-- blobs beside the head, whose keys begin with `blob`, and `bytes` their size with the head's.
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

-- Blobs that no segment names: they are deleted from the store from this time on (milliseconds since 1970). A segment that is being written
-- stands here too, until it is named.
CREATE TABLE segment_garbage (
  blob TEXT PRIMARY KEY,
  files INTEGER NOT NULL,
  after INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A segment that holds a removed version is removed with it.
CREATE TRIGGER version_leaves_segments AFTER DELETE ON version BEGIN DELETE FROM segment WHERE last >= old.id AND first <= old.id; END;
CREATE TRIGGER segment_leaves_garbage AFTER DELETE ON segment BEGIN INSERT OR REPLACE INTO segment_garbage VALUES (old.blob, old.files, 0); END;

-- What a query must know of a segment: versions that were superseded, and EHRs that are not queryable.
CREATE INDEX version_by_successor ON version (successor) WHERE successor IS NOT NULL;
CREATE INDEX ehr_unqueryable ON ehr (id) WHERE NOT is_queryable;
