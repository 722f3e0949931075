//! Every module that the planner composes, read back with naga: it is valid, and it is what
//! `Plan::describe` says. wgpu's noop back end plans them, so no GPU is needed.

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wgpu::naga::{
    self, AddressSpace, GlobalVariable, Handle, Module, ShaderStage,
    proc::Layouter,
    valid::{GlobalUse, ModuleInfo},
};
use wgpu_attention_support::modules::{MATRICES, modules, read};

/// Globals that the one entry point reads, writes or asks about.
fn used<'a>(
    module: &'a Module,
    info: &'a ModuleInfo,
) -> impl Iterator<Item = (Handle<GlobalVariable>, &'a GlobalVariable, GlobalUse)> {
    let entry = info.get_entry_point(0);
    let all = module.global_variables.iter();
    all.map(|(handle, global)| (handle, global, entry[handle])).filter(|g| !g.2.is_empty())
}

#[test]
fn modules_are_what_plans_say() {
    let modules = modules();
    let mut kernels = BTreeMap::<&str, usize>::new();
    for dispatch in modules.values() {
        let name = dispatch.kernel;
        *kernels.entry(name).or_default() += 1;
        let (module, info) = read(dispatch);
        let [entry] = &module.entry_points[..] else { panic!("{name}: not one entry point") };
        assert_eq!(entry.name, name);
        assert_eq!(entry.stage, ShaderStage::Compute);
        assert_eq!(entry.workgroup_size, [dispatch.invocations, 1, 1], "{name}");

        // Workgroup memory, of all globals: what is declared is allocated, each in steps of 16 bytes.
        let mut layouter = Layouter::default();
        layouter.update(module.to_ctx()).expect("sizes");
        let shared = module.global_variables.iter().map(|(_, global)| global);
        let shared = shared.filter(|global| global.space == AddressSpace::WorkGroup);
        let bytes: u32 = shared.map(|global| layouter[global.ty].size.next_multiple_of(16)).sum();
        assert_eq!(bytes, dispatch.workgroup_bytes, "{name}: workgroup memory");
        let unused = module.global_variables.iter().filter(|(handle, global)| {
            global.space == AddressSpace::WorkGroup && info.get_entry_point(0)[*handle].is_empty()
        });
        assert_eq!(unused.count(), 0, "{name}: unused workgroup memory");

        // A binding not used would still have to be bound.
        let mut bindings = BTreeSet::new();
        let mut storage = 0;
        for (_, global, how) in used(&module, &info) {
            let Some(at) = &global.binding else { continue };
            assert_eq!(at.group, 0, "{name}: group 1 is the user's");
            bindings.insert(at.binding);
            match global.space {
                AddressSpace::Storage { access } => {
                    storage += 1;
                    let writable = access.contains(naga::StorageAccess::STORE);
                    assert!(writable || !how.contains(GlobalUse::WRITE));
                }
                // a texture
                AddressSpace::Handle => {}
                space => assert_eq!(space, AddressSpace::Uniform, "{name}"),
            }
        }
        assert_eq!(bindings, dispatch.bindings.iter().copied().collect(), "{name}: bindings");
        assert!(storage <= 8, "{name}: {storage} storage buffers");
    }
    println!("{} modules: {kernels:?}", modules.len());
    assert_eq!(kernels.len(), 17);
}

/// What Tint wants beside what naga takes. It does not know that subgroupAny() is the same in all
/// lanes.
const SUBGROUPS: &str = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";

/// One file each, for judges that are no Rust libraries: web/test hands them to the browsers'.
#[test]
#[ignore = "writes files, which web/test asks for"]
fn modules_are_written_down() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wgsl");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir(&folder)?;
    let for_browsers = modules().iter().filter(|(text, _)| !text.contains(MATRICES));
    for (number, (text, dispatch)) in for_browsers.enumerate() {
        // naga refuses the line that browsers want.
        let enable = if text.contains("subgroup") { SUBGROUPS } else { "" };
        let file = folder.join(format!("{}-{number}.wgsl", dispatch.kernel));
        std::fs::write(file, enable.to_string() + text)?;
    }
    Ok(())
}

/// (path without extension, text) of every WGSL file in shaders/.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let (mut files, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        let mut here = 0;
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(&root).expect("below it").with_extension("");
            let name = name.to_str().expect("a name").replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if name != "README" {
                assert_eq!(path.extension().and_then(|e| e.to_str()), Some("wgsl"), "{path:?}");
                files.push((name, std::fs::read_to_string(path).expect("text")));
                here += 1;
            }
        }
        assert!(here <= 25, "{folder:?}: {here} files");
    }
    files
}

/// A constant too many, and equal kernels would be compiled again.
#[test]
fn every_file_and_constant_is_used() {
    let modules = modules();
    let mut idle: BTreeSet<_> = files()
        .into_iter()
        .filter(|(_, text)| !modules.keys().any(|module| module.contains(text.as_str())))
        .map(|(name, _)| name)
        .collect();
    let mut declared = BTreeSet::new();
    for (module, dispatch) in modules {
        // Generated lines are `const NAME = 1u;`, before the first file.
        let (prologue, body) = module.split_at(module.find("\n//").expect("a file"));
        let lines = prologue.lines().filter(|line| !line.starts_with("enable "));
        let constants: BTreeSet<_> =
            lines.map(|line| line.split(' ').nth(1).expect("a name")).collect();
        let code = body.lines().map(|line| line.split("//").next().unwrap_or(""));
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: BTreeSet<_> = code.flat_map(|line| line.split(move |c| !is_word(c))).collect();
        idle.extend(
            constants.difference(&words).map(|name| format!("{name} in {}", dispatch.kernel)),
        );
        declared.extend(constants);
    }
    assert!(declared.contains("HEAD_DIM") && declared.contains("SOFTMAX_THREADS"));
    println!("{} files, {} constants", files().len(), declared.len());
    assert!(idle.is_empty(), "not used: {idle:?}");
}

/// A kernel's file opens with what a reader must know, and is short enough to be read.
#[test]
fn kernels_state_their_terms() {
    let labels = ["Workgroup:", "Thread:", "Memory:", "Grid:", "Twin:"];
    let mut kernels = BTreeSet::new();
    for (name, text) in files() {
        assert!(text.starts_with("// "), "{name}: no opening sentence");
        assert!(text.lines().count() < 230, "{name} is too long");
        assert!(text.lines().all(|line| line.len() <= 110), "{name}: a long line");
        if !text.contains("@compute") {
            assert!(name.contains('/'), "{name}: a part among the kernels");
            continue;
        }
        assert!(text.contains(&format!("\nfn {name}(")), "{name}: entry point and file differ");
        let header: Vec<_> = text.lines().take_while(|line| line.starts_with("//")).collect();
        let mut at = 0;
        for label in labels {
            let line = header.iter().skip(at).position(|line| line[2..].trim().starts_with(label));
            at += line.unwrap_or_else(|| panic!("{name}: no line {label}")) + 1;
        }
        assert!(header.iter().any(|line| line.starts_with("// Proof")), "{name}: no proof");
        // The twin exists.
        let twin = header[at - 1].split(':').nth(1).expect("a twin").trim();
        let (file, function) = twin.split_once(", ").expect("a file and a function");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        let source = std::fs::read_to_string(path).expect("the twin's file");
        let function = format!("fn {}", function.trim_end_matches("()"));
        assert!(source.contains(&function), "{name}: {file} has no {function}");
        kernels.insert(name);
    }
    assert_eq!(
        kernels.into_iter().collect::<Vec<_>>(),
        [
            "append",
            "broadcast",
            "bump",
            "decode",
            "flash",
            "flash_matrix",
            "merge",
            "merge_states",
            "pack",
            "page_in",
            "page_out",
            "project",
            "rotate",
            "scores",
            "softmax",
            "unpack",
            "values"
        ]
    );
}
