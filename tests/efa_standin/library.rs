//! Builds the stand-in for libefa, loads it, and gives access to its state.

use std::{
    env,
    ffi::{CString, c_void},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use rpma::efa::Library;

/// The same struct in efa.c.
#[repr(C)]
pub struct State {
    pub error: i32,
    pub depth: i32,
    pub device_attr: [u8; 32],
    pub cq_attr: [u8; 32],
    pub mr_attr: [u8; 16],
    pub wq_attr: [[u8; 40]; 2],
    pub cq: *mut c_void,
    pub efa_cq: *mut c_void,
    pub calls: u32,
    pub inlen: u32,
    pub object: *mut c_void,
    pub input: [u8; 64],
    pub input_verbs: [u8; 56],
}

/// One stand-in of its own, with its state.
pub struct Standin {
    pub library: &'static Library,
    state: *mut State,
    dir: PathBuf,
}

/// The functions and their versions, with the release that brought them.
const SYMBOLS: &[(&str, &str, u32)] = &[
    ("efadv_query_device", "EFA_1.1", 26),
    ("efadv_create_cq", "EFA_1.2", 43),
    ("efadv_cq_from_ibv_cq_ex", "EFA_1.2", 43),
    ("efadv_query_mr", "EFA_1.3", 50),
    ("efadv_query_cq", "EFA_1.4", 59),
    ("efadv_query_qp_wqs", "EFA_1.4", 59),
    ("efadv_get_max_sq_depth", "EFA_1.5", 63),
    ("efadv_get_max_rq_depth", "EFA_1.5", 63),
];

impl Standin {
    /// The library as release `release` has it. `None`, said aloud, without a C compiler.
    pub fn of_release(release: u32) -> Option<Self> {
        Self::build(release, SYMBOLS)
    }

    /// All functions, but under the versions of a future that broke with the past.
    pub fn with_other_versions() -> Option<Self> {
        let symbols: Vec<_> = SYMBOLS
            .iter()
            .map(|(name, _, since)| (*name, "EFA_9.0", *since))
            .collect();
        Self::build(65, &symbols)
    }

    fn build(release: u32, symbols: &[(&str, &str, u32)]) -> Option<Self> {
        let cc = env::var_os("CC").unwrap_or("cc".into());
        if let Err(err) = Command::new(&cc).arg("--version").output() {
            assert!(env::var_os("CI").is_none(), "no C compiler {cc:?}: {err}");
            eprintln!("SKIP: efa_standin: no C compiler {cc:?}: {err}");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("rpma-efa-standin-{}-{count}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let script = dir.join("versions.map");
        fs::write(&script, version_script(release, symbols)).unwrap();
        let path = dir.join("libefa.so.1");
        let done = Command::new(cc)
            .args([
                "-shared",
                "-fPIC",
                "-Wall",
                "-Werror",
                &format!("-DRELEASE={release}"),
            ])
            .arg(format!("-Wl,--version-script={}", script.display()))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/efa_standin/efa.c"))
            .arg("-o")
            .arg(&path)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        // SAFETY: the library is the one just built.
        let library = unsafe { Library::open_at(&path) }.unwrap();
        Some(Standin {
            library,
            state: state(&path),
            dir,
        })
    }

    /// Nobody calls the library meanwhile: it is this test's own.
    pub fn state(&mut self) -> &mut State {
        // SAFETY: the library stays loaded, and its struct is this one.
        unsafe { &mut *self.state }
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn version_script(release: u32, symbols: &[(&str, &str, u32)]) -> String {
    let mut script = String::new();
    let mut versions: Vec<&str> = symbols.iter().map(|(_, version, _)| *version).collect();
    versions.dedup();
    for version in versions {
        let names = symbols
            .iter()
            .filter(|(_, v, since)| *v == version && *since <= release);
        let names: String = names.map(|(name, ..)| format!("{name}; ")).collect();
        if !names.is_empty() {
            script += &format!("{version} {{ global: {names} }};\n");
        }
    }
    script + "STANDIN { global: standin; local: *; };\n"
}

fn state(path: &Path) -> *mut State {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the library is loaded already, and has this symbol.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let state = libc::dlsym(handle, c"standin".as_ptr());
        assert!(!state.is_null());
        state.cast()
    }
}
