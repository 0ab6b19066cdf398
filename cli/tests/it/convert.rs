//! The commands `convert`, `example` and `template`.

use super::program::{Folder, generator, sample, write_definitions};

const VITAL_SIGNS: &str = "templates/sample.vital_signs.v1.opt";

#[test]
fn document_survives_each_format() {
    let folder = Folder::new();
    write_definitions(&folder);
    // FLAT does not carry the names of structures, which compositions in other languages have.
    let is_english = |json: &String| json.contains("\"code_string\":\"en\"");
    let generator = generator();
    let mut all = (0..generator.compositions()).map(|index| generator.composition(index).json);
    folder.write("in.json", &all.find(is_english).unwrap());
    let convert = |input: &str, to: &str, output: &str| {
        let ran = folder.run(&[
            "convert",
            input,
            "--to",
            to,
            "-o",
            output,
            "-d",
            "templates",
        ]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{to}");
    };
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    convert("in.json", "json", "canonical.json");
    for to in ["xml", "flat", "structured"] {
        convert("in.json", to, "between");
        convert("between", "json", "back.json");
        assert_eq!(read("back.json"), read("canonical.json"), "{to}");
    }
}

#[test]
fn a_whole_document_may_be_one_key_of_flat() {
    let folder = Folder::new();
    write_definitions(&folder);
    let document: serde_json::Value =
        serde_json::from_str(&generator().composition(0).json).unwrap();
    let template = document["archetype_details"]["template_id"]["value"].as_str();
    let template = format!("templates/{}.opt", template.unwrap());
    let text = serde_json::json!({ "encounter|raw": document }).to_string();
    folder.write("in.json", &text);
    let ran = folder.run(&["convert", "in.json", "--to", "json", "-d", &template]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let written: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(written["name"], document["name"]);
}

#[test]
fn folder_becomes_a_folder() {
    let folder = sample();
    let ran = folder.run(&["convert", "data", "--to", "xml"]);
    assert_eq!(ran.code, Some(2), "a folder needs a folder to write");
    let ran = folder.run(&["convert", "data", "--to", "xml", "-o", "xml"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let count = "SELECT COUNT(*) AS n FROM COMPOSITION c";
    assert_eq!(folder.run(&["query", "-d", "xml", count]).out, "n\n200\n");
}

/// A document that needs no template.
const PLAIN: &str = r#"{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.stays.v1",
    "name":{"_type":"DV_TEXT","value":"NAME"}}"#;

#[test]
fn document_of_a_folder_does_not_replace_another_one() {
    let folder = Folder::new();
    folder.write("in/visit.json", &PLAIN.replace("NAME", "first"));
    folder.write("second.json", &PLAIN.replace("NAME", "second"));
    let ran = folder.run(&[
        "convert",
        "second.json",
        "--to",
        "xml",
        "-o",
        "in/visit.xml",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = folder.run(&["convert", "in", "--to", "json", "-o", "out"]);
    assert_eq!(
        (ran.code, ran.err.replace('\\', "/").as_str()),
        (
            Some(1),
            "error: in/visit.xml: `out/visit.json` has the documents of `in/visit.json`: rename \
             one of the two files\n"
        )
    );
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    assert!(read("out/visit.json").contains("first"));
    // A file of the same folder that is still to be read is kept too.
    let before = ["in/visit.json", "in/visit.xml"].map(read);
    for to in ["xml", "json"] {
        let ran = folder.run(&["convert", "in", "--to", to, "-o", "in"]);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let problem = format!("`in/visit.{to}` is the input");
        assert_eq!(ran.err.matches(&problem).count(), 2, "{}", ran.err);
    }
    assert_eq!(["in/visit.json", "in/visit.xml"].map(read), before);
    let ran = folder.run(&["convert", "in/*", "--to", "json"]);
    assert_eq!(ran.code, Some(2), "several files need a folder");
}

#[test]
fn documents_behind_one_that_fails_are_converted() {
    let folder = Folder::new();
    write_definitions(&folder);
    let good = generator().composition(0).json;
    folder.write("in/1.json", &PLAIN.replace("NAME", "not for FLAT"));
    std::fs::write(folder.path().join("in/2.json"), b"{\xff}").unwrap();
    folder.write("in/3.json", "{");
    folder.write("in/4.json", &good);
    let arguments = [
        "convert",
        "in",
        "--to",
        "flat",
        "-d",
        "templates",
        "-o",
        "out",
    ];
    let ran = folder.run(&arguments);
    assert_eq!(ran.code, Some(1));
    for file in ["1.json", "2.json", "3.json"] {
        assert!(ran.err.contains(file), "{file}: {}", ran.err);
        assert!(!folder.path().join("out").join(file).exists());
    }
    assert!(folder.path().join("out/4.json").exists(), "{}", ran.err);
}

#[test]
fn several_documents_of_a_file_stay_readable() {
    let folder = Folder::new();
    let all = ["first", "second"].map(|name| PLAIN.replace("NAME", name));
    folder.write("all.json", &format!("[{}]", all.join(",")));
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let ran = folder.run(&["convert", "all.json", "--to", "json", "-o", "out.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let written: serde_json::Value = serde_json::from_str(&read("out.json")).unwrap();
    assert_eq!(written[1]["name"]["value"], "second");
    for output in [&[][..], &["-o", "out.xml"]] {
        let ran = folder.run(&[&["convert", "all.json", "--to", "xml"], output].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(ran.err.contains("existing folder by -o"), "{}", ran.err);
    }
    assert!(!folder.path().join("out.xml").exists());
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let ran = folder.run(&["convert", "all.json", "--to", "xml", "-o", "out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(read("out/all-2.xml").contains("second"));
}

#[test]
fn conversion_without_template_names_it() {
    let folder = Folder::new();
    folder.write("in.json", &generator().composition(0).json);
    let ran = folder.run(&["convert", "in.json", "--to", "flat"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("in.json: the template `sample."),
        "{}",
        ran.err
    );
    folder.write("bad.json", "{\"_type\":\"COMPOSITION\",\"wrong\":1}");
    let ran = folder.run(&["convert", "bad.json", "--to", "xml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("bad.json: error[RM"), "{}", ran.err);
}

#[test]
fn simplified_formats_of_other_documents_than_compositions_are_refused() {
    let folder = Folder::new();
    let list = r#"{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.stays.v1",
        "name":{"_type":"DV_TEXT","value":"Stays"}}"#;
    let status = r#"{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.plain.v1",
        "name":{"_type":"DV_TEXT","value":"Status"},"subject":{"_type":"PARTY_SELF"},
        "is_queryable":true,"is_modifiable":true}"#;
    for (class, text) in [("FOLDER", list), ("EHR_STATUS", status)] {
        folder.write("in.json", text);
        for to in ["flat", "structured"] {
            let ran = folder.run(&["convert", "in.json", "--to", to]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{class} {to}");
            let expected = format!(
                "in.json: FLAT and STRUCTURED represent a COMPOSITION, and the document is a {class}: write it with --to json"
            );
            assert!(ran.err.contains(&expected), "{}", ran.err);
        }
        let ran = folder.run(&["convert", "in.json", "--to", "json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
}

#[test]
fn example_is_valid_in_each_format() {
    let folder = sample();
    for to in ["json", "xml", "flat", "structured"] {
        for kind in ["full", "minimal"] {
            let file = format!("example.{kind}.{to}");
            let ran = folder.run(&[
                "example",
                VITAL_SIGNS,
                "--kind",
                kind,
                "--to",
                to,
                "-o",
                &file,
            ]);
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            let ran = folder.run(&["check", "-d", "templates", &file]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{file}");
        }
    }
}

#[test]
fn template_is_shown_in_each_form() {
    let folder = sample();
    let show = |form: &str| {
        let ran = folder.run(&["template", form, VITAL_SIGNS]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out
    };
    assert!(show("tree").contains("Systolic"));
    let web: serde_json::Value = serde_json::from_str(&show("web")).unwrap();
    assert_eq!(web["templateId"], "sample.vital_signs.v1");
    let paths = show("paths");
    let systolic = paths
        .lines()
        .find(|line| line.ends_with("\tSystolic"))
        .unwrap();
    let end =
        "/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value\tDV_QUANTITY\tSystolic";
    assert!(systolic.ends_with(end), "{systolic}");
    let ran = folder.run(&[
        "template",
        "tree",
        "guides/Sample_blood_pressure_category.v1.gdl2.json",
    ]);
    assert_eq!(ran.code, Some(1));
}

/// U+009B begins a sequence for a terminal, and XML permits it.
#[test]
fn control_characters_of_a_template_are_escaped() {
    let folder = Folder::new();
    let text = aqlite::samples::templates()
        .iter()
        .find(|template| template.text.contains(">Systolic<"))
        .map(|template| template.text.replace(">Systolic<", ">Sys\u{9b}tolic<"));
    folder.write("t.opt", &text.unwrap());
    for form in ["tree", "paths"] {
        let ran = folder.run(&["template", form, "t.opt"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert!(ran.out.contains(r"Sys\u{9b}tolic"), "{}", ran.out);
    }
}

#[test]
fn lines_of_a_file_are_documents() {
    let folder = Folder::new();
    let names = ["\"A\"", "\"B\"", "\"C\""];
    let one = |name: &str| PLAIN.replace("\"NAME\"", name).replace('\n', "");
    let lines = names.map(one);
    folder.write("all.ndjson", &format!("{}\n\n", lines.join("\n")));
    let ran = folder.run(&["convert", "all.ndjson", "--to", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let all: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let written = names.map(|name| name.trim_matches('"'));
    let found = all.as_array().unwrap().iter();
    let found: Vec<&str> = found
        .map(|d| d["name"]["value"].as_str().unwrap())
        .collect();
    assert_eq!(found, written);
    // A line that cannot be read does not hide the others.
    let broken = format!("{}\n{{\"name\":\n{}\n", lines[0], lines[1]);
    folder.write("broken.ndjson", &broken);
    let ran = folder.run(&["convert", "broken.ndjson", "--to", "json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("broken.ndjson:2: error["), "{}", ran.err);
    assert_eq!(ran.err.matches("RM0001").count(), 1, "{}", ran.err);
    assert_eq!(ran.out.matches("FOLDER.stays.v1").count(), 2, "{}", ran.out);
}

#[test]
fn a_file_without_documents_is_reported() {
    let folder = sample();
    let ran = folder.run(&["convert", VITAL_SIGNS, "--to", "json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let expected = "there is no document in this file";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let ran = folder.run(&["convert", "templates", "--to", "json", "-o", "none"]);
    assert_eq!(ran.code, Some(0));
    let expected = "warning: no documents in `templates`";
    assert!(ran.err.contains(expected), "{}", ran.err);
}
