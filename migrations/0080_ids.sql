-- An id identifies one thing: no object has the id of an EHR, and no EHR has the id of an object. Triggers enforce this
-- rule for every program that writes. Rows of earlier releases stay as they are.
CREATE TRIGGER version_takes_no_id_of_an_ehr BEFORE INSERT ON version WHEN new.preceding IS NULL AND EXISTS (SELECT 1 FROM ehr WHERE ehr_id = new.object) BEGIN SELECT RAISE(ABORT, 'ID constraint failed: version.object'); END;
CREATE TRIGGER ehr_takes_no_id_of_an_object BEFORE INSERT ON ehr WHEN EXISTS (SELECT 1 FROM version WHERE object = new.ehr_id) BEGIN SELECT RAISE(ABORT, 'ID constraint failed: ehr.ehr_id'); END;
