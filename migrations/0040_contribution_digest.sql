-- What tells that the document of a change set is still what was written, as `version.digest` does; NULL: an earlier release wrote it.
ALTER TABLE contribution ADD COLUMN digest TEXT;
