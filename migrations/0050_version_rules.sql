-- All versions of an object have the same kind, owner and template. Triggers enforce this rule for every program that
-- writes. Their messages have the form of SQLite's own constraint errors ("… constraint failed: table.column"), so one
-- reader understands both. A deletion has no template: a later version is compared with the last version that has data.
CREATE TRIGGER version_keeps_kind_and_owner BEFORE INSERT ON version WHEN EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number) AND (p.kind <> new.kind OR p.ehr <> new.ehr)) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.kind, version.ehr'); END;
CREATE TRIGGER version_keeps_template BEFORE INSERT ON version WHEN new.lifecycle <> '523' AND EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number AND lifecycle <> '523') AND p.template IS NOT new.template) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.template'); END;
-- An EHR has exactly one EHR_STATUS (kind 2), which alone determines the flags of the EHR. Row 0 of `ehr` owns all
-- parties (kind 4), and nothing else.
CREATE TRIGGER version_is_of_one_status BEFORE INSERT ON version WHEN new.kind = 2 AND new.preceding IS NULL AND EXISTS (SELECT 1 FROM version o WHERE o.ehr = new.ehr AND o.kind = 2 AND o.object <> new.object) BEGIN SELECT RAISE(ABORT, 'ONE constraint failed: version.ehr, version.kind'); END;
CREATE TRIGGER version_has_its_owner BEFORE INSERT ON version WHEN (new.ehr = 0) <> (new.kind = 4) BEGIN SELECT RAISE(ABORT, 'OWNER constraint failed: version.ehr, version.kind'); END;
-- Identifies the line of a bulk load that created a contribution, if the uid does not identify the line.
ALTER TABLE contribution ADD COLUMN idempotency TEXT;
