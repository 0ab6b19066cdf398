//! Pages of the documentation and their fenced blocks.

use std::path::{Path, PathBuf};

/// Pages outside `docs/`.
const OTHERS: [&str; 7] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "cli/README.md",
    "fuzz/README.md",
    "www/package/README.md",
];

/// A page of the documentation.
pub struct Page {
    /// Its path from the root of the project.
    pub name: String,
    /// Its Markdown.
    pub text: String,
}

/// A part of a page.
pub enum Part {
    /// A line outside of blocks.
    Line(String),
    /// A fenced block.
    Block(Block),
}

/// A fenced block of code.
#[derive(Clone)]
pub struct Block {
    /// The number of the line with the opening fence, from 1.
    pub line: usize,
    /// The blanks before the fences: a block in a list is indented.
    pub indent: String,
    /// The info string: the language, then words that say how the block is tested.
    pub info: String,
    /// The lines between the fences.
    pub body: Vec<String>,
}

impl Block {
    /// Returns the first word of the info string.
    pub fn language(&self) -> &str {
        self.info.split([' ', ',']).next().unwrap_or_default()
    }

    /// Returns the name behind `file=`: the block is the content of this file.
    pub fn file(&self) -> Option<&str> {
        self.info
            .split(' ')
            .find_map(|word| word.strip_prefix("file="))
    }

    /// Returns the reason behind `not-run:`.
    pub fn reason(&self) -> Option<&str> {
        let (_, reason) = self.info.split_once("not-run:")?;
        Some(reason.trim())
    }

    /// Returns whether the block has the command that starts the server of the page.
    pub fn is_server(&self) -> bool {
        self.info.split(' ').any(|word| word == "server")
    }

    /// Returns whether the block consists of commands of a shell.
    pub fn is_shell(&self) -> bool {
        ["sh", "console"].contains(&self.language())
    }

    /// Returns the lines with commands: all lines, or those behind `$ `.
    pub fn commands(&self) -> Vec<&str> {
        let lines = self.body.iter().map(String::as_str);
        match self.language() {
            "console" => lines.filter_map(|line| line.strip_prefix("$ ")).collect(),
            "sh" => lines.collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the block as it is in the page.
    pub fn markdown(&self) -> String {
        let fence = |info: &str| format!("{}```{info}\n", self.indent);
        let body = self.body.iter().map(|line| match line.is_empty() {
            true => String::from("\n"),
            false => format!("{}{line}\n", self.indent),
        });
        [fence(&self.info), body.collect(), fence("")].concat()
    }

    /// Returns the text of the block.
    pub fn text(&self) -> String {
        self.body.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Page {
    /// Reads a page.
    pub fn read(name: &str) -> Page {
        let text = std::fs::read_to_string(root().join(name));
        Page {
            name: name.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }

    /// Returns the lines and blocks of the page.
    pub fn parts(&self) -> Vec<Part> {
        let (mut parts, mut open) = (Vec::new(), None::<Block>);
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            open = match (open, fence) {
                (Some(block), Some("")) => {
                    parts.push(Part::Block(block));
                    None
                }
                (Some(mut block), _) => {
                    let line = line.strip_prefix(&block.indent).unwrap_or(line);
                    block.body.push(line.to_owned());
                    Some(block)
                }
                (None, Some(info)) => Some(Block {
                    line: index + 1,
                    indent: " ".repeat(line.len() - line.trim_start().len()),
                    info: info.trim().to_owned(),
                    body: Vec::new(),
                }),
                (None, None) => {
                    parts.push(Part::Line(line.to_owned()));
                    None
                }
            };
        }
        assert!(open.is_none(), "{}: a block has no end", self.name);
        parts
    }

    /// Returns the blocks of the page.
    pub fn blocks(&self) -> Vec<Block> {
        let parts = self.parts().into_iter();
        parts
            .filter_map(|part| match part {
                Part::Block(block) => Some(block),
                Part::Line(_) => None,
            })
            .collect()
    }
}

/// Returns the root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads all pages: those of `docs/` and those beside the sources.
pub fn pages() -> Vec<Page> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .chain(OTHERS.map(str::to_owned))
        .collect();
    names.sort();
    names.iter().map(|name| Page::read(name)).collect()
}
