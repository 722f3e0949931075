//! What the example prints. Tests read the same text.

use wgpu_attention::Error;

use super::entropy::entropy;
use super::figures::{bar, decimals, percent, vector};
use super::steps::{Form, Row, rows};
use super::tokens::{Attend, Tokens};

/// A query is made so many times longer to see what its length does.
const FACTORS: [f32; 4] = [0.25, 0.5, 1.0, 2.0];

/// The word that the lesson follows.
const WORD: &str = "sat";

const CAUSAL: &str = "Causal: no token sees a later one.";

/// Tables for one query or all, the weights, and, in the lesson's own form, its variations.
pub fn page(
    tokens: &Tokens,
    query: Option<usize>,
    form: Form,
    attend: Attend<'_>,
) -> Result<String, Error> {
    let all = rows(tokens, &tokens.q, form, attend)?;
    let mut sections = vec![introduction(tokens, form)];
    let asked = query.map_or(0..tokens.words.len(), |i| i..i + 1);
    sections.extend(asked.map(|i| asks(tokens, form, i, &all[i])));
    sections.push(weights(
        tokens,
        "All weights and outputs: a row is a query, a column a key.",
        &all,
    ));
    if form.divided && !form.causal {
        let lesson_s = || tokens.words.iter().position(|word| word == WORD).unwrap_or(0);
        sections.push(lengths(tokens, query.unwrap_or_else(lesson_s), attend)?);
        let causal = Form { causal: true, ..form };
        let rows = rows(tokens, &tokens.q, causal, attend)?;
        sections.push(weights(tokens, CAUSAL, &rows));
    }
    let sections: Vec<_> = sections.iter().map(|lines| lines.join("\n")).collect();
    Ok(sections.join("\n\n"))
}

/// The words with their vectors, and the steps.
fn introduction(tokens: &Tokens, form: Form) -> Vec<String> {
    let mut lines = vec![
        format!("\"{}\"", tokens.words.join(" ")),
        String::new(),
        format!("{:>7}  {:>13}  {:>14}  {:>14}", "token", "query q", "key k", "value v"),
    ];
    for (i, word) in tokens.words.iter().enumerate() {
        let [q, k, v] = [&tokens.q, &tokens.k, &tokens.v].map(|part| vector(at(tokens, part, i)));
        lines.push(format!("{word:>7}  {q:>13}  {k:>14}  {v:>14}"));
    }
    lines.push(String::new());
    lines.push(match form.divided {
        true => format!(
            "For each query: its dot product with every key; divided by sqrt({}); softmax\n\
             makes weights of them; the output is the values, mixed by weight.",
            tokens.dim
        ),
        false => "For each query: its dot product with every key; no division; softmax makes\n\
                  weights of them; the output is the values, mixed by weight."
            .into(),
    });
    if form.causal {
        lines.push(CAUSAL.into());
    }
    lines
}

/// One query's way through the steps.
fn asks(tokens: &Tokens, form: Form, i: usize, row: &Row) -> Vec<String> {
    let word = &tokens.words[i];
    let divided = |text: &str| if form.divided { format!("  {text:>9}") } else { String::new() };
    let sqrt = format!("/ sqrt({})", tokens.dim);
    let mut lines = vec![
        format!("{word} asks: q_{word} = {}", vector(at(tokens, &tokens.q, i))),
        format!("{:>7}  {:>6}{}  {:>6}", "key", "q.k", divided(&sqrt), "weight"),
    ];
    for (j, key) in tokens.words.iter().enumerate() {
        let [dot, score] = [row.dots[j], row.scores[j]].map(decimals);
        let line = match is_hidden(row, j) {
            true => format!("{key:>7}  {dot:>6}{}  {:>6}", divided(&score), "hidden"),
            false => {
                let [weight, bar] = [percent(row.weights[j]), bar(row.weights[j], 30)];
                format!("{key:>7}  {dot:>6}{}  {weight:>6}  {bar}", divided(&score))
            }
        };
        lines.push(line.trim_end().into());
    }
    let most = most(&row.weights);
    let [to, weight] = [&tokens.words[most], &percent(row.weights[most])];
    lines.push(format!("  {}", dot_product(tokens, i, most, row.dots[most])));
    lines.push(format!("  {word} attends most to {to}, {weight}"));
    let mixed = (0..tokens.words.len()).filter(|&j| !is_hidden(row, j));
    let mixed = mixed.map(|j| format!("{} v_{}", decimals(row.weights[j]), tokens.words[j]));
    let mixed: Vec<_> = mixed.collect();
    lines.push(format!("  o_{word} = {} = {}", mixed.join(" + "), vector(&row.output)));
    lines
}

/// q_i . k_j, written out.
fn dot_product(tokens: &Tokens, i: usize, j: usize, dot: f32) -> String {
    let factor = |x: f32| if x < 0.0 { format!("({})", decimals(x)) } else { decimals(x) };
    let (q, k) = (at(tokens, &tokens.q, i), at(tokens, &tokens.k, j));
    let terms: Vec<_> =
        q.iter().zip(k).map(|(&q, &k)| format!("{} x {}", factor(q), factor(k))).collect();
    let [query, key] = [i, j].map(|at| &tokens.words[at]);
    format!("q_{query} . k_{key} = {} = {}", terms.join(" + "), decimals(dot))
}

/// All weights and outputs: a row is a query, a column a key.
fn weights(tokens: &Tokens, title: &str, rows: &[Row]) -> Vec<String> {
    let keys: String = tokens.words.iter().map(|key| format!("  {key:>4}")).collect();
    let header = format!("{:>7}{keys}  {:>5}  {:>14}", "", "sum", "output");
    let mut lines = vec![title.into(), header];
    for (row, word) in rows.iter().zip(&tokens.words) {
        let (mut cells, mut sum) = (String::new(), 0.0);
        for (j, &weight) in row.weights.iter().enumerate() {
            let text = if is_hidden(row, j) { "-".into() } else { decimals(weight) };
            sum += text.parse().unwrap_or(0.0);
            cells += &format!("  {text:>4}");
        }
        let [sum, output] = [decimals(sum), vector(&row.output)];
        lines.push(format!("{word:>7}{cells}  {sum:>5}  {output:>14}"));
    }
    lines.push("Exact weights of a row sum to 1; \"sum\" adds the rounded ones.".into());
    lines
}

/// One query made shorter and longer, and without the division.
fn lengths(tokens: &Tokens, i: usize, attend: Attend<'_>) -> Result<Vec<String>, Error> {
    let word = &tokens.words[i];
    let query = at(tokens, &tokens.q, i);
    let queries: Vec<f32> = FACTORS.iter().flat_map(|f| query.iter().map(move |q| f * q)).collect();
    let mut series = rows(tokens, &queries, Form::LESSON, attend)?;
    series.extend(rows(tokens, query, Form { divided: false, causal: false }, attend)?);
    let labels = FACTORS.iter().map(|factor| format!("x {factor}"));
    let labels = labels.chain(["undivided".into()]);

    let keys: String = tokens.words.iter().map(|key| format!("  {key:>4}")).collect();
    let mut lines = vec![
        format!("What if q_{word} were shorter or longer, or its dot products left undivided?"),
        format!("{:>9}{keys}  {:>7}  {:>6}  {:>14}", "", "entropy", "tokens", "output"),
    ];
    for (row, label) in series.iter().zip(labels) {
        let cells: String = row.weights.iter().map(|&w| format!("  {:>4}", percent(w))).collect();
        let entropy = entropy(&row.weights);
        let (tokens, output) = (entropy.exp(), vector(&row.output));
        lines.push(format!("{label:>9}{cells}  {entropy:>7.2}  {tokens:>6.2}  {output:>14}"));
    }
    let (n, dim) = (tokens.words.len(), tokens.dim);
    lines.push(format!(
        "Entropy: 0 if one key gets all, ln {n} = {:.2} if all get the same; tokens = e^entropy,\n\
         over how many the weight is spread. To leave the division out is to make every\n\
         query sqrt({dim}) = {:.2} times as long.",
        (n as f64).ln(),
        (dim as f64).sqrt()
    ));
    Ok(lines)
}

fn at<'a>(tokens: &Tokens, part: &'a [f32], i: usize) -> &'a [f32] {
    &part[i * tokens.dim..][..tokens.dim]
}

fn is_hidden(row: &Row, j: usize) -> bool {
    row.scores[j] == f32::NEG_INFINITY
}

fn most(weights: &[f32]) -> usize {
    (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap_or(0)
}
