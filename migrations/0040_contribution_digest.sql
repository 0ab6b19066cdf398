-- The SHA-256 of the document of a contribution, like `version.digest`. NULL: an earlier release wrote the row.
ALTER TABLE contribution ADD COLUMN digest TEXT;
