//! Compiles every shipped configuration of the fused kernels by AMD's compiler, for a card that is not
//! there, and fails where one spills registers or leaves too few waves. `scripts/judge.sh` runs it.
//!
//!     RADV_FORCE_FAMILY=NAVI21 VK_DRIVER_FILES=.../radeon_icd.x86_64.json judge [PART OF A NAME]

mod isa;
mod radv;
mod shipped;

use std::process::ExitCode;

use radv::Card;
use shipped::Configuration;

/// Workgroup memory of a compute unit of RDNA2 and RDNA3, and the SIMDs that share it (AMD, "RDNA2
/// Instruction Set Architecture", 2020, sections 2.2 and 2.3).
const UNIT_BYTES: u64 = 64 << 10;
const UNIT_SIMDS: u64 = 2;

/// Waves a SIMD by the driver's count, for all tiles.
const FEWEST_BY_DRIVER: u64 = 4;

/// One row of the table, and what is wrong with it.
fn row(card: &Card, what: &Configuration) -> Result<(String, Option<String>), String> {
    // The driver gives a small workgroup a wave of 32 lanes, which take half the registers.
    let lanes = if what.invocations <= 32 { 32 } else { 64 };
    let compiled = card.compile(&what.wgsl, lanes)?;
    let [vgprs, code] = ["VGPRs", "Code size"].map(|name| compiled.get(name));
    let (vgprs, code) = (vgprs?, code?);
    let spills = compiled.get("Spilled VGPRs")? + compiled.get("Spilled SGPRs")?;
    let scratch = compiled.get("Scratch size")?;
    let lds = compiled.get("LDS size")?;
    // The driver's own number counts waves of 32 lanes, and rounds up what memory allows.
    let by_driver = compiled.get("Subgroups per SIMD")?;
    let by_registers = card.registers * 64 / u64::from(lanes) / vgprs.max(1).next_multiple_of(8);
    let waves = u64::from(what.invocations.div_ceil(lanes));
    let by_memory = UNIT_BYTES / lds.max(1) * waves / UNIT_SIMDS;
    let fewest = by_registers.min(by_memory);
    let counts = isa::dense(&compiled.assembly);
    // Matrix instructions stand among too few others to be told from them.
    let inner = if counts.multiply_adds == 0 {
        "- | -".to_string()
    } else {
        let share = 100 * counts.multiply_adds / counts.instructions.max(1);
        let a_load = f64::from(counts.multiply_adds) / f64::from(counts.loads.max(1));
        format!("{share} % | {a_load:.1}")
    };
    let line = format!(
        "| {} | {} | {} | {vgprs} | {spills} | {lds} | {fewest} | {code} | {inner} |",
        what.name, what.tile, what.invocations
    );
    let wrong = if spills + scratch > 0 {
        Some(format!("{spills} registers spilled, {scratch} bytes of scratch"))
    } else if by_driver < FEWEST_BY_DRIVER {
        Some(format!("{by_driver} waves a SIMD by the driver's count"))
    } else if fewest < what.fewest_waves {
        Some(format!("{by_registers} waves a SIMD by registers, {by_memory} by workgroup memory"))
    } else {
        None
    };
    Ok((line, wrong))
}

fn compile_all(filter: &str) -> Result<bool, String> {
    let card = Card::open()?;
    println!("\n{}, {}\n", std::env::var("RADV_FORCE_FAMILY").unwrap_or_default(), card.driver);
    println!(
        "| configuration | tile | invocations | VGPRs | spilled | LDS, bytes | waves a SIMD | code, bytes \
         | multiply-adds of the inner loops' instructions | a load |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut good = true;
    for what in shipped::all(card.matrix_rows)?.iter().filter(|what| what.name.contains(filter)) {
        match row(&card, what) {
            Ok((line, wrong)) => {
                println!("{line}");
                if let Some(wrong) = wrong {
                    eprintln!("TOO MUCH: {}: {wrong}", what.name);
                    good = false;
                }
            }
            Err(why) => return Err(format!("{}: {why}", what.name)),
        }
    }
    Ok(good)
}

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    match compile_all(&filter) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("judge: {why}");
            ExitCode::from(2)
        }
    }
}
