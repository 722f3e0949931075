//! PyTorch in a child process: a line for each case, a line back.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use wgpu_attention::Element;

use super::case::Case;
use super::line::{Line, Outcome, Times};

/// For all paths of a case.
const ANSWER: Duration = Duration::from_secs(30);

/// The child. It ends when its input does, and at the latest with this.
pub struct Torch {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Torch {
    /// Begins to load it; meanwhile there is other work.
    pub fn start(program: &Path, on_cpu: bool) -> Result<Torch, String> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        if !program.exists() {
            return Err(format!("{}: no such file", program.display()));
        }
        let mut child = Command::new(&python)
            .arg(program)
            .args(on_cpu.then_some("--cpu"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{python}: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map_while(|line| send.send(line).ok()).for_each(drop);
        });
        Ok(Torch { child, input, lines })
    }

    /// Version and card, once it has loaded.
    pub fn about(&self, patience: Duration) -> Result<String, String> {
        let value = self.reply(patience)?;
        let text = |name: &str| value[name].as_str().map(String::from);
        text("about").ok_or_else(|| text("missing").unwrap_or_else(|| format!("said {value}")))
    }

    /// A line for each path.
    pub fn lines(&mut self, case: &Case, patience: Duration) -> Result<Vec<Line>, String> {
        let request = json!({
            "batch": case.batch, "heads": case.heads, "kv_heads": case.kv_heads,
            "rows": case.rows, "keys": case.keys, "dim": case.dim,
            "half": case.element == Element::F16, "causal": case.causal,
        });
        let input = self.input.as_mut().ok_or("it has ended")?;
        writeln!(input, "{request}")
            .and_then(|()| input.flush())
            .map_err(|error| error.to_string())?;
        let value = self.reply(patience.min(ANSWER))?;
        let paths = value.as_object().ok_or_else(|| format!("said {value}"))?;
        let line = |(path, answer): (&String, &Value)| Line {
            case: *case,
            asked: path.clone(),
            by: format!("PyTorch, {path}"),
            ours: false,
            outcome: outcome(answer),
        };
        Ok(paths.iter().map(line).collect())
    }

    fn reply(&self, patience: Duration) -> Result<Value, String> {
        let line = self.lines.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("no answer in {} s", patience.as_secs()),
            RecvTimeoutError::Disconnected => "its process ended".into(),
        })?;
        serde_json::from_str(&line).map_err(|_| format!("said {line}"))
    }
}

/// `[median, best, calls]`, or why there is none.
pub fn outcome(answer: &Value) -> Outcome {
    let number = |at: usize| answer[at].as_f64().filter(|&x| x > 0.0);
    match (number(0), number(1), number(2)) {
        (Some(median), Some(best), Some(calls)) => {
            Outcome::Timed(Times { median, best, calls: calls as u32 }, None)
        }
        _ => Outcome::LeftOut(answer.as_str().unwrap_or("no times").into()),
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        self.input = None;
        // It may hang in a driver.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
