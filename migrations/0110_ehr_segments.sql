-- Segments of EHRs: copies of the rows of `ehr` as columns, in the blob store, so that queries of EHRs alone do not read their rows. As with
-- `segment`, nothing is lost with one. `first` to `last` are ids of EHRs.
CREATE TABLE ehr_segment (
  id INTEGER PRIMARY KEY,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL UNIQUE,
  ehrs INTEGER NOT NULL,
  blob TEXT NOT NULL UNIQUE,
  files INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  memory INTEGER NOT NULL
) STRICT;

-- Bytes of memory that a segment took while it was written: it decides which segments are merged. Those of before are merged no more.
ALTER TABLE segment ADD COLUMN memory INTEGER NOT NULL DEFAULT 1073741824;

-- A segment that holds a removed EHR is removed with it.
CREATE TRIGGER ehr_leaves_segments AFTER DELETE ON ehr BEGIN DELETE FROM ehr_segment WHERE last >= old.id AND first <= old.id; END;
CREATE TRIGGER ehr_segment_leaves_garbage AFTER DELETE ON ehr_segment BEGIN INSERT OR REPLACE INTO segment_garbage VALUES (old.blob, old.files, 0); END;
