-- Segments of EHRs: copies of the rows of `ehr` as columns, in the blob store. A query of EHRs alone reads the copies
-- instead of the rows. As with `segment`, the loss of a copy loses no data. `first` to `last` are ids of EHRs.
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

-- The bytes of memory that writing a segment needed; compaction chooses the segments to merge by them. The default of
-- 1 GiB excludes segments of earlier releases from merging.
ALTER TABLE segment ADD COLUMN memory INTEGER NOT NULL DEFAULT 1073741824;

-- A segment that holds a removed EHR is removed with it.
CREATE TRIGGER ehr_leaves_segments AFTER DELETE ON ehr BEGIN DELETE FROM ehr_segment WHERE last >= old.id AND first <= old.id; END;
CREATE TRIGGER ehr_segment_leaves_garbage AFTER DELETE ON ehr_segment BEGIN INSERT OR REPLACE INTO segment_garbage VALUES (old.blob, old.files, 0); END;
