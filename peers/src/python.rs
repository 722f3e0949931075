//! PyTorch and onnxruntime, in a child process that answers one line for each line it is asked.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use crate::case::{Case, Kind};
use crate::compare::Peer;
use crate::machine::threads;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/attention.py");

/// The child. It ends when its input does.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn read(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err("the Python process ended".into()),
            Ok(_) => Ok(line.trim_end().into()),
            Err(error) => Err(format!("the Python process: {error}")),
        }
    }

    /// Numbers, or what went wrong.
    fn ask(&mut self, request: &str) -> Result<Vec<f64>, String> {
        let input = self.input.as_mut().expect("open until the end");
        writeln!(input, "{request}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("the Python process: {error}"))?;
        let reply = self.read()?;
        let Some(numbers) = reply.strip_prefix("ok") else { return Err(reply) };
        let numbers: Result<Vec<f64>, _> = numbers.split_whitespace().map(str::parse).collect();
        numbers.map_err(|_| format!("the Python process said {reply}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

pub struct Python {
    process: Rc<RefCell<Process>>,
    /// Key and name of each peer.
    peers: Vec<[String; 2]>,
    /// Versions, and what is missing.
    pub notes: Vec<String>,
}

impl Python {
    /// Starts the interpreter, which says what it has: `note TEXT` and `peer KEY NAME` lines up to
    /// `ready`.
    pub fn start(interpreter: &str) -> Result<Python, String> {
        let mut child = Command::new(interpreter)
            .args([PROGRAM, &threads().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{interpreter}: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let mut process = Process { child, input, output: BufReader::new(output) };
        let (mut peers, mut notes) = (vec![], vec![]);
        loop {
            let line = process.read()?;
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match (word, rest.split_once(' ')) {
                ("ready", _) => break,
                ("note", _) => notes.push(rest.into()),
                ("peer", Some((key, name))) => peers.push([key.into(), name.into()]),
                _ => return Err(format!("the Python process said {line}")),
            }
        }
        Ok(Python { process: Rc::new(RefCell::new(process)), peers, notes })
    }

    pub fn peers(&self, case: &Case) -> Vec<PythonPeer> {
        let kind = match case.kind {
            Kind::Prefill { .. } => "prefill",
            Kind::Decode => "decode",
        };
        let Case { rows, keys, heads, dim, .. } = case;
        let shape = format!("{kind} {rows} {keys} {heads} {dim} {}", u8::from(case.causal()));
        let peer = |[key, name]: &[String; 2]| PythonPeer {
            process: self.process.clone(),
            call: format!("{key} {shape}"),
            name: name.clone(),
        };
        self.peers.iter().map(peer).collect()
    }
}

/// One of the child's peers. It makes operands of the same distribution and checks itself.
pub struct PythonPeer {
    process: Rc<RefCell<Process>>,
    call: String,
    name: String,
}

impl PythonPeer {
    fn ask(&self, verb: &str, end: &str) -> Result<f64, String> {
        let numbers = self.process.borrow_mut().ask(&format!("{verb} {}{end}", self.call))?;
        numbers.first().copied().ok_or_else(|| "no number from the Python process".into())
    }
}

impl Peer for PythonPeer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn first(&mut self) -> Result<f64, String> {
        self.ask("time", " 1")
    }

    fn call(&mut self) -> Result<f64, String> {
        self.ask("time", " 1")
    }

    fn output(&mut self) -> Option<Vec<f32>> {
        None
    }

    fn error(&mut self, _case: &Case) -> Result<f64, String> {
        self.ask("check", "")
    }
}
