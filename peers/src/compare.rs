//! Every peer checked, then timed in rounds.

use std::time::{Duration, Instant};

use wgpu_attention::Gpu;

use crate::case::{Case, TOLERANCE};
use crate::python::Python;

/// One library, with its operands where it keeps them, ready to run the same call again. A peer
/// that cannot says why; the others go on.
pub trait Peer {
    fn name(&self) -> String;
    /// Seconds of the very first call: planning, compiling, tuning and running.
    fn first(&mut self) -> Result<f64, String>;
    /// Seconds of one call on resident operands, from recording to the output's being there for
    /// whatever would use it next.
    fn call(&mut self) -> Result<f64, String>;
    /// The output of one call on the host, `[head, row, dim]`, with q on the host before it.
    /// `None` where this differs from a call in nothing.
    fn output(&mut self) -> Option<Vec<f32>>;
    /// The largest error in some rows of an answer.
    fn error(&mut self, case: &Case) -> Result<f64, String> {
        Ok(case.error(&self.output().expect("a peer without output checks itself")))
    }
}

/// Seconds that something takes.
pub fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    std::hint::black_box(run());
    begun.elapsed().as_secs_f64()
}

/// Seconds of a peer's calls.
pub struct Row {
    pub name: String,
    pub first: f64,
    pub calls: Vec<f64>,
    /// From q on the host to the output on the host; empty where that is the call.
    pub round_trips: Vec<f64>,
    /// Why it has no times.
    pub failed: Option<String>,
}

/// Calls before those that are timed: some libraries tune themselves in the first few.
const WARM_UP: usize = 3;
/// Threads of the peer before may spin for a while after its call.
const SETTLE: Duration = Duration::from_millis(30);

/// One row for each peer, this library first, and whether all answers were right.
pub fn compare(
    gpu: &Gpu,
    python: Option<&Python>,
    case: &Case,
    rounds: usize,
) -> Result<(Vec<Row>, bool), String> {
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(crate::ours::Ours::new(gpu, case)?)];
    #[cfg(feature = "candle")]
    for flash in [false, true] {
        let candle = crate::candle::Candle::new(case, flash).map_err(|error| error.to_string())?;
        peers.push(Box::new(candle));
    }
    #[cfg(feature = "burn")]
    peers.push(Box::new(crate::burn::Burn::new(case)?));
    for peer in python.map(|python| python.peers(case)).unwrap_or_default() {
        peers.push(Box::new(peer));
    }
    let mut rows: Vec<Row> = peers.iter_mut().map(|peer| prepare(&mut **peer, case)).collect();
    for _ in 0..rounds {
        for (peer, row) in peers.iter_mut().zip(&mut rows) {
            round(&mut **peer, row);
        }
    }
    let good = rows.iter().all(|row| row.failed.is_none());
    Ok((rows, good))
}

/// The first call, the check and the warm-up.
fn prepare(peer: &mut dyn Peer, case: &Case) -> Row {
    let mut row =
        Row { name: String::new(), first: 0.0, calls: vec![], round_trips: vec![], failed: None };
    let mut run = || -> Result<(), String> {
        row.first = peer.first()?;
        let error = peer.error(case)?;
        if error > TOLERANCE {
            return Err(format!("wrong by {error:e}"));
        }
        (0..WARM_UP).try_for_each(|_| peer.call().map(drop))
    };
    row.failed = run().err();
    row.name = peer.name();
    row
}

fn round(peer: &mut dyn Peer, row: &mut Row) {
    if row.failed.is_some() {
        return;
    }
    std::thread::sleep(SETTLE);
    match peer.call() {
        Ok(call) => row.calls.push(call),
        Err(why) => {
            row.failed = Some(why);
            return;
        }
    }
    let begun = Instant::now();
    if std::hint::black_box(peer.output()).is_some() {
        row.round_trips.push(begun.elapsed().as_secs_f64());
    }
}
