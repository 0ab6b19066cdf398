-- Physical deletion removes the shapes and profiles that no document uses any more. Ids of shapes that readers keep stay right,
-- because the newest row of each table is emptied in place instead of removed, so that no id is given twice. Ids that writers keep are
-- right as long as this number is the one they were read with: a commit that knows another one writes nothing, and learns them anew.
INSERT INTO meta VALUES ('shape_generation', 0);

-- Names one storing of a definition: another one for a definition of the same name, version and time that is stored later. What is kept
-- elsewhere (KV, instances) is kept under it.
ALTER TABLE definition ADD COLUMN storing_id TEXT NOT NULL DEFAULT '';
UPDATE definition SET storing_id = lower(hex(randomblob(16)));
