-- A query that knows which EHRs were queryable in an earlier state reads only the changes since.
CREATE INDEX queryable_before_by_version ON queryable_before (version);
