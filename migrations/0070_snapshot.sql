-- The changes after a snapshot that the later pages of its result must take into account.

-- Physical deletions in their order. `ehr` is the digest of an ehr_id; NULL: everything was removed. `first_version` is
-- the id of the oldest version that was removed.
CREATE TABLE removal (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ehr TEXT,
  first_version INTEGER NOT NULL
) STRICT;
CREATE INDEX removal_by_ehr ON removal (ehr);

-- The flag is_queryable of an EHR before a version of its EHR_STATUS changed the flag.
CREATE TABLE queryable_before (
  ehr INTEGER NOT NULL,
  version INTEGER NOT NULL,
  is_queryable INTEGER NOT NULL,
  PRIMARY KEY (ehr, version)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER ehr_keeps_queryable BEFORE UPDATE OF is_queryable ON ehr WHEN old.is_queryable <> new.is_queryable BEGIN INSERT OR IGNORE INTO queryable_before SELECT old.id, coalesce(max(id), 0), old.is_queryable FROM version WHERE ehr = old.id AND kind = 2; END;
CREATE TRIGGER ehr_leaves_nothing AFTER DELETE ON ehr BEGIN DELETE FROM queryable_before WHERE ehr = old.id; END;

-- The id of the newest version that was ever removed. New versions get greater ids, so no id is assigned twice.
INSERT INTO meta VALUES ('last_version', 0);
