//! One word in two sentences: attention gives it two vectors.

use std::fmt;

use wgpu_attention::{Error, Inputs, Problem};

use wgpu_attention_support::lesson::figures::decimals;
use wgpu_attention_support::lesson::tokens::{Attend, Tokens};

const AXES: [&str; 4] = ["water", "money", "place", "paper"];
const RIVER: [f32; 4] = [2.0, 0.0, 0.5, 0.0];
const BANK: [f32; 4] = [1.0, 1.0, 1.0, 0.2];
const ACCOUNT: [f32; 4] = [0.0, 2.0, 0.0, 1.0];

/// What becomes of "bank".
pub struct Context {
    pub river_bank: Vec<f32>,
    pub bank_account: Vec<f32>,
}

impl Context {
    pub fn compare(attend: Attend<'_>) -> Result<Context, Error> {
        let river_bank = output(["river", "bank"], [RIVER, BANK], attend)?.split_off(4);
        let mut bank_account = output(["bank", "account"], [BANK, ACCOUNT], attend)?;
        bank_account.truncate(4);
        Ok(Context { river_bank, bank_account })
    }

    /// Cosine similarity of the two.
    pub fn similarity(&self) -> f64 {
        cosine(&self.river_bank, &self.bank_account)
    }

    /// (similarity to "river", similarity to "account") on its own, then in each sentence.
    pub fn neighbours(&self) -> [(f64, f64); 3] {
        let to = |x: &[f32]| (cosine(x, &RIVER), cosine(x, &ACCOUNT));
        [to(&BANK), to(&self.river_bank), to(&self.bank_account)]
    }
}

/// Self-attention; a word's vector is its query, key and value at once.
fn output(words: [&str; 2], x: [[f32; 4]; 2], attend: Attend<'_>) -> Result<Vec<f32>, Error> {
    let x = x.concat();
    let words = words.map(String::from).into();
    let tokens = Tokens { words, q: x.clone(), k: x.clone(), v: x, dim: 4 };
    let inputs = Inputs::new(&tokens.q, &tokens.k, &tokens.v);
    Ok(attend(&Problem::new(tokens.shape()), inputs)?.o)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = AXES.map(|axis| format!("  {axis:>5}")).concat();
        writeln!(f, "  {:17}{axes}  like river  like account", "")?;
        let names = ["bank on its own", "in \"river bank\"", "in \"bank account\""];
        let vectors = [&BANK, &self.river_bank[..], &self.bank_account];
        for ((name, vector), (river, account)) in names.iter().zip(vectors).zip(self.neighbours()) {
            let cells: String = vector.iter().map(|&x| format!("  {:>5}", decimals(x))).collect();
            writeln!(f, "  {name:17}{cells}  {river:>10.2}  {account:>12.2}")?;
        }
        write!(f, "  cosine similarity of the two: {:.2}", self.similarity())
    }
}
