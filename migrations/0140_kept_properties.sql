-- All versions of a COMPOSITION have the same archetype node id, and are all persistent or all not (the invariants
-- Archetype_node_id_valid and Persistent_valid of VERSIONED_COMPOSITION). Other kinds, deletions and rows of earlier
-- releases have NULL, which is equal to every value. The next version with data fills the columns.
ALTER TABLE version ADD COLUMN archetype TEXT;       -- COMPOSITION.archetype_node_id
ALTER TABLE version ADD COLUMN persistent INTEGER;   -- 1: the category is 431 (persistent); 0: another one
CREATE TRIGGER version_keeps_properties BEFORE INSERT ON version WHEN new.number > 1 AND new.kind = 1 AND new.lifecycle <> '523' AND EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number AND lifecycle <> '523') AND (p.archetype <> new.archetype OR p.persistent <> new.persistent)) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.archetype, version.persistent'); END;
