//! The report: Markdown for people, JSON for programs.

use serde_json::{Map, Value, json};

use super::line::{Line, Outcome, PLANNED, Peaks};

pub struct Report {
    /// Name and value.
    pub facts: Vec<(String, String)>,
    pub peaks: Peaks,
    pub lines: Vec<Line>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// All cases had their turn.
    pub finished: bool,
}

pub const PREFILL: &str = "\
| tokens | heads | type | sees | by | ms | best ms | GFLOP/s | of f32 peak | of matrix peak | x ours | error |
| ---: | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";
pub const DECODE: &str = "\
| keys | batch | heads | type | by | ms | best ms | GB/s | of bandwidth | x ours | error |
| ---: | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |";

const EXPLAINED: &str = "\
heads: of queries, and after a colon of keys. by: the kernel, queries x keys of its tile; default: \
what the planner chooses. ms: the median of the calls measured; rates and shares are of it. A \
multiply-add is two operations; attention has 4 heads queries keys dim of them, hidden keys not \
counted. GB/s: bytes of keys and values; a cache that fits the card's own caches may exceed the \
bandwidth measured. x ours: how many times as long as our fastest line of the case. error: the \
largest of the rows checked in f64, before timing; f16 may have twice what an unfused f16 computation \
has. PyTorch's answers are not checked; its short calls include the gaps between launches.";

impl Report {
    /// A line of a table.
    pub fn row(&self, line: &Line) -> String {
        let case = &line.case;
        let percent =
            |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.1} %", 100.0 * s));
        let kind = format!("{:?}", case.element).to_lowercase();
        let keys = if case.causal { "causal" } else { "all" };
        let heads = match (case.heads, case.kv_heads) {
            (heads, kv) if heads == kv => heads.to_string(),
            (heads, kv) => format!("{heads}:{kv}"),
        };
        let mut cells = if case.is_decode() {
            vec![case.keys.to_string(), case.batch.to_string(), heads, kind]
        } else {
            vec![case.keys.to_string(), heads, kind, keys.into()]
        };
        // A peer's name or message must not end a cell.
        let safe =
            |text: &str| text.replace('|', "/").split_whitespace().collect::<Vec<_>>().join(" ");
        let planned = line.asked == PLANNED && line.by != PLANNED;
        cells.push(safe(&line.by) + if planned { " (default)" } else { "" });
        let (times, error) = match &line.outcome {
            Outcome::Timed(times, error) => {
                let error = error.map_or("-".into(), |error| format!("{:.1e}", error.found));
                ([times.median, times.best].map(|s| format!("{:.3}", 1e3 * s)), error)
            }
            Outcome::Wrong(error) => {
                let text = format!("**WRONG** {:.1e}, allowed {:.1e}", error.found, error.allowed);
                (["-".into(), "-".into()], text)
            }
            Outcome::LeftOut(why) => (["-".into(), "-".into()], format!("left out: {}", safe(why))),
            Outcome::Failed(why) => (["-".into(), "-".into()], format!("**FAILED** {}", safe(why))),
        };
        cells.extend(times);
        let per = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{:.1}", rate / 1e9));
        if case.is_decode() {
            cells.push(per(line.bandwidth()));
            cells.push(percent(line.share_of_read(&self.peaks)));
        } else {
            cells.push(per(line.rate()));
            cells.push(percent(line.share_of_f32(&self.peaks)));
            cells.push(percent(line.share_of_matrix(&self.peaks)));
        }
        let ratio = line.times_ours(&self.lines);
        cells.push(ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
        cells.push(error);
        format!("| {} |", cells.join(" | "))
    }

    /// Peaks in words.
    pub fn peaks(&self) -> Vec<String> {
        let Peaks { f32, f16, matrix, read } = self.peaks;
        let rate = |name: &str, peak: Option<f64>, unit: &str| {
            peak.map(|peak| format!("{name}: {:.1} {unit}", peak / 1e9))
        };
        [
            rate("multiply-adds in registers, f32", f32, "GFLOP/s"),
            rate("multiply-adds in registers, f16", f16, "GFLOP/s"),
            rate("matrix products, f16 into f32", matrix, "GFLOP/s"),
            rate("reading a large buffer", read, "GB/s"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// In one sentence.
    pub fn verdict(&self) -> String {
        let count = |is: fn(&Outcome) -> bool| {
            self.lines.iter().filter(|line| line.ours && is(&line.outcome)).count()
        };
        let right = count(|o| matches!(o, Outcome::Timed(..)));
        let wrong = count(|o| matches!(o, Outcome::Wrong(_)));
        let failed = count(|o| matches!(o, Outcome::Failed(_)));
        let left = count(|o| matches!(o, Outcome::LeftOut(_)));
        let end = if self.finished { "" } else { "; the run has not ended" };
        format!("{right} right, {wrong} wrong, {failed} failed, {left} left out{end}")
    }

    /// Whether something was answered, and nothing wrongly.
    pub fn is_good(&self) -> bool {
        let answered = self.lines.iter().any(|line| line.ours && line.seconds().is_some());
        answered && !self.lines.iter().any(Line::is_bad)
    }

    pub fn markdown(&self) -> String {
        let mut text = vec!["# GPU check".to_string(), String::new()];
        text.push(format!("{}.", self.verdict()));
        text.push(String::new());
        text.extend(self.facts.iter().map(|(name, value)| format!("- {name}: {value}")));
        text.extend(
            ["", "Peaks, measured before and after the table, the better of each:", ""]
                .map(String::from),
        );
        text.extend(self.peaks().iter().map(|peak| format!("- {peak}")));
        text.extend(self.notes.iter().map(|note| format!("- {note}")));
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_key(|line| line.case.place());
        for group in lines
            .chunk_by(|a, b| (a.case.is_decode(), a.case.dim) == (b.case.is_decode(), b.case.dim))
        {
            let case = &group[0].case;
            let (kind, header) =
                if case.is_decode() { ("Decode", DECODE) } else { ("Prefill", PREFILL) };
            text.push(format!("\n## {kind}, heads of {}\n\n{header}", case.dim));
            text.extend(group.iter().map(|line| self.row(line)));
        }
        text.push(format!("\n{EXPLAINED}\n"));
        text.join("\n")
    }

    pub fn json(&self) -> Value {
        let facts: Map<String, Value> =
            self.facts.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let Peaks { f32, f16, matrix, read } = self.peaks;
        json!({
            "finished": self.finished,
            "verdict": self.verdict(),
            "facts": facts,
            "peaks": {
                "f32_operations_per_s": f32,
                "f16_operations_per_s": f16,
                "matrix_operations_per_s": matrix,
                "read_bytes_per_s": read,
            },
            "notes": self.notes,
            "lines": self.lines.iter().map(|line| self.object(line)).collect::<Vec<_>>(),
        })
    }

    fn object(&self, line: &Line) -> Value {
        let case = &line.case;
        let (result, times, error, why) = match &line.outcome {
            Outcome::Timed(times, error) => ("timed", Some(times), *error, None),
            Outcome::Wrong(error) => ("wrong", None, Some(*error), None),
            Outcome::LeftOut(why) => ("left out", None, None, Some(why)),
            Outcome::Failed(why) => ("failed", None, None, Some(why)),
        };
        json!({
            "case": {
                "batch": case.batch, "heads": case.heads, "kv_heads": case.kv_heads,
                "rows": case.rows, "keys": case.keys, "dim": case.dim,
                "type": format!("{:?}", case.element).to_lowercase(), "causal": case.causal,
            },
            "asked": line.asked,
            "by": line.by,
            "ours": line.ours,
            "result": result,
            "why": why,
            "median_s": times.map(|times| times.median),
            "best_s": times.map(|times| times.best),
            "calls": times.map(|times| times.calls),
            "error": error.map(|error| error.found),
            "error_allowed": error.map(|error| error.allowed),
            "operations_per_s": line.rate(),
            "bytes_per_s": line.bandwidth(),
            "share_of_f32": line.share_of_f32(&self.peaks),
            "share_of_matrix": line.share_of_matrix(&self.peaks),
            "share_of_read": line.share_of_read(&self.peaks),
            "times_ours": line.times_ours(&self.lines),
        })
    }
}
