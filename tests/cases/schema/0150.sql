INSERT OR REPLACE INTO ehr VALUES (0, '', '', '', NULL, NULL, 0, 1);
INSERT OR REPLACE INTO ehr VALUES (1, '6ba7b810-9dad-41d1-80b4-00c04fd430c8', 'test.example', '2026-11-30T00:53:20.004000+00:00', 'patient-7', 'clinic', 1, 1);
INSERT OR REPLACE INTO shape VALUES (1, '2dea3cfccbc1462ca4ade9e3e026b8e1', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"EHR_STATUS"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}}}');
INSERT OR REPLACE INTO shape VALUES (10, '95895491e05735bd2ef40c8497e1bc22', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"COMPOSITION"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"deleted","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"523","preferred_term":"deleted"}}}}');
INSERT OR REPLACE INTO shape VALUES (11, '1f95acb4bbf33bfc364e64de15fd65f8', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"folders":[{"_parts":1}]}');
INSERT OR REPLACE INTO shape VALUES (12, '2cd5d5cefb34d8575a53784315c15ade', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}}}');
INSERT OR REPLACE INTO shape VALUES (13, 'a21fa9888de31a9dcc7bf29d9936250c', '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"folders":[{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}}}]}');
INSERT OR REPLACE INTO shape VALUES (14, 'c31a18eeb8cf93b3db51318b1b4ab8eb', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"FOLDER"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}}}');
INSERT OR REPLACE INTO shape VALUES (15, '6e08b4396b0757cb4bf1a8e2c0f32d4a', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"PERSON"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}}}');
INSERT OR REPLACE INTO shape VALUES (16, 'deb109f5a100feb8c18e2a4c358aeb62', '{"_type":"PERSON","archetype_node_id":"openEHR-DEMOGRAPHIC-PERSON.person.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-DEMOGRAPHIC-PERSON.person.v1"},"rm_version":"1.1.0"},"identities":[{"_type":"PARTY_IDENTITY","archetype_node_id":"at0001","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"details":{"_type":"ITEM_TREE","archetype_node_id":"at0002","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"items":[{"_type":"ELEMENT","archetype_node_id":"at0003","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"value":{"_type":"DV_TEXT","value":{"_slot":"text"}}}]}}]}');
INSERT OR REPLACE INTO shape VALUES (2, '3ce6fc10e64555e331a9ca0d95bc9d91', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":"local","type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"data":{"_parts":1},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532","preferred_term":"complete"}}}');
INSERT OR REPLACE INTO shape VALUES (3, '948d0c1db672c84196cb57259b5c13c9', '{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"subject":{"_type":"PARTY_SELF","external_ref":{"_type":"PARTY_REF","id":{"_type":"GENERIC_ID","value":{"_slot":"text"},"scheme":{"_slot":"text"}},"namespace":{"_slot":"text"},"type":"PERSON"}},"is_queryable":{"_slot":"boolean"},"is_modifiable":{"_slot":"boolean"}}');
INSERT OR REPLACE INTO shape VALUES (4, '0134d3a3f87948fd24004104fafc3e71', '{"_type":"OBSERVATION","archetype_node_id":"openEHR-EHR-OBSERVATION.body_weight.v2","name":{"_type":"DV_TEXT","value":"Body weight"},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-OBSERVATION.body_weight.v2"},"rm_version":"1.1.0"},"language":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"},"code_string":"en"},"encoding":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"IANA_character-sets"},"code_string":"UTF-8"},"subject":{"_type":"PARTY_SELF"},"data":{"_type":"HISTORY","archetype_node_id":"at0002","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"origin":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"events":[{"_type":"POINT_EVENT","archetype_node_id":"at0003","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"time":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"data":{"_type":"ITEM_TREE","archetype_node_id":"at0001","name":{"_type":"DV_TEXT","value":{"_slot":"text"}},"items":[{"_type":"ELEMENT","archetype_node_id":"at0004","name":{"_type":"DV_TEXT","value":"Weight"},"value":{"_type":"DV_QUANTITY","magnitude":{"_slot":"number"},"units":"kg"}}]}}]}}');
INSERT OR REPLACE INTO shape VALUES (5, '76cb63355c5ad12ad463d5b959be354c', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"COMPOSITION"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"creation","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"249","preferred_term":"creation"}}}}');
INSERT OR REPLACE INTO shape VALUES (6, 'b6911f1f822a7f011ddc63733ff79efb', '{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1","name":{"_type":"DV_TEXT","value":"Encounter"},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-COMPOSITION.encounter.v1"},"template_id":{"_type":"TEMPLATE_ID","value":"weight.en.v2"},"rm_version":"1.1.0"},"language":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"},"code_string":"en"},"territory":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_3166-1"},"code_string":"SE"},"category":{"_type":"DV_CODED_TEXT","value":"event","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"433"}},"composer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"context":{"_type":"EVENT_CONTEXT","start_time":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"setting":{"_type":"DV_CODED_TEXT","value":{"_slot":"text"},"defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":{"_slot":"text"}}}},"content":[{"_parts":1}]}');
INSERT OR REPLACE INTO shape VALUES (7, '58035692e6b637ee7ebf735d4af481fc', '{"_type":"CONTRIBUTION","uid":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"versions":[{"_type":"OBJECT_REF","id":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"namespace":"local","type":"COMPOSITION"}],"audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"modification","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"251","preferred_term":"modification"}}}}');
INSERT OR REPLACE INTO shape VALUES (8, '5d64f32f7f9f316cdf86f68246a10a63', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":"local","type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"modification","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"251","preferred_term":"modification"}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"data":{"_parts":1},"preceding_version_uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"complete","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"532","preferred_term":"complete"}}}');
INSERT OR REPLACE INTO shape VALUES (9, '8f369000d07e691fdf720c7f219d21d9', '{"_type":"ORIGINAL_VERSION","contribution":{"_type":"OBJECT_REF","id":{"_type":"HIER_OBJECT_ID","value":{"_slot":"text"}},"namespace":"local","type":"CONTRIBUTION"},"commit_audit":{"_type":"AUDIT_DETAILS","system_id":{"_slot":"text"},"committer":{"_type":"PARTY_IDENTIFIED","name":{"_slot":"text"}},"time_committed":{"_type":"DV_DATE_TIME","value":{"_slot":"text"}},"change_type":{"_type":"DV_CODED_TEXT","value":"deleted","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"523","preferred_term":"deleted"}}},"uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"preceding_version_uid":{"_type":"OBJECT_VERSION_ID","value":{"_slot":"text"}},"lifecycle_state":{"_type":"DV_CODED_TEXT","value":"deleted","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"openehr"},"code_string":"523","preferred_term":"deleted"}}}');
INSERT OR REPLACE INTO profile VALUES (1, 2, '["openEHR-EHR-EHR_STATUS.generic.v1"]');
INSERT OR REPLACE INTO profile VALUES (2, 1, '["openEHR-EHR-COMPOSITION.encounter.v1","openEHR-EHR-OBSERVATION.body_weight.v2"]');
INSERT OR REPLACE INTO profile VALUES (3, 1, '[]');
INSERT OR REPLACE INTO profile VALUES (4, 3, '["openEHR-EHR-FOLDER.generic.v1"]');
INSERT OR REPLACE INTO profile VALUES (5, 4, '["openEHR-DEMOGRAPHIC-PERSON.person.v1"]');
INSERT OR REPLACE INTO contribution VALUES (1, '00000000-0000-4000-8000-000000000002', 1, '[1]', '[1,0,"00000000-0000-4000-8000-000000000001::test.example::1","test.example","anonymous","2026-11-30T00:53:20.004000+00:00"]', '6bc9410143ba2a6b', NULL);
INSERT OR REPLACE INTO contribution VALUES (2, '00000000-0000-4000-8000-000000000004', 1, '[5]', '[5,0,"00000000-0000-4000-8000-000000000003::test.example::1","test.example","anonymous","2026-11-30T00:53:20.005000+00:00"]', 'ed6c7309e2296212', NULL);
INSERT OR REPLACE INTO contribution VALUES (3, '00000000-0000-4000-8000-000000000005', 1, '[7]', '[7,0,"00000000-0000-4000-8000-000000000003::test.example::2","test.example","anonymous","2026-11-30T00:53:20.006000+00:00"]', '91454d31fc8064ce', NULL);
INSERT OR REPLACE INTO contribution VALUES (4, '00000000-0000-4000-8000-000000000007', 1, '[5]', '[5,0,"00000000-0000-4000-8000-000000000006::test.example::1","test.example","anonymous","2026-11-30T00:53:20.007000+00:00"]', '86002ba8d9fd40ae', NULL);
INSERT OR REPLACE INTO contribution VALUES (5, '00000000-0000-4000-8000-000000000008', 1, '[10]', '[10,0,"00000000-0000-4000-8000-000000000006::test.example::2","test.example","anonymous","2026-11-30T00:53:20.008000+00:00"]', 'c1d5ee4bf1512517', NULL);
INSERT OR REPLACE INTO contribution VALUES (6, '00000000-0000-4000-8000-00000000000a', 1, '[14]', '[14,0,"00000000-0000-4000-8000-000000000009::test.example::1","test.example","anonymous","2026-11-30T00:53:20.009000+00:00"]', 'd2ee68692ecfa705', NULL);
INSERT OR REPLACE INTO contribution VALUES (7, '00000000-0000-4000-8000-00000000000c', 0, '[15]', '[15,0,"00000000-0000-4000-8000-00000000000b::test.example::1","test.example","anonymous","2026-11-30T00:53:20.010000+00:00"]', 'e25b3c2bc6272798', NULL);
INSERT OR REPLACE INTO version VALUES (1, 1, 2, '00000000-0000-4000-8000-000000000001', 1, 'test.example', NULL, NULL, 1, '2026-11-30T00:53:20.004000+00:00', '532', NULL, 1, '[2,3]', '0a3e11329161df1d', 0, '[2,"00000000-0000-4000-8000-000000000002",2,"anonymous",1,0,[[3,"EHR Status",0,"patient-7","mrn","clinic",true,true]]]', NULL, NULL);
INSERT OR REPLACE INTO version VALUES (2, 1, 1, '00000000-0000-4000-8000-000000000003', 1, 'test.example', NULL, 3, 2, '2026-11-30T00:53:20.005000+00:00', '532', 'weight.en.v2', 2, '[2,6,4]', '6779d5b5454c36e3', 0, '[2,"00000000-0000-4000-8000-000000000004",2,"anonymous",1,0,[[6,0,"Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History",-4,"Any event",-4,"Tree",72.50]]]]]', 'openEHR-EHR-COMPOSITION.encounter.v1', 0);
INSERT OR REPLACE INTO version VALUES (3, 1, 1, '00000000-0000-4000-8000-000000000003', 2, 'test.example', '00000000-0000-4000-8000-000000000003::test.example::1', NULL, 3, '2026-11-30T00:53:20.006000+00:00', '532', 'weight.en.v2', 2, '[8,6,4]', 'e35595015af772b0', 0, '[8,"00000000-0000-4000-8000-000000000005",2,"anonymous",1,0,[[6,0,"Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History",-4,"Any event",-4,"Tree",72.50]]]],"00000000-0000-4000-8000-000000000003::test.example::1"]', 'openEHR-EHR-COMPOSITION.encounter.v1', 0);
INSERT OR REPLACE INTO version VALUES (4, 1, 1, '00000000-0000-4000-8000-000000000006', 1, 'test.example', NULL, 5, 4, '2026-11-30T00:53:20.007000+00:00', '532', 'weight.en.v2', 2, '[2,6,4]', 'eebe8d22c64ef675', 0, '[2,"00000000-0000-4000-8000-000000000007",2,"anonymous",1,0,[[6,0,"Nurse Berg","2026-11-20T08:30:00.000+01:00","home","225",[[4,"History",-4,"Any event",-4,"Tree",72.50]]]]]', 'openEHR-EHR-COMPOSITION.encounter.v1', 0);
INSERT OR REPLACE INTO version VALUES (5, 1, 1, '00000000-0000-4000-8000-000000000006', 2, 'test.example', '00000000-0000-4000-8000-000000000006::test.example::1', NULL, 5, '2026-11-30T00:53:20.008000+00:00', '523', NULL, 3, '[9]', 'd22a8b74d06e1986', 0, '[9,"00000000-0000-4000-8000-000000000008",2,"anonymous",1,0,"00000000-0000-4000-8000-000000000006::test.example::1"]', NULL, NULL);
INSERT OR REPLACE INTO version VALUES (6, 1, 3, '00000000-0000-4000-8000-000000000009', 1, 'test.example', NULL, NULL, 6, '2026-11-30T00:53:20.009000+00:00', '532', NULL, 4, '[2,11,12,13]', '39bfa4761565d325', 0, '[2,"00000000-0000-4000-8000-00000000000a",2,"anonymous",1,0,[[11,"root",0,[[13,"episodes","2026"],[12,"plans"]]]]]', NULL, NULL);
INSERT OR REPLACE INTO version VALUES (7, 0, 4, '00000000-0000-4000-8000-00000000000b', 1, 'test.example', NULL, NULL, 7, '2026-11-30T00:53:20.010000+00:00', '532', NULL, 5, '[2,16]', '8f8c8dd0ca8c621a', 0, '[2,"00000000-0000-4000-8000-00000000000c",2,"anonymous",1,0,[[16,"Person",0,"legal name","tree","family name","Andersson"]]]', NULL, NULL);
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
', 'c4bd8e62defc1ebf7b70449532c178cb', 7432);
INSERT OR REPLACE INTO definition VALUES (2, 2, 'ids', '1.0.0', 'aql', '2026-11-30T00:53:20.002000+00:00', '{}', 'SELECT e/ehr_id/value FROM EHR e', '1a4c214d5733f74d862fb036cf4e188f', 32);
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
', '6a60e924e8ded03d3bf15f0679f09be6', 1057);
INSERT OR REPLACE INTO meta VALUES ('last_version', 0);
INSERT OR REPLACE INTO meta VALUES ('log_moved', 0);
INSERT OR REPLACE INTO meta VALUES ('revision', 10);
INSERT OR REPLACE INTO meta VALUES ('shape_generation', 0);
INSERT OR REPLACE INTO access_log VALUES (1, '2026-11-30T00:53:20.004000+00:00', 'anonymous', '', 'PUT ehr/{ehr_id}', '00000000-0000-4000-8000-000000000001::test.example::1', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 201, '', 'cffe6d55ca87b85d05fb387fc81a9c59');
INSERT OR REPLACE INTO access_log VALUES (2, '2026-11-30T00:53:20.005000+00:00', 'anonymous', '', 'POST ehr/{ehr_id}/composition', '00000000-0000-4000-8000-000000000003::test.example::1', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 201, '', '50f85768630c80e5a352b45c67c687ab');
INSERT OR REPLACE INTO access_log VALUES (3, '2026-11-30T00:53:20.006000+00:00', 'anonymous', '', 'PUT ehr/{ehr_id}/composition/{uid}', '00000000-0000-4000-8000-000000000003::test.example::2', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 204, '', '0178024c5cdc85ec966a8520547d48a3');
INSERT OR REPLACE INTO access_log VALUES (4, '2026-11-30T00:53:20.007000+00:00', 'anonymous', '', 'POST ehr/{ehr_id}/composition', '00000000-0000-4000-8000-000000000006::test.example::1', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 201, '', '0715aba85ed1de3c4edbb7aa5aaf659c');
INSERT OR REPLACE INTO access_log VALUES (5, '2026-11-30T00:53:20.008000+00:00', 'anonymous', '', 'DELETE ehr/{ehr_id}/composition/{uid}', '00000000-0000-4000-8000-000000000006::test.example::2', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 204, '', 'd982dad23f52dacfe690de9763e6e5a2');
INSERT OR REPLACE INTO access_log VALUES (6, '2026-11-30T00:53:20.009000+00:00', 'anonymous', '', 'POST ehr/{ehr_id}/directory', '00000000-0000-4000-8000-000000000009::test.example::1', '6ba7b810-9dad-41d1-80b4-00c04fd430c8', NULL, 201, '', '6f23b78514a42787e1e560a3f5628d75');
INSERT OR REPLACE INTO access_log VALUES (7, '2026-11-30T00:53:20.010000+00:00', 'anonymous', '', 'POST demographic/person', '00000000-0000-4000-8000-00000000000b::test.example::1', NULL, NULL, 201, '', '9f4d3a5aca4bb8f85289dd686d3359fa');
