//! The line editor: completion, highlighting, history, and input of several lines.

use super::command::COMMANDS;
use super::session::Session;
use crate::data::templates::Templates;
use crate::outcome::Failure;
use aqlite::aql::{self, Parameters, QueryOptions, TemplateLabels};
use nu_ansi_term::{Color, Style};
use reedline::{
    Completer, DescriptionMode, EditCommand, Emacs, FileBackedHistory, Highlighter, IdeMenu,
    InputMode, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, StyledText, Suggestion, ValidationResult,
    Validator, default_emacs_keybindings,
};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The number of entries of the history.
const HISTORY: usize = 10_000;

/// The most proposals of a menu.
const PROPOSALS: usize = 200;

const MENU: &str = "completions";

/// The input of the user.
pub enum Input {
    /// A statement or a command.
    Text(String),
    /// Ctrl-C at the prompt.
    Nothing,
    /// Ctrl-D.
    End,
}

/// The line editor of a session.
pub struct Editor(Reedline);

impl Editor {
    /// Creates the editor. A history file that cannot be used is left out.
    ///
    /// # Errors
    /// If a repository does not send its templates.
    pub fn new(session: &Session, history: Option<&Path>) -> Result<Editor, Failure> {
        let mut keys = default_emacs_keybindings();
        let next = vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ];
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(next),
        );
        keys.add_binding(
            KeyModifiers::ALT,
            KeyCode::Enter,
            ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
        );
        let menu = IdeMenu::default()
            .with_name(MENU)
            .with_max_completion_height(12)
            // A path of SELECT completes by the classes of FROM, which is behind the cursor.
            .with_input_mode(InputMode::FullBuffer)
            .with_description_mode(DescriptionMode::PreferRight);
        let completer = QueryCompleter {
            templates: session.source.templates()?,
            language: session.language.clone(),
        };
        let mut editor = Reedline::create()
            .with_completer(Box::new(completer))
            .with_highlighter(Box::new(QueryHighlighter))
            .with_validator(Box::new(QueryValidator))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_ansi_colors(std::env::var_os("NO_COLOR").is_none());
        if let Some(file) = history
            && let Ok(history) = FileBackedHistory::with_file(HISTORY, file.to_owned())
        {
            make_private(file);
            editor = editor.with_history(Box::new(history));
        }
        Ok(Editor(editor))
    }

    /// Reads a statement or a command.
    ///
    /// # Errors
    /// If the terminal fails.
    pub fn read(&mut self) -> Result<Input, Failure> {
        match self.0.read_line(&QueryPrompt) {
            Ok(Signal::Success(text)) => Ok(Input::Text(text)),
            Ok(Signal::CtrlD) => Ok(Input::End),
            Ok(_) => Ok(Input::Nothing),
            Err(error) => Err(Failure::Data(error.to_string())),
        }
    }
}

/// Lets only the user read the history: queries may name patients.
fn make_private(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Returns whether Enter runs a text: it is a command, ends with a semicolon or an empty line, is a
/// query, or has an error that more text cannot remove.
pub fn is_complete(text: &str) -> bool {
    let trimmed = text.trim_end();
    let is_ended = trimmed.ends_with(';') || text.ends_with("\n\n") || text.ends_with("\n");
    if trimmed.is_empty() || trimmed.trim_start().starts_with('.') || is_ended {
        return true;
    }
    match aql::parse(trimmed) {
        (Some(_), _) => true,
        (None, found) => found.iter().all(|d| d.span.start < trimmed.len()),
    }
}

struct QueryValidator;

impl Validator for QueryValidator {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_complete(line) {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

/// Completion by the templates of the data.
struct QueryCompleter {
    templates: Arc<Templates>,
    language: String,
}

impl Completer for QueryCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        if line.trim_start().starts_with('.') && !line.contains(' ') {
            return commands(line, pos);
        }
        // The query of `.explain QUERY` is completed as a query.
        let start = query_start(line);
        let (Some(query), Some(at)) = (line.get(start..), pos.checked_sub(start)) else {
            return Vec::new();
        };
        let labels = TemplateLabels {
            templates: self.templates.all().map(|t| &t.template).collect(),
            language: &self.language,
        };
        let found = aql::complete(query, at, &labels);
        let suggestion = |found: aql::Completion| Suggestion {
            value: found.insert,
            description: Some(description(&found.label, &found.detail)),
            span: Span {
                start: found.span.start + start,
                end: found.span.end + start,
            },
            ..Suggestion::default()
        };
        found.into_iter().take(PROPOSALS).map(suggestion).collect()
    }
}

fn query_start(line: &str) -> usize {
    if !line.trim_start().starts_with('.') {
        return 0;
    }
    line.find(' ').map_or(0, |at| at + 1)
}

fn description(label: &str, detail: &str) -> String {
    match (label, detail) {
        (label, "") => label.to_owned(),
        ("", detail) => detail.to_owned(),
        (label, detail) => format!("{label} ({detail})"),
    }
}

fn commands(line: &str, pos: usize) -> Vec<Suggestion> {
    let word = line.get(..pos).unwrap_or(line).trim_start();
    let start = pos.saturating_sub(word.len());
    let fitting = COMMANDS.iter().filter(|c| c.name.starts_with(word));
    let suggestion = |command: &super::command::Command| Suggestion {
        value: command.name.to_owned(),
        description: Some(command.help.to_owned()),
        span: Span { start, end: pos },
        append_whitespace: !command.argument.is_empty(),
        ..Suggestion::default()
    };
    fitting.map(suggestion).collect()
}

struct QueryHighlighter;

impl Highlighter for QueryHighlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        let mut at = 0;
        let (explanation, _) =
            aql::explain(line, &Parameters::new(), &QueryOptions::default(), &[]);
        for (kind, span) in explanation.tokens {
            let (Some(between), Some(token)) =
                (line.get(at..span.start), line.get(span.start..span.end))
            else {
                break;
            };
            styled.push((Style::new(), between.to_owned()));
            styled.push((style(kind), token.to_owned()));
            at = span.end;
        }
        let rest = line.get(at..).unwrap_or_default();
        styled.push((Style::new(), rest.to_owned()));
        styled
    }
}

fn style(kind: &str) -> Style {
    match kind {
        "keyword" => Style::new().fg(Color::Blue).bold(),
        "text" | "regular expression" | "term" | "address" => Style::new().fg(Color::Green),
        "number" | "boolean" => Style::new().fg(Color::Cyan),
        "archetype" | "code" => Style::new().fg(Color::Purple),
        "parameter" => Style::new().fg(Color::Yellow),
        "comment" => Style::new().dimmed(),
        "invalid" => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}

struct QueryPrompt;

impl Prompt for QueryPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("aqlite")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("   ...> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}
