INSERT OR REPLACE INTO ehr VALUES (0, '', '', '', NULL, NULL, 0, 1);
INSERT OR REPLACE INTO ehr VALUES (1, '6ba7b810-9dad-41d1-80b4-00c04fd430c8', 'test.example', '2026-11-30T00:53:20.004000+00:00', 'patient-7', 'clinic', 1, 1);
INSERT OR REPLACE INTO shape VALUES (1, '32beed228ec548898992147f8301b3b2', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"EHR_STATUS"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}}}');
INSERT OR REPLACE INTO shape VALUES (10, '2cd5d5cefb34d8575a53784315c15ade', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}}}');
INSERT OR REPLACE INTO shape VALUES (11, '9d99049b2d5cff9159d61da2880bde4c', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"FOLDER"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}}}');
INSERT OR REPLACE INTO shape VALUES (12, 'a21fa9888de31a9dcc7bf29d9936250c', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"folders":[{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}}}]}');
INSERT OR REPLACE INTO shape VALUES (13, '503f8ffdea50ff6f956d12919d22012b', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"PERSON"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}}}');
INSERT OR REPLACE INTO shape VALUES (14, 'deb109f5a100feb8c18e2a4c358aeb62', '{"_type":"PERSON","archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.person.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-DEMOGRAPHIC-PERSON.person.v1"},"rm_version":"1.1.0"},"identities":[{"_type":"PARTY_IDENTITY","archetype_node_id":"at0001","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"details":{"_type":"ITEM_TREE","archetype_node_id":"at0002","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"items":[{"_type":"ELEMENT","archetype_node_id":"at0003","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"value":{"_type":"DV_TEXT","value":{"_slot":"text"}}}]}}]}');
INSERT OR REPLACE INTO shape VALUES (2, '56e231f6cca2c3a8aee57bc8dfc2c98f', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"data":{"_parts":1},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532","preferred_term":{"_slot":"text"}}}}');
INSERT OR REPLACE INTO shape VALUES (3, '948d0c1db672c84196cb57259b5c13c9', '{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"subject":{"_type":"PARTY_SELF","external_ref":{"_type":"PARTY_REF","id":{"_type":"GENERIC_ID","value":{"_slot":"text"},"scheme":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"PERSON"}},"is_queryable":{"_slot":"boolean"},"is_modifiable":{"_slot":"boolean"}}');
INSERT OR REPLACE INTO shape VALUES (4, '0134d3a3f87948fd24004104fafc3e71', '{"_type":"OBSERVATION","archetype_node_id":"openEHR-EHR-OBSERVATION.body_weight.v2","name":{"_type":"DV_TEXT","value":"Body weight"},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-OBSERVATION.body_weight.v2"},"rm_version":"1.1.0"},"language":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"},"code_string":"en"},"encoding":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"IANA_character-sets"},"code_string":"UTF-8"},"subject":{"_type":"PARTY_SELF"},"data":{"_type":"HISTORY","archetype_node_id":"at0002","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"origin":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"events":[{"_type":"POINT_EVENT","archetype_node_id":"at0003","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"time":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"data":{"_type":"ITEM_TREE","archetype_node_id":"at0001","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"items":[{"_type":"ELEMENT","archetype_node_id":"at0004","name":{"_type":"DV_TEXT","value":"Weight"},"value":{"_type":"DV_QUANTITY","magnitude":{"_slot":"number"},"units":"kg"}}]}}]}}');
INSERT OR REPLACE INTO shape VALUES (5, 'b6911f1f822a7f011ddc63733ff79efb', '{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1","name":{"_type":"DV_TEXT","value":"Encounter"},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-COMPOSITION.encounter.v1"},"template_id":{"_type":"TEMPLATE_ID","value":"weight.en.v2"},"rm_version":"1.1.0"},"language":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"},"code_string":"en"},"territory":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_3166-1"},"code_string":"SE"},"category":{"_type":"DV_CODED_TEXT","value":"event","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"433"}},"composer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"context":{"_type":"EVENT_CONTEXT","start_time":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"setting":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"}}}},"content":[{"_parts":1}]}');
INSERT OR REPLACE INTO shape VALUES (6, 'dea91ee6935425efafffd35ca8b183bd', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"COMPOSITION"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}}}');
INSERT OR REPLACE INTO shape VALUES (7, '8c0683b582c42e231d11784354b4d51a', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"data":{"_parts":1},"preceding_version_uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532","preferred_term":{"_slot":"text"}}}}');
INSERT OR REPLACE INTO shape VALUES (8, 'c8d6a8bb480cfeb6363901726c2f31b3', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"},"preferred_term":{"_slot":"text"}}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"preceding_version_uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"deleted","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"523","preferred_term":{"_slot":"text"}}}}');
INSERT OR REPLACE INTO shape VALUES (9, '1f95acb4bbf33bfc364e64de15fd65f8', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"folders":[{"_parts":1}]}');
INSERT OR REPLACE INTO profile VALUES (1, 2, '["openEHR-EHR-EHR_STATUS.generic.v1"]');
INSERT OR REPLACE INTO profile VALUES (2, 1, '["openEHR-EHR-COMPOSITION.encounter.v1","openEHR-EHR-OBSERVATION.body_weight.v2"]');
INSERT OR REPLACE INTO profile VALUES (3, 1, '[]');
INSERT OR REPLACE INTO profile VALUES (4, 3, '["openEHR-EHR-FOLDER.generic.v1"]');
INSERT OR REPLACE INTO profile VALUES (5, 4, '["openEHR-DEMOGRAPHIC-PERSON.person.v1"]');
INSERT OR REPLACE INTO contribution VALUES (1, '00000000-0000-4000-8000-000000000002', 1, '[1]', '[1,"00000000-0000-4000-8000-000000000002","00000000-0000-4000-8000-000000000001::test.example::1","local","test.example","anonymous","2026-11-30T00:53:20.004000+00:00","creation","249","creation"]');
INSERT OR REPLACE INTO contribution VALUES (2, '00000000-0000-4000-8000-000000000004', 1, '[6]', '[6,"00000000-0000-4000-8000-000000000004","00000000-0000-4000-8000-000000000003::test.example::1","local","test.example","anonymous","2026-11-30T00:53:20.005000+00:00","creation","249","creation"]');
INSERT OR REPLACE INTO contribution VALUES (3, '00000000-0000-4000-8000-000000000005', 1, '[6]', '[6,"00000000-0000-4000-8000-000000000005","00000000-0000-4000-8000-000000000003::test.example::2","local","test.example","anonymous","2026-11-30T00:53:20.006000+00:00","modification","251","modification"]');
INSERT OR REPLACE INTO contribution VALUES (4, '00000000-0000-4000-8000-000000000007', 1, '[6]', '[6,"00000000-0000-4000-8000-000000000007","00000000-0000-4000-8000-000000000006::test.example::1","local","test.example","anonymous","2026-11-30T00:53:20.007000+00:00","creation","249","creation"]');
INSERT OR REPLACE INTO contribution VALUES (5, '00000000-0000-4000-8000-000000000008', 1, '[6]', '[6,"00000000-0000-4000-8000-000000000008","00000000-0000-4000-8000-000000000006::test.example::2","local","test.example","anonymous","2026-11-30T00:53:20.008000+00:00","deleted","523","deleted"]');
INSERT OR REPLACE INTO contribution VALUES (6, '00000000-0000-4000-8000-00000000000a', 1, '[11]', '[11,"00000000-0000-4000-8000-00000000000a","00000000-0000-4000-8000-000000000009::test.example::1","local","test.example","anonymous","2026-11-30T00:53:20.009000+00:00","creation","249","creation"]');
INSERT OR REPLACE INTO contribution VALUES (7, '00000000-0000-4000-8000-00000000000c', 0, '[13]', '[13,"00000000-0000-4000-8000-00000000000c","00000000-0000-4000-8000-00000000000b::test.example::1","local","test.example","anonymous","2026-11-30T00:53:20.010000+00:00","creation","249","creation"]');
INSERT OR REPLACE INTO version VALUES (1, 1, 2, '00000000-0000-4000-8000-000000000001', 1, 'test.example', NULL, NULL, 1, '2026-11-30T00:53:20.004000+00:00', '532', NULL, 1, '[2,3]', '8cc36bbd7f3abae17ccc9a66ecaf0e79717db4a25679b43f6c796400897d5733', 0, '[2,"00000000-0000-4000-8000-000000000002","local","test.example","anonymous","2026-11-30T00:53:20.004000+00:00","creation","249","creation","00000000-0000-4000-8000-000000000001::test.example::1",[[3,"EHR Status","00000000-0000-4000-8000-000000000001::test.example::1","patient-7","mrn","clinic",true,true]],"complete"]');
INSERT OR REPLACE INTO version VALUES (2, 1, 1, '00000000-0000-4000-8000-000000000003', 1, 'test.example', NULL, 3, 2, '2026-11-30T00:53:20.005000+00:00', '532', 'weight.en.v2', 2, '[2,5,4]', '06c1a58ec71ba532417cf82da55d265a7f71c6c912616454db6515171813fd8c', 0, '[2,"00000000-0000-4000-8000-000000000004","local","test.example","anonymous","2026-11-30T00:53:20.005000+00:00","creation","249","creation","00000000-0000-4000-8000-000000000003::test.example::1",[[5,"00000000-0000-4000-8000-000000000003::test.example::1","Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History","2026-11-20T08:30:00.000+01:00","Any event","2026-11-20T08:30:00.000+01:00","Tree",72.50]]]],"complete"]');
INSERT OR REPLACE INTO version VALUES (3, 1, 1, '00000000-0000-4000-8000-000000000003', 2, 'test.example', '00000000-0000-4000-8000-000000000003::test.example::1', NULL, 3, '2026-11-30T00:53:20.006000+00:00', '532', 'weight.en.v2', 2, '[7,5,4]', '014f3dc1da0a57eed23e185de0d524826a75b0dec87d6576ec7caaef6afe08cc', 0, '[7,"00000000-0000-4000-8000-000000000005","local","test.example","anonymous","2026-11-30T00:53:20.006000+00:00","modification","251","modification","00000000-0000-4000-8000-000000000003::test.example::2",[[5,"00000000-0000-4000-8000-000000000003::test.example::2","Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History","2026-11-20T08:30:00.000+01:00","Any event","2026-11-20T08:30:00.000+01:00","Tree",72.50]]]],"00000000-0000-4000-8000-000000000003::test.example::1","complete"]');
INSERT OR REPLACE INTO version VALUES (4, 1, 1, '00000000-0000-4000-8000-000000000006', 1, 'test.example', NULL, 5, 4, '2026-11-30T00:53:20.007000+00:00', '532', 'weight.en.v2', 2, '[2,5,4]', '8a1249cb2a297b6257d6d3cba6503b035e2d5148a0d1944d8f0d122503ffa152', 0, '[2,"00000000-0000-4000-8000-000000000007","local","test.example","anonymous","2026-11-30T00:53:20.007000+00:00","creation","249","creation","00000000-0000-4000-8000-000000000006::test.example::1",[[5,"00000000-0000-4000-8000-000000000006::test.example::1","Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History","2026-11-20T08:30:00.000+01:00","Any event","2026-11-20T08:30:00.000+01:00","Tree",72.50]]]],"complete"]');
INSERT OR REPLACE INTO version VALUES (5, 1, 1, '00000000-0000-4000-8000-000000000006', 2, 'test.example', '00000000-0000-4000-8000-000000000006::test.example::1', NULL, 5, '2026-11-30T00:53:20.008000+00:00', '523', NULL, 3, '[8]', '36df97958578d300ceda9f34cd7b866e3c735872df824bdace80789d139f0874', 0, '[8,"00000000-0000-4000-8000-000000000008","local","test.example","anonymous","2026-11-30T00:53:20.008000+00:00","deleted","523","deleted","00000000-0000-4000-8000-000000000006::test.example::2","00000000-0000-4000-8000-000000000006::test.example::1","deleted"]');
INSERT OR REPLACE INTO version VALUES (6, 1, 3, '00000000-0000-4000-8000-000000000009', 1, 'test.example', NULL, NULL, 6, '2026-11-30T00:53:20.009000+00:00', '532', NULL, 4, '[2,9,10,12]', 'ee2e7b05872051fa0f23b5f64eb0db2f78f2f7c2d1f096e994bdbd4a342e9e16', 0, '[2,"00000000-0000-4000-8000-00000000000a","local","test.example","anonymous","2026-11-30T00:53:20.009000+00:00","creation","249","creation","00000000-0000-4000-8000-000000000009::test.example::1",[[9,"root","00000000-0000-4000-8000-000000000009::test.example::1",[[12,"episodes","2026"],[10,"plans"]]]],"complete"]');
INSERT OR REPLACE INTO version VALUES (7, 0, 4, '00000000-0000-4000-8000-00000000000b', 1, 'test.example', NULL, NULL, 7, '2026-11-30T00:53:20.010000+00:00', '532', NULL, 5, '[2,14]', '7365e5db31705f5a98be92a50e56fdf36febe6ca7e8998a78b5cf1c6898e3a76', 0, '[2,"00000000-0000-4000-8000-00000000000c","local","test.example","anonymous","2026-11-30T00:53:20.010000+00:00","creation","249","creation","00000000-0000-4000-8000-00000000000b::test.example::1",[[14,"Person","00000000-0000-4000-8000-00000000000b::test.example::1","legal name","tree","family name","Andersson"]],"complete"]');
INSERT OR REPLACE INTO definition VALUES (1, 1, 'weight.en.v2', '2.0.0', 'opt14', '2026-11-30T00:53:20.001000+00:00', '{"concept":"Weight","archetype_id":"openEHR-EHR-COMPOSITION.encounter.v1","opaque":false}', '<?xml version="1.0" encoding="UTF-8"?>
<template xmlns="http://schemas.openehr.org/v1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <language>
    <terminology_id><value>ISO_639-1</value></terminology_id>
    <code_string>en</code_string>
  </language>
  <description><lifecycle_state>draft</lifecycle_state></description>
  <uid><value>6f0d3c2e-53ad-4b7c-9d26-4a1f1d3c7a10</value></uid>
  <template_id><value>weight.en.v2</value></template_id>
  <concept>Weight</concept>
  <definition>
    <rm_type_name>COMPOSITION</rm_type_name>
    <occurrences><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
    <node_id>at0000</node_id>
    <attributes xsi:type="C_SINGLE_ATTRIBUTE">
      <rm_attribute_name>category</rm_attribute_name>
      <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></existence>
      <children xsi:type="C_COMPLEX_OBJECT">
        <rm_type_name>DV_CODED_TEXT</rm_type_name>
        <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
        <node_id/>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE">
          <rm_attribute_name>defining_code</rm_attribute_name>
          <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></existence>
          <children xsi:type="C_CODE_PHRASE">
            <rm_type_name>CODE_PHRASE</rm_type_name>
            <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
            <node_id/>
            <terminology_id><value>openehr</value></terminology_id>
            <code_list>433</code_list>
          </children>
        </attributes>
      </children>
    </attributes>
    <attributes xsi:type="C_MULTIPLE_ATTRIBUTE">
      <rm_attribute_name>content</rm_attribute_name>
      <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper></existence>
      <children xsi:type="C_ARCHETYPE_ROOT">
        <rm_type_name>OBSERVATION</rm_type_name>
        <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper></occurrences>
        <node_id>at0000</node_id>
        <attributes xsi:type="C_SINGLE_ATTRIBUTE">
          <rm_attribute_name>data</rm_attribute_name>
          <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></existence>
          <children xsi:type="C_COMPLEX_OBJECT">
            <rm_type_name>HISTORY</rm_type_name>
            <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
            <node_id>at0002</node_id>
            <attributes xsi:type="C_MULTIPLE_ATTRIBUTE">
              <rm_attribute_name>events</rm_attribute_name>
              <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></existence>
              <children xsi:type="C_COMPLEX_OBJECT">
                <rm_type_name>POINT_EVENT</rm_type_name>
                <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>1</lower></occurrences>
                <node_id>at0003</node_id>
                <attributes xsi:type="C_SINGLE_ATTRIBUTE">
                  <rm_attribute_name>data</rm_attribute_name>
                  <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></existence>
                  <children xsi:type="C_COMPLEX_OBJECT">
                    <rm_type_name>ITEM_TREE</rm_type_name>
                    <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
                    <node_id>at0001</node_id>
                    <attributes xsi:type="C_MULTIPLE_ATTRIBUTE">
                      <rm_attribute_name>items</rm_attribute_name>
                      <existence><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper></existence>
                      <children xsi:type="C_COMPLEX_OBJECT">
                        <rm_type_name>ELEMENT</rm_type_name>
                        <occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>1</lower><upper>1</upper></occurrences>
                        <node_id>at0004</node_id>
                        <attributes xsi:type="C_SINGLE_ATTRIBUTE">
                          <rm_attribute_name>value</rm_attribute_name>
                          <children xsi:type="C_DV_QUANTITY">
                            <rm_type_name>DV_QUANTITY</rm_type_name>
                            <node_id/>
                            <list>
                              <magnitude><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1000</upper></magnitude>
                              <units>kg</units>
                            </list>
                          </children>
                        </attributes>
                      </children>
                      <cardinality><is_ordered>false</is_ordered><is_unique>false</is_unique><interval><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>0</lower></interval></cardinality>
                    </attributes>
                  </children>
                </attributes>
              </children>
              <cardinality><is_ordered>false</is_ordered><is_unique>false</is_unique><interval><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>1</lower></interval></cardinality>
            </attributes>
          </children>
        </attributes>
        <archetype_id><value>openEHR-EHR-OBSERVATION.body_weight.v2</value></archetype_id>
        <term_definitions code="at0000"><items id="text">Body weight</items><items id="description">How heavy the person is.</items></term_definitions>
        <term_definitions code="at0004"><items id="text">Weight</items><items id="description">The measured mass.</items></term_definitions>
      </children>
      <cardinality><is_ordered>false</is_ordered><is_unique>false</is_unique><interval><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>0</lower></interval></cardinality>
    </attributes>
    <archetype_id><value>openEHR-EHR-COMPOSITION.encounter.v1</value></archetype_id>
    <term_definitions code="at0000"><items id="text">Encounter</items><items id="description">A visit.</items></term_definitions>
  </definition>
  <component_ontologies archetype_id="openEHR-EHR-OBSERVATION.body_weight.v2">
    <term_definitions language="sv">
      <items code="at0000"><items id="text">Kroppsvikt</items><items id="description">Hur tung personen är.</items></items>
    </term_definitions>
  </component_ontologies>
</template>
');
INSERT OR REPLACE INTO definition VALUES (2, 2, 'ids', '1.0.0', 'aql', '2026-11-30T00:53:20.002000+00:00', '{}', 'SELECT e/ehr_id/value FROM EHR e');
INSERT OR REPLACE INTO definition VALUES (3, 3, 'weight_class.v1', '1.0.0', 'gdl2', '2026-11-30T00:53:20.003000+00:00', '{"concept":"Weight class","language":"en","purpose":null}', '{
  "id": "weight_class.v1",
  "gdl_version": "2.0",
  "concept": "gt0001",
  "language": {"original_language": "ISO_639-1::en"},
  "definition": {
    "data_bindings": {
      "gt0002": {"model_id": "openEHR-EHR-OBSERVATION.body_weight.v2", "type": "INPUT", "elements": {
        "gt0003": {"path": "/data[at0002]/events[at0003]/data[at0001]/items[at0004]"}}},
      "gt0004": {"model_id": "openEHR-EHR-OBSERVATION.weight_class.v1", "type": "OUTPUT", "elements": {
        "gt0005": {"path": "/data[at0001]/events[at0002]/data[at0003]/items[at0004]"}}}
    },
    "rules": {
      "gt0011": {"priority": 2, "when": ["$gt0003.magnitude>100", "$gt0003.unit==''kg''"], "then": ["$gt0005.magnitude=2"]},
      "gt0012": {"priority": 1, "when": ["$gt0003.magnitude<=100", "$gt0003.unit==''kg''"], "then": ["$gt0005.magnitude=1"]}
    }
  },
  "ontology": {"term_definitions": {"en": {"terms": {
    "gt0001": {"text": "Weight class"}, "gt0003": {"text": "Weight"}, "gt0005": {"text": "Class"},
    "gt0011": {"text": "Heavy"}, "gt0012": {"text": "Not heavy"}}}}}
}
');
INSERT OR REPLACE INTO meta VALUES ('revision', 10);
