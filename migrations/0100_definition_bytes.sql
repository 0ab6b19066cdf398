-- Lists of definitions show the size of each body. SQLite stores a long body, and the columns behind it, on overflow
-- pages. The index covers all columns of a list, so that a list reads no overflow page.

-- The bytes of the whole body. NULL: an earlier release wrote the row, and the bytes are counted on demand.
ALTER TABLE definition ADD COLUMN bytes INTEGER;
UPDATE definition SET bytes = octet_length(body) + coalesce((SELECT sum(octet_length(c.body)) FROM chunk c WHERE c.owner = 'd/' || definition.kind || '/' || definition.name || '/' || definition.version), 0);
CREATE INDEX definition_list ON definition (kind, name, version, format, created, summary, storing_id, bytes);
