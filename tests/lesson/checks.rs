//! What the lesson prints and what its demo computes, against what an implementation makes of it.

use wgpu_attention::Error;

use wgpu_attention_support::lesson::demo::Demo;
use wgpu_attention_support::lesson::entropy::entropy;
use wgpu_attention_support::lesson::figures::{decimals, vector};
use wgpu_attention_support::lesson::page::page;
use wgpu_attention_support::lesson::steps::{Form, Row, rows};
use wgpu_attention_support::lesson::tokens::{Attend, Tokens};

/// The figures that the lesson prints.
const FIGURES: usize = 64;

/// f32 numbers of this size may be so far from f64 ones.
const TOLERANCE: f64 = 1.5e-6;

const UNDIVIDED: Form = Form { divided: false, causal: false };
const CAUSAL: Form = Form { divided: true, causal: true };

/// Texts found and texts expected.
#[derive(Default)]
struct Texts {
    checked: usize,
    wrong: Vec<String>,
}

impl Texts {
    fn check(&mut self, what: &str, got: &[&str], want: &[&str]) {
        self.checked += want.len();
        if got != want {
            self.wrong.push(format!("{what}: {got:?}, not {want:?}"));
        }
    }

    fn verdict(self) -> usize {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        self.checked
    }
}

/// The whole page as the example prints it: the lesson's figures, the series, "attends most to".
pub fn printed(attend: Attend<'_>) -> Result<(), Error> {
    let demo = Demo::load();
    let tokens = Tokens::demo(&demo);
    let text = page(&tokens, None, Form::LESSON, attend)?;
    let mut texts = Texts::default();
    lesson_s_figures(&text, &demo, &mut texts);
    assert_eq!(texts.verdict(), FIGURES);
    most(&text, &demo);
    assert_eq!(series(&text, &demo), 5 * (6 + 2 + 1) + 6 * (6 + 1));

    let undivided = page(&tokens, None, UNDIVIDED, attend)?;
    let mut texts = Texts::default();
    let percent = demo.texts("/scaling_off/sat/percent");
    let table = cells(&undivided, "sat asks", 2);
    texts.check("undivided", &table.iter().map(|row| row[2]).collect::<Vec<_>>(), &percent);
    let want: Vec<_> = demo.numbers("/scaling_off/weights").into_iter().map(two).collect();
    let want: Vec<_> = want.iter().map(String::as_str).collect();
    let matrix = cells(&undivided, "All weights", 2);
    let weights: Vec<_> = matrix.iter().flat_map(|row| &row[1..7]).copied().collect();
    texts.check("undivided weights", &weights, &want);
    assert_eq!(texts.verdict(), 6 + 36);
    Ok(())
}

fn lesson_s_figures(text: &str, demo: &Demo, texts: &mut Texts) {
    let printed = |part: &str| demo.texts(&format!("/printed/{part}"));
    let last = |line: &str, mark: &str| line.rsplit(mark).next().unwrap_or_default().to_string();

    let asks = section(text, "sat asks");
    texts.check("q_sat", &[&last(asks[0], "q_sat = ")], &printed("q_sat"));
    let vectors = cells(text, "token", 1);
    let k_cat = vectors[1][3..5].join(" ");
    texts.check("k_cat", &[&k_cat], &printed("k_cat"));
    let table = cells(text, "sat asks", 2);
    for (i, part) in ["raw_sat", "scaled_sat", "percent_sat"].into_iter().enumerate() {
        let column: Vec<_> = table.iter().map(|row| row[1 + i]).collect();
        texts.check(part, &column, &printed(part));
    }
    let dot = "  q_sat . k_cat = 2.40 x 2.20 + 0.60 x 1.00 = 5.88";
    assert!(asks.contains(&dot), "{asks:?}");
    let output = asks.iter().find(|line| line.starts_with("  o_sat")).expect("the output");
    let output = last(output, " = ").replace(['(', ')'], "");
    texts.check("out_sat", &output.split(", ").collect::<Vec<_>>(), &printed("out_sat"));

    let matrix = cells(text, "All weights", 2);
    let weights: Vec<_> = matrix.iter().flat_map(|row| &row[1..7]).copied().collect();
    texts.check("weights", &weights, &printed("weights"));
    let sums: Vec<_> =
        demo.numbers("/printed_row_sums").iter().map(|sum| format!("{sum:.2}")).collect();
    let sums: Vec<_> = sums.iter().map(String::as_str).collect();
    texts.check("sums", &matrix.iter().map(|row| row[7]).collect::<Vec<_>>(), &sums);
}

fn most(text: &str, demo: &Demo) {
    let weights = demo.numbers("/computed/weights");
    let words = demo.texts("/tokens").into_iter().zip(demo.texts("/computed/argmax"));
    for ((word, most), weights) in words.zip(weights.chunks(6)) {
        let share = 100.0 * weights.iter().fold(0.0, |a: f64, &b| a.max(b));
        let line = format!("  {word} attends most to {most}, {share:.0}%");
        let asks = section(text, &format!("{word} asks"));
        assert!(asks.contains(&line.as_str()), "no \"{line}\"");
    }
}

/// The query's lengths, the division left out, and the causal form; how many figures.
fn series(text: &str, demo: &Demo) -> usize {
    let mut texts = Texts::default();
    let parts = ["0.25", "0.5", "1", "2"].map(|x| format!("/temperature_q_sat_times/{x}"));
    let parts = parts.into_iter().chain(["/scaling_off/sat".into()]);
    for (line, part) in section(text, "What if")[2..].iter().zip(parts) {
        let got: Vec<_> = line.split_whitespace().rev().collect();
        let mut want: Vec<_> =
            demo.texts(&format!("{part}/percent")).into_iter().map(String::from).collect();
        let number = |name: &str| demo.numbers(&format!("{part}/{name}"));
        want.extend(["entropy_nats", "effective_tokens"].map(|name| two(number(name)[0])));
        let output = narrow(&number("out"));
        let got_output = format!("{} {}", got[1], got[0]);
        texts.check(&part, &[&got_output], &[&vector(&output)]);
        let got: Vec<_> = got[2..10].iter().rev().copied().collect();
        texts.check(&part, &got, &want.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let [weights, out] = ["weights", "out"].map(|part| demo.numbers(&format!("/causal/{part}")));
    for (i, got) in cells(text, "Causal", 2).iter().enumerate() {
        let cell = |(j, &weight): (usize, &f64)| if j > i { "-".into() } else { two(weight) };
        let want: Vec<_> = weights[6 * i..][..6].iter().enumerate().map(cell).collect();
        let want: Vec<_> = want.iter().map(String::as_str).collect();
        texts.check("causal weights", &got[1..7], &want);
        let output = vector(&narrow(&out[2 * i..][..2]));
        texts.check("causal output", &[&got[8..].join(" ")], &[&output]);
    }
    texts.verdict()
}

fn two(x: f64) -> String {
    decimals(x as f32)
}

fn narrow(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}

/// The lines from the one that starts so to the next empty one.
fn section<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with(start));
    let lines: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "no section \"{start}\"");
    lines
}

/// The words of the six lines of a section that begin with a token, below so many others.
fn cells<'a>(text: &'a str, start: &str, above: usize) -> Vec<Vec<&'a str>> {
    let lines = section(text, start).into_iter().skip(above).take(6);
    let rows: Vec<Vec<_>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let words: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(words, ["The", "cat", "sat", "on", "the", "mat"], "{start}");
    rows
}

/// Everything the demo file has exact values for.
pub fn exact(attend: Attend<'_>) -> Result<(), Error> {
    let demo = Demo::load();
    let tokens = Tokens::demo(&demo);
    let near = |what: &str, got: Vec<f64>| {
        let want = demo.numbers(what);
        assert_eq!(got.len(), want.len(), "{what}");
        for (got, want) in got.iter().zip(want) {
            let most = TOLERANCE * want.abs().max(1.0);
            assert!((got - want).abs() <= most, "{what}: {got}, not {want}");
        }
    };
    let all = |rows: &[Row], part: fn(&Row) -> &[f32]| {
        rows.iter().flat_map(part).map(|&x| f64::from(x)).collect::<Vec<_>>()
    };
    let entropies = |rows: &[Row]| rows.iter().map(|row| entropy(&row.weights)).collect();

    let lesson = rows(&tokens, &tokens.q, Form::LESSON, attend)?;
    near("/computed/raw", all(&lesson, |row| &row.dots));
    near("/computed/scaled", all(&lesson, |row| &row.scores));
    near("/computed/weights", all(&lesson, |row| &row.weights));
    near("/computed/out", all(&lesson, |row| &row.output));
    near("/computed/entropy_nats", entropies(&lesson));

    let causal = rows(&tokens, &tokens.q, CAUSAL, attend)?;
    near("/causal/weights", all(&causal, |row| &row.weights));
    near("/causal/out", all(&causal, |row| &row.output));

    let undivided = rows(&tokens, &tokens.q, UNDIVIDED, attend)?;
    near("/scaling_off/weights", all(&undivided, |row| &row.weights));
    near("/scaling_off/entropy_nats", entropies(&undivided));
    let sat = &undivided[2..3];
    near("/scaling_off/sat/weights", all(sat, |row| &row.weights));
    near("/scaling_off/sat/out", all(sat, |row| &row.output));

    for factor in ["0.25", "0.5", "1", "2"] {
        let times: f32 = factor.parse().expect("a number");
        let query: Vec<f32> = tokens.q[4..6].iter().map(|x| times * x).collect();
        let row = rows(&tokens, &query, Form::LESSON, attend)?;
        let part = |name: &str| format!("/temperature_q_sat_times/{factor}/{name}");
        near(&part("weights"), all(&row, |row| &row.weights));
        near(&part("out"), all(&row, |row| &row.output));
        near(&part("entropy_nats"), entropies(&row));
    }
    Ok(())
}
