-- The rules of kind, owner and template compare a version with the versions before it. The first version of an object has
-- no version before it, so `new.number > 1` saves the commit of a new object the search.
DROP TRIGGER version_keeps_kind_and_owner;
DROP TRIGGER version_keeps_template;
CREATE TRIGGER version_keeps_kind_and_owner BEFORE INSERT ON version WHEN new.number > 1 AND EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number) AND (p.kind <> new.kind OR p.ehr <> new.ehr)) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.kind, version.ehr'); END;
CREATE TRIGGER version_keeps_template BEFORE INSERT ON version WHEN new.number > 1 AND new.lifecycle <> '523' AND EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number AND lifecycle <> '523') AND p.template IS NOT new.template) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.template'); END;
