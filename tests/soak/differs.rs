//! What is said where bytes are not those that were acknowledged.

use std::{
    fmt::{self, Display},
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
};

const PAGE: u64 = 4096;

/// Bytes of a log, or of another area of the server's, that differ from those that were written
/// there.
pub struct Difference {
    what: String,
    at: u64,
    written: Vec<u8>,
    /// Who saw what there.
    found: Vec<(&'static str, Result<Vec<u8>, String>)>,
}

impl Difference {
    /// `at` counts from the start of the area, which begins with a page.
    pub fn new(what: impl Into<String>, at: u64, written: &[u8]) -> Difference {
        Difference {
            what: what.into(),
            at,
            written: written.to_vec(),
            found: Vec::new(),
        }
    }

    pub fn found<E: Display>(mut self, by: &'static str, bytes: Result<Vec<u8>, E>) -> Difference {
        self.found.push((by, bytes.map_err(|err| err.to_string())));
        self
    }

    /// Adds what the server has there. Its file lies in memory: what its device writes is there at
    /// once.
    pub fn and_in_file(self, path: &Path) -> Difference {
        let mut bytes = vec![0; self.written.len()];
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, self.at));
        self.found("the server's file", read.map(|()| bytes))
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not what was written: {} bytes at {} (page {}, byte {} of it)",
            self.what,
            self.written.len(),
            self.at,
            self.at / PAGE,
            self.at % PAGE
        )?;
        line(f, "written", &self.written)?;
        for (by, bytes) in &self.found {
            match bytes {
                Ok(bytes) => line(f, by, bytes)?,
                Err(err) => write!(f, "\n  {by:<19} not to be had: {err}")?,
            }
            let first = bytes.as_ref().ok().and_then(|bytes| {
                let pairs = bytes.iter().zip(&self.written);
                pairs.clone().position(|(found, written)| found != written)
            });
            if let Some(first) = first {
                write!(f, "  (differs from byte {first} on)")?;
            }
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> fmt::Result {
    write!(f, "\n  {name:<19}")?;
    for byte in bytes {
        write!(f, " {byte:02x}")?;
    }
    Ok(())
}

#[test]
fn a_difference_is_told_with_its_place_and_all_that_was_seen() {
    let path = std::env::temp_dir().join(format!("rpma-soak-differs-{}", std::process::id()));
    let mut file = vec![0; 5000];
    file[4090..4094].copy_from_slice(&[1, 2, 3, 4]);
    std::fs::write(&path, file).unwrap();
    let said = Difference::new("record 7", 4090, &[1, 2, 3, 4])
        .found::<String>("read", Ok(vec![1, 2, 9, 9]))
        .found("read again", Err("the connection broke"))
        .and_in_file(&path)
        .to_string();
    std::fs::remove_file(&path).unwrap();
    let expected = "\
record 7 is not what was written: 4 bytes at 4090 (page 0, byte 4090 of it)
  written             01 02 03 04
  read                01 02 09 09  (differs from byte 2 on)
  read again          not to be had: the connection broke
  the server's file   01 02 03 04";
    assert_eq!(said, expected);
}
