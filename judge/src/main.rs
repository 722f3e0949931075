//! Compiles every shipped configuration of the fused kernel by AMD's compiler, for cards that are not
//! there, and fails where one spills registers or leaves too few waves.
//!
//!     judge --icd /usr/share/vulkan/icd.d/radeon_icd.x86_64.json --families NAVI21

mod isa;
mod radv;
mod shipped;

use std::process::{Command, ExitCode};

use radv::Card;
use shipped::Configuration;

/// Workgroup memory of a compute unit of RDNA2 and RDNA3, and the SIMDs that share it (AMD, "RDNA2
/// Instruction Set Architecture", 2020, sections 2.2 and 2.3).
const UNIT_BYTES: u64 = 64 << 10;
const UNIT_SIMDS: u64 = 2;

struct Arguments {
    icd: Option<String>,
    families: Vec<String>,
    /// This process compiles; the environment names the card.
    child: bool,
    filter: String,
}

fn arguments() -> Result<Arguments, String> {
    let mut all =
        Arguments { icd: None, families: Vec::new(), child: false, filter: String::new() };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--icd" => all.icd = Some(value()?),
            "--families" => all.families = value()?.split(',').map(str::to_string).collect(),
            "--only" => all.filter = value()?,
            "--child" => all.child = true,
            _ => return Err(format!("{name}? --icd FILE --families NAVI21,NAVI31 --only TEXT")),
        }
    }
    Ok(all)
}

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
    // The driver's own number counts in halves and rounds up.
    let by_registers = card.registers * 64 / u64::from(lanes) / vgprs.max(1).next_multiple_of(8);
    let waves = u64::from(what.invocations.div_ceil(lanes));
    let by_memory = UNIT_BYTES / lds.max(1) * waves / UNIT_SIMDS;
    let fewest = by_registers.min(by_memory);
    let counts = isa::dense(&compiled.assembly);
    let share = 100 * counts.multiply_adds / counts.instructions.max(1);
    let per_load = f64::from(counts.multiply_adds) / f64::from(counts.loads.max(1));
    let line = format!(
        "| {} | {} | {} | {vgprs} | {spills} | {lds} | {fewest} | {code} | {share} % | {per_load:.1} |",
        what.name, what.tile, what.invocations
    );
    let wrong = if spills + scratch > 0 {
        Some(format!("{spills} registers spilled, {scratch} bytes of scratch"))
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

fn run() -> Result<bool, String> {
    let arguments = arguments()?;
    if arguments.child {
        return compile_all(&arguments.filter);
    }
    // The driver reads its environment when it is loaded: one process a family.
    let mut good = !arguments.families.is_empty();
    for family in &arguments.families {
        let mut child = Command::new(std::env::current_exe().map_err(|why| why.to_string())?);
        child.args(["--child", "--only", &arguments.filter]);
        child.envs([("RADV_FORCE_FAMILY", family.as_str()), ("MESA_SHADER_CACHE_DISABLE", "1")]);
        if let Some(icd) = &arguments.icd {
            child.envs([("VK_DRIVER_FILES", icd), ("VK_ICD_FILENAMES", icd)]);
        }
        good &= child.status().map_err(|why| why.to_string())?.success();
    }
    Ok(good)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("judge: {why}");
            ExitCode::FAILURE
        }
    }
}
