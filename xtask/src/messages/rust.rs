//! Finds the messages in Rust text: string literals, the texts of `#[error]`, and the help
//! that clap makes of doc comments.

use super::is_message;
use super::tokens::{Token, tokens};
use std::ops::Range;

/// Macros and methods whose texts appear only if the code is wrong.
const ASSERTIONS: [&str; 12] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "expect",
    "expect_err",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
];

/// Arguments of clap's attributes that hold help.
const HELP: [&str; 6] = ["about", "after_help", "after_long_help", "help", "long_about", "long_help"];

/// Derives that make help of the doc comments inside of an item. `Parser` also uses the comment of the item itself.
const CLAP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Features that are off in the programs that ship.
const FEATURES_OF_TESTS: [&str; 2] = ["fuzzing", "mutation-testing"];

/// Keywords of items and statements that end with a semicolon, even if they contain braces.
const ENDS_WITH_SEMICOLON: [&str; 5] = ["const", "let", "static", "type", "use"];

/// Keywords of items that end with a closing brace or a semicolon, so that a comma does not end them.
const ENDS_WITH_BRACE: [&str; 9] = ["async", "enum", "extern", "fn", "impl", "macro_rules", "mod", "struct", "trait"];

/// Returns the messages in the order of the text.
pub(super) fn messages(text: &str) -> Vec<String> {
    let mut found = Search::run(text).found;
    found.retain(|text| is_message(text));
    found
}

/// Returns the names of the modules that the text declares, and that have a file but do not ship.
pub(super) fn modules_not_shipped(text: &str) -> Vec<String> {
    Search::run(text).not_shipped
}

struct Search<'t> {
    tokens: Vec<Token<'t>>,
    /// The index of the next token.
    at: usize,
    found: Vec<String>,
    not_shipped: Vec<String>,
}

/// What an attribute says about the item after it.
enum Attribute {
    /// The item is not in a program that ships.
    NotShipped,
    /// The doc comments in the item are help; `own` if the comment of the item is help, too.
    Help {
        own: bool,
    },
    Other,
}

impl<'t> Search<'t> {
    fn run(text: &'t str) -> Search<'t> {
        let mut search = Search { tokens: tokens(text), at: 0, found: Vec::new(), not_shipped: Vec::new() };
        while search.at < search.tokens.len() {
            search.group(false);
        }
        search
    }

    /// Searches up to the end of a group in parentheses, brackets or braces, and consumes its end.
    fn group(&mut self, docs_are_help: bool) {
        let mut docs: Vec<&'t str> = Vec::new();
        // How many messages were found before the docs and attributes of the next item.
        let mut before_item = self.found.len();
        let (mut item_is_help, mut body_is_help) = (false, false);
        while let Some(token) = self.tokens.get(self.at).cloned() {
            self.at += 1;
            match token {
                Token::Doc(line) => {
                    docs.push(line);
                    continue;
                }
                Token::Mark('#') => {
                    if let Some(attribute) = self.attribute() {
                        match attribute {
                            Attribute::NotShipped => {
                                self.skip_item();
                                self.note_module();
                                self.found.truncate(before_item);
                                docs.clear();
                            }
                            Attribute::Help { own } => (item_is_help, body_is_help) = (own, true),
                            Attribute::Other => {}
                        }
                        continue;
                    }
                }
                _ => {}
            }
            if docs_are_help || item_is_help {
                self.found.splice(before_item..before_item, paragraphs(&docs));
            }
            docs.clear();
            item_is_help = false;
            match token {
                Token::Text(text) => self.found.push(text),
                Token::Name(name) if ASSERTIONS.contains(&name) => self.skip_call(),
                Token::Mark('{') => {
                    self.group(docs_are_help || body_is_help);
                    body_is_help = false;
                }
                Token::Mark('(' | '[') => self.group(docs_are_help),
                Token::Mark(')' | ']' | '}') => return,
                _ => {}
            }
            before_item = self.found.len();
        }
    }

    /// Reads the attribute after a `#`, if there is one, and finds the messages in it.
    fn attribute(&mut self) -> Option<Attribute> {
        let is_inner = self.tokens.get(self.at) == Some(&Token::Mark('!'));
        let start = self.at + usize::from(is_inner);
        if self.tokens.get(start) != Some(&Token::Mark('[')) {
            return None;
        }
        self.at = start;
        let inside = self.skip_group();
        let tokens = &self.tokens[inside];
        let names = |name: &str| tokens.contains(&Token::Name(name));
        Some(match tokens.first() {
            Some(Token::Name("cfg")) if !is_inner => {
                let is_feature =
                    |token: &Token| matches!(token, Token::Text(text) if FEATURES_OF_TESTS.contains(&text.as_str()));
                let is_off = !names("not") && (names("test") || tokens.iter().any(is_feature));
                if is_off { Attribute::NotShipped } else { Attribute::Other }
            }
            Some(Token::Name("derive")) if CLAP.iter().any(|name| names(name)) => {
                Attribute::Help { own: names("Parser") }
            }
            Some(Token::Name("error")) => {
                self.found.extend(tokens.iter().filter_map(text));
                Attribute::Other
            }
            Some(Token::Name("arg" | "command" | "value")) => {
                let help = tokens
                    .windows(3)
                    .filter(|three| matches!(three, [Token::Name(name), Token::Mark('='), _] if HELP.contains(name)));
                self.found.extend(help.filter_map(|three| text(&three[2])));
                Attribute::Other
            }
            _ => Attribute::Other,
        })
    }

    /// Skips the item, statement, field, variant or arm that starts here.
    fn skip_item(&mut self) {
        let (mut comma_ends, mut brace_ends) = (true, true);
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Mark('(' | '[') => drop(self.skip_group()),
                Token::Mark('{') => {
                    self.skip_group();
                    if brace_ends {
                        return;
                    }
                }
                // The end of the group that contains the item.
                Token::Mark(')' | ']' | '}') => return,
                token => {
                    match token {
                        Token::Name(name) if ENDS_WITH_SEMICOLON.contains(name) => {
                            (comma_ends, brace_ends) = (false, false);
                        }
                        Token::Name(name) if ENDS_WITH_BRACE.contains(name) => (comma_ends, brace_ends) = (false, true),
                        _ => {}
                    }
                    let is_end = *token == Token::Mark(';') || (comma_ends && *token == Token::Mark(','));
                    self.at += 1;
                    if is_end {
                        return;
                    }
                }
            }
        }
    }

    /// Notes the name of a module if the skipped item is `mod name;`.
    fn note_module(&mut self) {
        if let [.., Token::Name("mod"), Token::Name(name), Token::Mark(';')] = self.tokens[..self.at] {
            self.not_shipped.push(name.to_owned());
        }
    }

    /// Skips the arguments of a macro or method whose name was read.
    fn skip_call(&mut self) {
        let start = self.at + usize::from(self.tokens.get(self.at) == Some(&Token::Mark('!')));
        if matches!(self.tokens.get(start), Some(Token::Mark('(' | '[' | '{'))) {
            self.at = start;
            self.skip_group();
        }
    }

    /// Skips the group that starts here, and returns the range of the tokens in it.
    fn skip_group(&mut self) -> Range<usize> {
        let start = self.at + 1;
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                Token::Mark('(' | '[' | '{') => depth += 1,
                Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return start..self.at - 1;
            }
        }
        start..self.at
    }
}

fn text(token: &Token) -> Option<String> {
    match token {
        Token::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Joins the lines of each paragraph, as clap does.
fn paragraphs(docs: &[&str]) -> Vec<String> {
    docs.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()).map(|lines| lines.join(" ")).collect()
}
