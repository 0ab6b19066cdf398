//! The command `query`.

use super::program::{Folder, SYSTOLIC, bulk_line, generator, ran, sample};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

const COUNT: &str = "SELECT COUNT(*) AS n FROM COMPOSITION c";

/// The counts of compositions by EHR, of EHRs that have some.
const BY_EHR: &str =
    "SELECT e/ehr_id/value AS ehr, COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c ORDER BY ehr";

#[test]
fn folder_of_each_patient_is_an_ehr() {
    let ran = sample().run(&["query", "-d", "data", "-d", "templates", BY_EHR]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let generator = generator();
    let mut expected: Vec<String> = (0..generator.ehrs())
        .map(|ehr| {
            let count = generator.compositions_of(ehr).len();
            format!("{},{count}", generator.ehr(ehr).ehr_id)
        })
        .collect();
    expected.sort();
    assert_eq!(ran.out.lines().skip(1).collect::<Vec<_>>(), expected);
}

#[test]
fn single_file_belongs_to_its_folder_or_to_itself() {
    let folder = Folder::new();
    let json = generator().composition(0).json;
    folder.write("clinic/p1.json", &json);
    folder.write("clinic/p2.json", &json);
    let ids = |arguments: &[&str]| {
        let mut all = vec!["query", "--no-cache"];
        all.extend(arguments);
        all.push("SELECT e/ehr_id/value AS id FROM EHR e");
        folder.run(&all).out
    };
    assert_eq!(ids(&["-d", "clinic"]), "id\nclinic\n");
    assert_eq!(ids(&["-d", "clinic/p1.json"]), "id\nclinic\n");
    assert_eq!(
        ids(&["-d", "clinic/*.json", "--ehr-from", "file"]),
        "id\np1\np2\n"
    );
    folder.write("map.csv", "glob,ehr\nclinic/p1.*,Anna\n*.json,Berta\n");
    assert_eq!(
        ids(&["-d", "clinic", "--ehr-map", "map.csv"]),
        "id\nAnna\nBerta\n"
    );
}

#[test]
fn mapping_names_files_by_any_spelling_and_no_others() {
    let folder = Folder::new();
    let json = generator().composition(0).json;
    folder.write("d/p1/a.json", &json);
    let whole = folder.path().join("d/p1/a.json");
    let whole = whole.to_str().unwrap();
    let run = |data: &str, map: &str| {
        folder.write("map.csv", map);
        let query = "SELECT e/ehr_id/value AS id FROM EHR e";
        folder.run(&["query", "-d", data, "--ehr-map", "map.csv", query])
    };
    for data in ["d", "./d", "d/p1/../p1", "d/p1/a.json", whole] {
        for path in [
            "d/p1/a.json",
            "./d/p1/a.json",
            "d/./p1/../p1/a.json",
            "a.json",
            "d/p1/*",
            "./d/*/a.json",
            whole,
        ] {
            let ran = run(data, &format!("path,ehr\n{path},Anna\n"));
            let found = (ran.out.as_str(), ran.err.as_str());
            assert_eq!(found, ("id\nAnna\n", ""), "{data} {path}");
        }
    }
    let ran = run(
        "d",
        "path,ehr\nd/p2/a.json,Anna\na.json,Berta\n*.xml,Carl\n",
    );
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "id\nBerta\n"));
    let warning = "map.csv:2: warning[CLI0006]: `d/p2/a.json` matches no file of the data, nor does 1 further row";
    assert!(ran.err.contains(warning), "{}", ran.err);
    for (rows, problem) in [
        (
            "a.json,e1,s1\nb.json,e1,s2\n",
            "line 3: line 2 has another subject of the EHR `e1`",
        ),
        (
            "a.json,e1,s1\n./a.json,e2,s1\n",
            "line 3: line 2 has the path, too",
        ),
    ] {
        let ran = run("d", &format!("path,ehr,subject\n{rows}"));
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        assert!(ran.err.contains(problem), "{}", ran.err);
    }
}

#[test]
fn mapping_names_subjects() {
    let folder = Folder::new();
    folder.write("p1.json", &generator().composition(0).json);
    folder.write(
        "map.csv",
        "path,ehr,subject,namespace\np1.json,e1,4711,hospital\n",
    );
    let query = "SELECT s/subject/external_ref/id/value AS id, s/subject/external_ref/namespace AS space FROM EHR e CONTAINS EHR_STATUS s";
    let ran = folder.run(&["query", "-d", "p1.json", "--ehr-map", "map.csv", query]);
    assert_eq!(ran.out, "id,space\n4711,hospital\n", "{}", ran.err);
    folder.write("map.csv", "file,patient\na,b\n");
    let ran = folder.run(&["query", "-d", "p1.json", "--ehr-map", "map.csv", query]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("`ehr` or `subject`"), "{}", ran.err);
}

#[test]
fn every_format_of_a_composition_gives_the_same_rows() {
    let folder = Folder::new();
    super::program::write_definitions(&folder);
    folder.write("in.json", &generator().composition(0).json);
    let query = "SELECT c/name/value, c/context/start_time/value, c/composer/name, o/name/value, o/data/events/time/value FROM COMPOSITION c CONTAINS OBSERVATION o";
    let rows = |file: &str| {
        let ran = folder.run(&["query", "--no-cache", "-d", file, "-d", "templates", query]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{file}");
        ran.out
    };
    let expected = rows("in.json");
    assert!(expected.lines().count() > 1, "{expected}");
    for to in ["json", "xml", "flat", "structured"] {
        let out = format!("{to}.data");
        let ran = folder.run(&[
            "convert",
            "in.json",
            "--to",
            to,
            "-o",
            &out,
            "-d",
            "templates",
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(rows(&out), expected, "{to}");
    }
}

#[test]
fn lines_name_their_ehr_and_its_status() {
    let (folder, generator) = (Folder::new(), generator());
    let mut lines: String = (0..50).map(|index| bulk_line(&generator, index)).collect();
    let ehr = generator.ehr(0).ehr_id;
    let hidden = format!(
        "{{\"ehr_id\":\"{ehr}\",\"ehr_status\":{{\"_type\":\"EHR_STATUS\",\"archetype_node_id\":\"openEHR-EHR-EHR_STATUS.generic.v1\",\"name\":{{\"_type\":\"DV_TEXT\",\"value\":\"s\"}},\"subject\":{{\"_type\":\"PARTY_SELF\"}},\"is_queryable\":false,\"is_modifiable\":true}}}}\n"
    );
    folder.write("a.ndjson", &lines);
    assert_eq!(
        folder.run(&["query", "-d", "a.ndjson", COUNT]).out,
        "n\n50\n"
    );
    lines.push_str(&hidden);
    folder.write("b.ndjson", &lines);
    let own = (0..50)
        .filter(|index| generator.composition(*index).ehr == 0)
        .count();
    let expected = format!("n\n{}\n", 50 - own);
    assert_eq!(
        folder.run(&["query", "-d", "b.ndjson", COUNT]).out,
        expected
    );
}

#[test]
fn contributions_of_lines_change_and_delete_objects() {
    let (folder, generator) = (Folder::new(), generator());
    let ehr = generator.ehr(0).ehr_id;
    let uid = |object: u32, number: u32| {
        format!("8849182c-82ad-4088-a07f-00000000000{object}::s::{number}")
    };
    let line = |audit: &str, version: &str| {
        format!(
            "{{\"ehr_id\":\"{ehr}\",\"contribution\":{{\"audit\":{{{audit}}},\"versions\":[{{{version}}}]}}}}\n"
        )
    };
    let data = |index: usize| format!("\"data\":{}", generator.composition(index).json);
    let first = |object: u32, index: usize| {
        let named = format!(
            "{{\"_type\":\"COMPOSITION\",\"uid\":{{\"_type\":\"OBJECT_VERSION_ID\",\"value\":\"{}\"}},",
            uid(object, 1)
        );
        let data = data(index).replacen("{\"_type\":\"COMPOSITION\",", &named, 1);
        line("", &data)
    };
    let follows = |object: u32, number: u32| {
        let preceding = uid(object, number);
        format!("\"preceding_version_uid\":{{\"value\":\"{preceding}\"}}")
    };
    let deletion = "\"change_type\":{\"terminology_id\":\"openehr\",\"code_string\":\"523\"}";
    let lines = [
        first(1, 0),
        first(2, 1),
        first(3, 2),
        first(4, 3),
        line("", &format!("{},{}", follows(1, 1), data(4))),
        line("", &follows(2, 1)),
        // The data of a deletion do not count.
        line(deletion, &format!("{},{}", follows(3, 1), data(5))),
        line(
            "",
            &format!(
                "\"commit_audit\":{{{deletion}}},{},{}",
                follows(1, 2),
                data(6)
            ),
        ),
    ];
    folder.write("a.ndjson", &lines[..7].concat());
    let latest = "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c ORDER BY uid";
    let ran = folder.run(&["query", "-d", "a.ndjson", latest]);
    let expected = format!("uid\n{}\n{}\n", uid(1, 2), uid(4, 1));
    assert_eq!((ran.out, ran.err), (expected, String::new()));
    folder.write("b.ndjson", &lines.concat());
    let all = "SELECT v/uid/value AS uid, v/commit_audit/change_type/value AS change, v/preceding_version_uid/value AS preceding FROM EHR e CONTAINS VERSION v[all_versions] WHERE v/uid/value LIKE '*::s::*' ORDER BY uid";
    let ran = folder.run(&["query", "-d", "b.ndjson", all]);
    let rows = [
        format!("{},creation,", uid(1, 1)),
        format!("{},modification,{}", uid(1, 2), uid(1, 1)),
        format!("{},deleted,{}", uid(1, 3), uid(1, 2)),
        format!("{},creation,", uid(2, 1)),
        format!("{},deleted,{}", uid(2, 2), uid(2, 1)),
        format!("{},creation,", uid(3, 1)),
        format!("{},deleted,{}", uid(3, 2), uid(3, 1)),
        format!("{},creation,", uid(4, 1)),
    ];
    let expected = format!("uid,change,preceding\n{}\n", rows.join("\n"));
    assert_eq!((ran.out, ran.err), (expected, String::new()));
    folder.write("c.ndjson", &line("", "\"lifecycle_state\":{}"));
    let ran = folder.run(&["query", "-d", "c.ndjson", latest]);
    assert!(
        ran.err.contains("c.ndjson:1: error[CLI0108]"),
        "{}",
        ran.err
    );
}

#[test]
fn later_version_hides_the_earlier_one() {
    let folder = Folder::new();
    let generator = generator();
    let uid = "8849182c-82ad-4088-a07f-48ead4180515";
    let with_uid = |number: u32, index: usize| {
        let json = generator.composition(index).json;
        let uid = format!(
            "{{\"_type\":\"COMPOSITION\",\"uid\":{{\"_type\":\"OBJECT_VERSION_ID\",\"value\":\"{uid}::a::{number}\"}},"
        );
        json.replacen("{\"_type\":\"COMPOSITION\",", &uid, 1)
    };
    folder.write("d/1.json", &with_uid(2, 0));
    folder.write("d/2.json", &with_uid(1, 1));
    let latest = "SELECT c/uid/value AS uid FROM COMPOSITION c";
    let ran = folder.run(&["query", "-d", "d", latest]);
    assert_eq!(ran.out, format!("uid\n{uid}::a::2\n"));
    let all = "SELECT c/uid/value AS uid FROM EHR e CONTAINS VERSION v[all_versions] CONTAINS COMPOSITION c ORDER BY uid";
    let ran = folder.run(&["query", "-d", "d", all]);
    assert_eq!(
        ran.out,
        format!("uid\n{uid}::a::1\n{uid}::a::2\n"),
        "{}",
        ran.err
    );
    folder.write("d/3.json", &with_uid(2, 2));
    let ran = folder.run(&["query", "-d", "d", all]);
    assert_eq!(
        ran.out,
        format!("uid\n{uid}::a::1\n{uid}::a::2\n"),
        "{}",
        ran.err
    );
    let warning = "1 versions occur twice, such as that of d/3.json; the first";
    assert!(ran.err.contains(warning), "{}", ran.err);
    folder.write("other/lines.ndjson", &format!("\n{}\n", with_uid(3, 3)));
    let ran = folder.run(&["query", "-d", "d", "-d", "other", latest]);
    assert_eq!(ran.out, format!("uid\n{uid}::a::3\n"));
    let warning = "1 documents have the uid of an object of another EHR, such as that of other/lines.ndjson:2";
    assert!(ran.err.contains(warning), "{}", ran.err);
}

#[test]
fn unreadable_files_are_reported_with_line_and_rule() {
    let folder = Folder::new();
    folder.write("d/good.json", &generator().composition(0).json);
    folder.write("d/broken.json", "{\"_type\":\"COMPOSITION\",\n\"name\": }");
    folder.write("d/wrong.json", "{\"_type\":\"COMPOSITION\",\n\"content\": [\n{\"_type\":\"OBSERVATION\",\n \"wrong\": 1}]}");
    folder.write("d/other.json", "{\"a\": 1}");
    let check = || {
        let ran = folder.run(&["query", "-d", "d", COUNT]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), "n\n1\n"));
        for expected in [
            "d/broken.json:2: error[RM0001]",
            "d/wrong.json:",
            "error[RM01",
            "d/other.json:1: error[CLI0104]",
        ] {
            assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
        }
    };
    check();
    // The second time the problems come from the index file.
    check();
    let ran = folder.run(&["query", "-d", "d", "--skip-invalid", COUNT]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn wrong_query_is_shown_with_its_line() {
    let folder = sample();
    let ran = folder.run(&["query", "-d", "data", "SELECT c\nFROM COMPOSITON c"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    for expected in [
        "error[AQL0201]",
        "--> query:2:6",
        "FROM COMPOSITON c",
        "^^^^^^^^^^",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[test]
fn data_without_documents_have_a_warning() {
    let folder = Folder::new();
    super::program::write_definitions(&folder);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for (data, arguments) in [
        ("empty", &["query", "-d", "empty", COUNT][..]),
        ("templates", &["query", "-d", "templates", COUNT]),
        ("empty", &["convert", "empty", "--to", "xml", "-o", "out"]),
    ] {
        let ran = folder.run(arguments);
        let warning = format!("warning: no documents in `{data}`\n");
        assert_eq!((ran.code, ran.err), (Some(0), warning), "{arguments:?}");
    }
    let ran = folder.run(&["check", "empty"]);
    assert_eq!(ran.err, "warning: no files to check in `empty`\n");
    folder.write("empty/a.json", "{");
    let ran = folder.run(&["query", "-d", "empty", COUNT]);
    assert_eq!(ran.code, Some(1));
    assert!(!ran.err.contains("no documents"), "{}", ran.err);
}

#[test]
fn wrong_usage_has_code_two() {
    let folder = sample();
    for arguments in [
        vec!["query"],
        vec!["query", COUNT],
        vec!["query", "-d", "nothing", COUNT],
        vec!["query", "-d", "data", COUNT, "--format", "xls"],
        vec!["query", "-d", "data", COUNT, "--param", "a"],
        // A service refuses these values of parameters too.
        vec!["query", "-d", "data", COUNT, "--param", r#"l=["x",null]"#],
        vec!["query", "-d", "data", COUNT, "--param", r#"l=[{"a":1}]"#],
        vec!["nothing"],
    ] {
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn parameters_have_the_type_of_the_other_side() {
    let rows = |limit: &str| {
        let parameter = format!("limit={limit}");
        let arguments = ["query", "-d", "data", SYSTOLIC, "--param", &parameter];
        sample().run(&arguments).out.lines().count()
    };
    assert!(rows("130") > rows("150"));
    let list = "SELECT COUNT(*) AS n FROM COMPOSITION c WHERE c/archetype_details/template_id/value matches {$ids}";
    let ran = sample().run(&[
        "query",
        "-d",
        "data",
        list,
        "--param",
        "ids=[\"sample.vital_signs.v1\",\"sample.problem_list.v1\",\"sample.laboratory_report.v1\"]",
    ]);
    assert_eq!(ran.out, "n\n200\n", "{}", ran.err);
}

#[test]
fn formats_are_chosen_by_option_or_ending() {
    let folder = sample();
    let run = |arguments: &[&str]| {
        let mut all = vec![
            "query",
            "-d",
            "data",
            "SELECT COUNT(*) AS n, '=1+1' AS f FROM COMPOSITION c",
        ];
        all.extend(arguments);
        folder.run(&all).out
    };
    // An apostrophe keeps spreadsheets from computing a text.
    assert_eq!(run(&[]), "n,f\n200,\"'=1+1\"\n");
    assert_eq!(
        run(&["--format", "json"]),
        "{\"columns\":[{\"name\":\"n\"},{\"name\":\"f\"}],\"rows\":[[200,\"=1+1\"]]}\n"
    );
    assert_eq!(run(&["--format", "ndjson"]), "{\"n\":200,\"f\":\"=1+1\"}\n");
    let table = run(&["--format", "table"]);
    assert!(
        table.contains("│ 200 ┆ =1+1 │") && table.ends_with("1 row\n"),
        "{table}"
    );
    assert_eq!(run(&["-o", "out.ndjson"]), "");
    let written = std::fs::read_to_string(folder.path().join("out.ndjson")).unwrap();
    assert_eq!(written, "{\"n\":200,\"f\":\"=1+1\"}\n");
}

#[test]
fn limit_keeps_the_first_rows() {
    let query = "SELECT c/uid/value AS uid FROM COMPOSITION c";
    let all = sample().run(&["query", "-d", "data", query]).out;
    let first = sample()
        .run(&["query", "-d", "data", query, "--limit", "3"])
        .out;
    assert_eq!(first.lines().count(), 4);
    assert!(all.starts_with(&first));
}

#[test]
fn explanation_shows_the_plan_and_the_source() {
    let ran = sample().run(&["query", "-d", "data", "--explain", COUNT]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for expected in [
        "checked query",
        "plan",
        "reads columns of segments",
        "200 documents of 20 EHRs",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
}

#[test]
fn closed_pipe_ends_the_program_in_silence() {
    let query = "SELECT c FROM COMPOSITION c";
    let mut command = sample().command(&["query", "-d", "data", query, "--format", "ndjson"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with('{'));
    let output = child.wait_with_output().unwrap();
    let ran = ran(output);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

/// Returns the commands below a command, as its help lists them.
fn listed(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    // The lines of a long description are indented deeper.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !matches!(*name, "" | "help")).collect()
}

#[test]
fn help_of_each_command_has_an_example() {
    let folder = Folder::new();
    let (mut open, mut count) = (vec![Vec::new()], 0);
    while let Some(command) = open.pop() {
        let arguments = [&command[..], &[String::from("--help")]].concat();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.err);
        let below = listed(&ran.out);
        open.extend(
            below
                .iter()
                .map(|name| [&command[..], &[(*name).to_owned()]].concat()),
        );
        let first = command.first().map_or("", String::as_str);
        count += usize::from(!first.is_empty());
        let example = format!("aqlite {first}");
        assert!(
            ran.out.contains("Examples:") && ran.out.contains(&example),
            "{command:?}: {}",
            ran.out
        );
    }
    assert!(count > 20, "{count} commands");
    let serve = folder.run(&["serve", "--help"]).out;
    for variable in ["AUTH", "SYSTEM_ID", "HOSTS", "BASE_URL", "ORIGINS", "ADMIN"] {
        assert!(
            serve.contains(&format!("\n  {variable} ")),
            "{variable}: {serve}"
        );
    }
    assert!(
        folder
            .run(&["completions", "bash"])
            .out
            .contains("_aqlite()")
    );
    assert!(folder.run(&["man"]).out.contains(".TH aqlite"));
}

#[cfg(unix)]
#[test]
fn pressing_ctrl_c_ends_the_program_with_code_130() {
    // A named pipe blocks the reader, so the signal arrives while files are read.
    let folder = Folder::new();
    let pipe = folder.path().join("lines.ndjson");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let mut child = folder
        .command(&["query", "-d", "lines.ndjson", COUNT])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let kill = |id: u32| {
        std::process::Command::new("kill")
            .args(["-INT", &id.to_string()])
            .status()
            .unwrap()
    };
    kill(child.id());
    std::thread::sleep(std::time::Duration::from_millis(100));
    kill(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut left = String::new();
    let _ = child
        .stderr
        .take()
        .map(|mut err| err.read_to_string(&mut left));
    assert_eq!(left, "");
}

#[test]
fn explanation_of_an_empty_result_counts_the_rows_behind_each_part() {
    let folder = sample();
    let query = "SELECT c FROM EHR e CONTAINS COMPOSITION c[openEHR-EHR-COMPOSITION.nothing.v1]";
    let ran = folder.run(&["query", "-d", ".", "--explain", query]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("warning[AQL0605]"), "{}", ran.err);
    let parts = ran.out.split("rows behind each part of the query").nth(1);
    let parts = parts.expect("the parts are listed");
    assert!(parts.contains("class COMPOSITION c\n"), "{parts}");
    assert!(
        parts
            .trim_end()
            .ends_with("0  predicate [openEHR-EHR-COMPOSITION.nothing.v1]"),
        "{parts}"
    );
}
