-- Lists of definitions tell the bytes of the bodies. Bodies fill pages of their own, and so do the columns behind them: the index holds all that
-- a list shows, so that it reads neither.

-- Bytes of the whole body; NULL: an earlier release wrote the row, and the bytes are counted where they are needed.
ALTER TABLE definition ADD COLUMN bytes INTEGER;
UPDATE definition SET bytes = octet_length(body) + coalesce((SELECT sum(octet_length(c.body)) FROM chunk c WHERE c.owner = 'd/' || definition.kind || '/' || definition.name || '/' || definition.version), 0);
CREATE INDEX definition_list ON definition (kind, name, version, format, created, summary, storing_id, bytes);
