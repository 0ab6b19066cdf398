-- The schema of the repository (dialect of D1 and SQLite). As D1 counts written rows, index entries included, a commit
-- of a new composition writes 7 rows, and a commit of a new version of a composition 8.

-- EHRs in creation order. Row 0 is no EHR: it owns the demographic parties.
CREATE TABLE ehr (
  id INTEGER PRIMARY KEY,
  ehr_id TEXT NOT NULL UNIQUE,
  system_id TEXT NOT NULL,
  time_created TEXT NOT NULL,
  subject_id TEXT,
  subject_namespace TEXT,
  is_queryable INTEGER NOT NULL,
  is_modifiable INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ehr_subject ON ehr (subject_id, subject_namespace) WHERE subject_id IS NOT NULL;
INSERT INTO ehr VALUES (0, '', '', '', NULL, NULL, 0, 1);

-- Layouts, shared by all documents with the same structure. A layout never contains a text that a person typed. Layouts
-- are never removed, so ids in caches stay valid (0060_removal_and_log.sql relaxes this rule).
CREATE TABLE shape (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  skeleton TEXT NOT NULL
) STRICT;

-- Profiles: the kind and the archetypes of a document, by which queries prune. They follow from its layouts. Never
-- removed either.
CREATE TABLE profile (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,      -- kind of object: 1 composition, 2 EHR_STATUS, 3 directory, 4 party
  archetypes TEXT NOT NULL,   -- ascending archetype ids as a JSON array; JSON null: the layouts do not determine them
  UNIQUE (archetypes, kind)
) STRICT;

-- Contributions.
CREATE TABLE contribution (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  ehr INTEGER NOT NULL,
  shapes TEXT,                -- ids of layouts as a JSON array; NULL: the document is canonical JSON
  document TEXT NOT NULL      -- packed CONTRIBUTION
) STRICT;

-- Versions of objects. The id is the commit order; the version uid is object || '::' || system || '::' || number.
CREATE TABLE version (
  id INTEGER PRIMARY KEY,
  ehr INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  object TEXT NOT NULL,
  number INTEGER NOT NULL,
  system TEXT NOT NULL,
  preceding TEXT,             -- uid of the preceding version
  successor INTEGER,          -- id of the next version; NULL: this version is the latest
  contribution INTEGER NOT NULL,
  time_committed TEXT NOT NULL,
  lifecycle TEXT NOT NULL,    -- code of the openEHR terminology; 523: deleted
  template TEXT,
  profile INTEGER NOT NULL REFERENCES profile (id),
  shapes TEXT NOT NULL,       -- ids of layouts as a JSON array
  digest TEXT NOT NULL,       -- SHA-256 of the document
  chunks INTEGER NOT NULL,    -- number of rows in `chunk` with the rest of the document
  document TEXT NOT NULL,     -- packed ORIGINAL_VERSION
  UNIQUE (object, number)
) STRICT;
CREATE INDEX version_by_ehr ON version (ehr, kind, profile);
CREATE INDEX version_by_profile ON version (profile);
CREATE UNIQUE INDEX version_directory ON version (ehr) WHERE kind = 3 AND successor IS NULL AND lifecycle <> '523';

-- Templates (1), stored queries (2) and guides (3).
CREATE TABLE definition (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  format TEXT NOT NULL,
  created TEXT NOT NULL,
  summary TEXT NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (kind, name, version)
) STRICT;

-- Chunks: the rest of a value behind its first megabyte. Owners: 's/' layout digest, 'c/' contribution uid,
-- 'v/' version uid, 'd/' kind / name / version of a definition.
CREATE TABLE chunk (
  owner TEXT NOT NULL,
  part INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 0);
