//! Each statement of the lesson, shown with numbers.
//!
//! `cargo run --example lesson_facts`

#[path = "../six_tokens/backend.rs"]
mod backend;
mod context;
mod cost;
mod order;
mod saturation;
mod spread;

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use backend::{Backend, Choice};
use clap::Parser;
use context::Context;
use cost::Cost;
use indicatif::ProgressBar;
use order::Order;
use saturation::Saturation;
use spread::{KINDS, NORMAL, Spread};
use wgpu_attention::{Error, Inputs, Problem, Shape};
use wgpu_attention_support::lesson::demo::Demo;
use wgpu_attention_support::lesson::tokens::{Attend, Tokens};

/// What the lesson says of attention, shown with numbers: why scores are divided, what happens
/// if they are not, what order and company do to a word, and how many scores there are.
#[derive(Parser)]
struct Args {
    /// Where to compute: on the GPU, if there is one, unless told otherwise
    #[arg(long)]
    backend: Option<Choice>,
}

fn main() -> ExitCode {
    match show(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lesson_facts: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Computes one statement's numbers and puts them into words.
type Section = fn(Attend<'_>) -> Result<String, Error>;

fn show(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let sections: [(&str, Section); 5] = [
        ("Dot products spread by sqrt(d_k)", spreads),
        ("Without the division the softmax is nearly one-hot", saturations),
        ("Attention does not know the order of its tokens", orders),
        ("One word, two sentences, two vectors", contexts),
        ("Twice the tokens, four times the scores", costs),
    ];
    let backend = Backend::open(args.backend)?;
    let attend = |problem: &Problem, inputs: Inputs<'_>| backend.attend(problem, inputs);
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    for (i, (title, section)) in sections.into_iter().enumerate() {
        spinner.set_message(title);
        let text = section(&attend)?;
        spinner.suspend(|| writeln!(stdout(), "{}. {title}\n\n{text}\n", i + 1))?;
    }
    spinner.finish_and_clear();
    writeln!(stdout(), "Computed by {backend}.")?;
    Ok(())
}

fn spreads(attend: Attend<'_>) -> Result<String, Error> {
    let mut text = "\
q . k adds d_k products. With independent entries of mean 0 and variance 1 every
product has variance 1, and so the sum has variance d_k: its spread, the standard
deviation, is sqrt(d_k), whatever kind of numbers they are. Divided by sqrt(d_k)
it is 1 for every d_k. Of half a million dot products each:

  d_k  numbers                sqrt(d_k)  spread  divided"
        .to_string();
    let dims = [2, 16, 32, 64, 128, 256].map(|dim| (NORMAL, dim));
    let kinds = KINDS[1..].iter().map(|&kind| (kind, 64));
    for (kind, dim) in dims.into_iter().chain(kinds) {
        let shape = Shape { value_dim: 1, ..Shape::self_attention(128, 1, 64, dim) };
        text += &format!("\n{}", Spread::measure(kind, shape, attend)?);
    }
    Ok(text)
}

fn saturations(attend: Attend<'_>) -> Result<String, Error> {
    let mut text = "\
1,000 queries of d_k = 64, normal(0, 1), each with keys of its own. The gradient of the
softmax is dp_i / ds_j = p_i (delta_ij - p_j). Norm: over all keys, for the median query;
1 in 10: one query in ten is below. One key: p (1 - p), the median over keys.

  keys  scores     largest weight       entropy    norm  1 in 10  one key"
        .to_string();
    for keys in [6, 16, 64] {
        text += &format!("\n{}", Saturation::measure(1000, keys, attend)?);
    }
    text += "

Undivided, one key takes nearly all, and the gradient of the others vanishes: nothing
leads training to them. What norm there is comes from the few keys that compete.";
    Ok(text)
}

fn orders(attend: Attend<'_>) -> Result<String, Error> {
    let differences = |tokens: &Tokens, order: &[usize]| {
        let [plain, causal] =
            [false, true].map(|causal| Order::compare(tokens, order, causal, attend));
        Ok::<_, Error>((plain?, causal?))
    };
    let (plain, causal) = differences(&order::dog_bites_man(), &[2, 1, 0])?;
    let demo = Tokens::demo(&Demo::load());
    let (six, six_causal) = differences(&demo, &[3, 0, 5, 1, 4, 2])?;
    Ok(format!(
        "\
A word's vector (animal, human, action) is its query, key and value at once. In
another order every word gets the output that it had: attention takes both for the
same sentence.

{plain}

Under a causal mask a word sees only those before it, and order counts:

{causal}

\"The cat sat on the mat\" as \"on The mat cat the sat\": {} without a mask,
{} with a causal one. The same sums in another order may be rounded
differently: that is all the difference there is without a mask.",
        six.readable(),
        six_causal.readable()
    ))
}

fn contexts(attend: Attend<'_>) -> Result<String, Error> {
    let context = Context::compare(attend)?;
    Ok(format!(
        "\
\"bank\" enters with one vector. Its output mixes in the word beside it:

{context}"
    ))
}

fn costs(_: Attend<'_>) -> Result<String, Error> {
    let mut text = "\
Each of n queries meets each of n keys: n x n scores a head, n (n + 1) / 2 of them
causal. The staged kernels store them all, 4 bytes each; the fused one stores none.
MFLOP: for 64 dims, keys and values.

  tokens      scores  doubling  causal scores  doubling   stored     MFLOP"
        .to_string();
    for tokens in [6, 12, 64, 128, 256, 512, 1024, 2048, 4096, 8192] {
        text += &format!("\n{}", Cost::of(tokens));
    }
    Ok(text)
}
