-- Physical deletion removes the layouts and profiles that no document uses any more.
-- Readers may cache ids of layouts: the newest row of each table is emptied in place instead of removed, so SQLite never
-- assigns an id twice. Writers may cache ids of layouts only while this generation is unchanged: a commit with another
-- generation writes nothing, and reads the ids again.
INSERT INTO meta VALUES ('shape_generation', 0);

-- The storing id identifies one act of storing a definition. A later definition of the same name, version and time has
-- another one. It is the key of the definition in caches (KV, memory of instances).
ALTER TABLE definition ADD COLUMN storing_id TEXT NOT NULL DEFAULT '';
UPDATE definition SET storing_id = lower(hex(randomblob(16)));

-- The access log has a database of its own (`migrations-log/`). This table is its queue: an entry of a write is inserted
-- in the transaction of the write, and moved to the other database later. Entries of earlier releases are moved as well.
-- An entry is never changed, and is removed only when `log_moved` shows that it was moved.
DROP TRIGGER access_log_is_never_removed;
DROP INDEX access_log_by_time;
DROP INDEX access_log_by_ehr;
ALTER TABLE access_log ADD COLUMN key TEXT;
INSERT INTO meta VALUES ('log_moved', 0);
CREATE TRIGGER access_log_is_removed_when_moved BEFORE DELETE ON access_log WHEN OLD.id > (SELECT value FROM meta WHERE name = 'log_moved') BEGIN SELECT RAISE(ABORT, 'the entry is not in the access log yet'); END;
