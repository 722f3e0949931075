//! Tables.

use crate::case::Case;
use crate::compare::Row;

const HEAD: [&str; 7] =
    ["", "first call, ms", "call, ms", "best, ms", "GFLOP/s", "x ours", "round trip, ms"];

/// A table of one case, this library's row first.
pub fn print(case: &Case, rows: &[Row], markdown: bool) {
    let ours = rows.first().and_then(|row| median(&row.calls));
    let cells: Vec<[String; 7]> = rows.iter().map(|row| cells(case, row, ours)).collect();
    println!("\n{}{}\n", if markdown { "### " } else { "" }, case.title());
    let mut widths = HEAD.map(str::len);
    for row in &cells {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.len().max(*width));
    }
    let line = |row: [&str; 7]| {
        let cell = |at: usize| match at {
            0 => format!("{:<width$}", row[at], width = widths[at]),
            _ => format!("{:>width$}", row[at], width = widths[at]),
        };
        let cells: Vec<String> = (0..7).map(cell).collect();
        if markdown { format!("| {} |", cells.join(" | ")) } else { cells.join("  ") }
    };
    println!("{}", line(HEAD));
    if markdown {
        let rule: Vec<&str> = (0..7).map(|at| if at == 0 { "---" } else { "---:" }).collect();
        println!("| {} |", rule.join(" | "));
    }
    for row in &cells {
        println!("{}", line(row.each_ref().map(String::as_str)));
    }
    for row in rows {
        if let Some(why) = &row.failed {
            // On stderr too: tables often go to a file.
            println!("\n{}: {why}", row.name);
            eprintln!("{}, {}: {why}", case.title(), row.name);
        }
    }
}

fn cells(case: &Case, row: &Row, ours: Option<f64>) -> [String; 7] {
    let none = || "-".to_string();
    let name = row.name.clone();
    let (Some(call), None) = (median(&row.calls), &row.failed) else {
        return [name, none(), "failed".into(), none(), none(), none(), none()];
    };
    let ms = |seconds: f64| format!("{:.2}", 1e3 * seconds);
    let best = row.calls.iter().copied().fold(f64::INFINITY, f64::min);
    [
        name,
        ms(row.first),
        ms(call),
        ms(best),
        format!("{:.1}", case.flops() / call / 1e9),
        ours.map_or_else(none, |ours| format!("{:.2}", call / ours)),
        median(&row.round_trips).map_or_else(none, ms),
    ]
}

fn median(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}
