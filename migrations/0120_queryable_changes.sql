-- For queries that know which EHRs were queryable in an earlier state: they read only the later changes.
CREATE INDEX queryable_before_by_version ON queryable_before (version);
