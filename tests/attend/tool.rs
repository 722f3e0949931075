//! The built example as a program, and folders for its files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// What a run said.
pub struct Outcome {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs `attend` with these arguments.
pub fn attend<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Outcome {
    let output = Command::new(program()).args(arguments).output().expect("a program that runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    Outcome { code: output.status.code(), out, err }
}

impl Outcome {
    /// The run, if it ended with this code.
    #[track_caller]
    pub fn ended(self, code: i32) -> Outcome {
        let Outcome { out, err, .. } = &self;
        assert_eq!(self.code, Some(code), "stdout:\n{out}\nstderr:\n{err}");
        self
    }
}

/// Where `cargo test` has put the example; built here if only this test is run after a change.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = std::env::current_exe().expect("the path of this test");
        let profile = own.parent().and_then(Path::parent).expect("target/profile/deps/test");
        let name = format!("attend{}", std::env::consts::EXE_SUFFIX);
        let program = profile.join("examples").join(name);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = ["examples/attend", "examples/six_tokens", "src", "shaders"];
        let changed = sources.iter().map(|folder| newest(&root.join(folder))).max();
        let built = program.metadata().and_then(|about| about.modified()).ok();
        if built.is_none() || built < changed {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.current_dir(root).args(["build", "--quiet", "--example", "attend"]);
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            let target = profile.parent().expect("target/profile");
            let built = cargo.arg("--target-dir").arg(target).status().expect("cargo");
            assert!(built.success() && program.exists(), "{} was not built", program.display());
        }
        program
    })
}

fn newest(folder: &Path) -> SystemTime {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    let time = |path: PathBuf| match path.is_dir() {
        true => newest(&path),
        false => path.metadata().and_then(|about| about.modified()).expect("a time"),
    };
    entries.map(time).max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A folder that is gone with its value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("attend-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path); // A run of old that did not end.
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    /// Names of all files in a folder in it.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = self.path(folder).read_dir() else { return Vec::new() };
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // What is left is in the way of nothing.
    }
}
