-- ITEM_TAGs on objects and versions. Tags are not part of their target, and are not versioned.
CREATE TABLE item_tag (
  target TEXT NOT NULL,       -- object id or version uid
  key TEXT NOT NULL,
  path TEXT NOT NULL,         -- target_path of the tag; empty: the whole target
  value TEXT,
  ehr INTEGER NOT NULL,
  PRIMARY KEY (target, key, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_tag_by_ehr ON item_tag (ehr);
