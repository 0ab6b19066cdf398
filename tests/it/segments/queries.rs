//! The queries of the tests of segments.

/// Queries of all strategies that may read segments, and some that may not.
pub const QUERIES: [&str; 35] = [
    "SELECT count(*) AS n FROM COMPOSITION c",
    "SELECT c/uid/value AS uid FROM COMPOSITION c",
    "SELECT c FROM COMPOSITION c LIMIT 3",
    "SELECT e/ehr_id/value AS ehr, c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c",
    "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS m, o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/value AS t FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    "SELECT max(o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude) AS m, count(*) AS n FROM OBSERVATION o",
    "SELECT c/uid/value AS uid, o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/value AS t FROM COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.pulse.v2] ORDER BY t DESC, uid LIMIT 5",
    "SELECT DISTINCT o/archetype_node_id AS id FROM OBSERVATION o",
    "SELECT v/uid/value AS uid, v/lifecycle_state/defining_code/code_string AS s FROM VERSION v[ALL_VERSIONS]",
    "SELECT count(*) AS n FROM VERSION v[ALL_VERSIONS] CONTAINS COMPOSITION c",
    "SELECT c/uid/value AS uid FROM COMPOSITION c WHERE EXISTS c/content/data/events LIMIT 4 OFFSET 2",
    "SELECT s/is_queryable AS q FROM EHR_STATUS s",
    "SELECT e/ehr_id/value AS ehr, count(c) AS n FROM EHR e CONTAINS COMPOSITION c",
    "SELECT e/ehr_id/value AS ehr FROM EHR e",
    "SELECT count(*) AS n, max(e/time_created/value) AS t FROM EHR e",
    "SELECT e/ehr_id/value AS ehr, e/system_id/value AS s FROM EHR e ORDER BY ehr DESC LIMIT 2",
    JOINED[0],
    JOINED[1],
    JOINED[2],
    JOINED[3],
    JOINED[4],
    JOINED[5],
    JOINED[6],
    JOINED[7],
    JOINED[8],
    JOINED[9],
    JOINED[10],
    JOINED[11],
    "SELECT count(*) AS n FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude > 120.6",
    "SELECT count(*) AS n FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude <= 120.5",
    "SELECT o/data[at0001]/events[at0006]/time/value AS t FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE o/data[at0001]/events[at0006]/time/value < '2000-01-01'",
    "SELECT c/name/value AS name, count(*) AS n, max(o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude) AS m, min(c/context/start_time/value) AS t FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE c/context/start_time/value > '2000-01-01'",
    WALKED[0],
    WALKED[1],
    WALKED[2],
];

/// Queries that are evaluated document by document.
pub const WALKED: [&str; 3] = [
    "SELECT count(*) AS n, max(c/uid/value) AS uid FROM COMPOSITION c CONTAINS (OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] OR OBSERVATION p[openEHR-EHR-OBSERVATION.pulse.v2])",
    "SELECT count(*) AS n, max(c/uid/value) AS uid FROM COMPOSITION c NOT CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    "SELECT count(*) AS n, max(x/value/magnitude) AS m FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] CONTAINS ELEMENT x[at0004]",
];

/// Queries that join documents of an EHR, or ask for EHRs without some.
pub const JOINED: [&str; 12] = [
    "SELECT e/ehr_id/value AS ehr, a/uid/value AS a, p/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude AS p FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) AND COMPOSITION b CONTAINS OBSERVATION p)",
    "SELECT e/ehr_id/value AS ehr, count(a) AS n, max(b/context/start_time/value) AS t FROM EHR e CONTAINS (COMPOSITION a AND COMPOSITION b)",
    "SELECT e/ehr_id/value AS ehr FROM EHR e NOT CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    "SELECT e/ehr_status/uid/value AS status, c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c ORDER BY uid DESC LIMIT 4",
    "SELECT e AS ehr FROM EHR e",
    "SELECT DISTINCT a/name/value AS name, s/is_queryable AS q FROM EHR e CONTAINS (COMPOSITION a AND EHR_STATUS s)",
    "SELECT a AS a FROM EHR e CONTAINS (COMPOSITION a OR FOLDER f) LIMIT 3",
    "SELECT DISTINCT e/ehr_id/value AS ehr FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) AND COMPOSITION b CONTAINS OBSERVATION p[openEHR-EHR-OBSERVATION.pulse.v2]) WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 100 AND b/context/start_time/value > '2000-01-01T00:00:00Z' LIMIT 3",
    "SELECT count(DISTINCT e/ehr_id/value) AS n, max(b/uid/value) AS m FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) AND COMPOSITION b) WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 100",
    "SELECT e/ehr_id/value AS ehr, o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS m, s/is_queryable AS q FROM EHR e CONTAINS (EHR_STATUS s AND OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude < 130 AND s/is_modifiable = true",
    "SELECT f/name/value AS folder, c/uid/value AS uid FROM EHR e CONTAINS FOLDER f CONTAINS COMPOSITION c",
    "SELECT e/ehr_id/value AS ehr, a AS a, b AS b FROM EHR e CONTAINS ((COMPOSITION a CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) AND COMPOSITION b) WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/value = 'remark'",
];
