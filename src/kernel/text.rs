//! The WGSL files, as part of the program.

/// A file in `shaders/`. In browsers, where every byte is downloaded, without comments and
/// indentation.
macro_rules! shader {
    ($name:literal) => {{
        const FULL: &str =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $name, ".wgsl"));
        #[cfg(not(target_family = "wasm"))]
        const TEXT: &str = FULL;
        #[cfg(target_family = "wasm")]
        const TEXT: &str = {
            const BARE: [u8; crate::kernel::bare::len(FULL)] = crate::kernel::bare::text(FULL);
            match std::str::from_utf8(&BARE) {
                Ok(text) => text,
                Err(_) => FULL,
            }
        };
        const FILE: &crate::kernel::File = &crate::kernel::File::new(TEXT);
        FILE
    }};
}
pub(crate) use shader;

/// The same, of a kernel that browsers do not have, as wgpu has no subgroups there.
macro_rules! native_shader {
    ($name:literal) => {{
        #[cfg(not(target_family = "wasm"))]
        const FILE: &crate::kernel::File = crate::kernel::shader!($name);
        #[cfg(target_family = "wasm")]
        const FILE: &crate::kernel::File = &crate::kernel::File::new("");
        FILE
    }};
}
pub(crate) use native_shader;
