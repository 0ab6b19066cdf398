-- Physical deletion removes the shapes and profiles that no document uses any more. Ids of shapes that readers keep stay right,
-- because the newest row of each table is emptied in place instead of removed, so that no id is given twice. Ids that writers keep are
-- right as long as this number is the one they were read with: a commit that knows another one writes nothing, and learns them anew.
INSERT INTO meta VALUES ('shape_generation', 0);

-- Names one storing of a definition: another one for a definition of the same name, version and time that is stored later. What is kept
-- elsewhere (KV, instances) is kept under it.
ALTER TABLE definition ADD COLUMN storing_id TEXT NOT NULL DEFAULT '';
UPDATE definition SET storing_id = lower(hex(randomblob(16)));

-- The access log has a database of its own (`migrations-log/`). Here the entries of change sets wait, written with them, until they are
-- moved there; so do those of earlier releases. None is changed, and none removed before it is said to be moved.
DROP TRIGGER access_log_is_never_removed;
DROP INDEX access_log_by_time;
DROP INDEX access_log_by_ehr;
ALTER TABLE access_log ADD COLUMN key TEXT;
INSERT INTO meta VALUES ('log_moved', 0);
CREATE TRIGGER access_log_is_removed_when_moved BEFORE DELETE ON access_log WHEN OLD.id > (SELECT value FROM meta WHERE name = 'log_moved') BEGIN SELECT RAISE(ABORT, 'the entry is not in the access log yet'); END;
