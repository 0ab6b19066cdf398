-- Versions of every kind have the template that their documents were checked against, and not COMPOSITIONs only. An object
-- without a template may get one: an EHR_STATUS that the server made has none, nor have rows of earlier releases.
DROP TRIGGER version_keeps_template;
CREATE TRIGGER version_keeps_template BEFORE INSERT ON version WHEN new.number > 1 AND new.lifecycle <> '523' AND EXISTS (SELECT 1 FROM version p WHERE p.object = new.object AND p.number = (SELECT max(number) FROM version WHERE object = new.object AND number < new.number AND lifecycle <> '523') AND p.template IS NOT NULL AND p.template IS NOT new.template) BEGIN SELECT RAISE(ABORT, 'KEPT constraint failed: version.template'); END;
