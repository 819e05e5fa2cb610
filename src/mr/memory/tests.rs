use std::{
    fs,
    path::PathBuf,
    sync::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    },
    thread,
};

use super::*;
use crate::Usage;

fn bytes(memory: &Memory, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    memory.read_at(offset, &mut bytes).unwrap();
    bytes
}

/// A path of its own for each caller, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "rpma-memory-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Relaxed)
        );
        Scratch(std::env::temp_dir().join(name))
    }

    fn with(content: &[u8]) -> Scratch {
        let scratch = Scratch::new();
        fs::write(&scratch.0, content).unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether this process has anything mapped of which /proc says `what`.
fn is_mapped(what: &str) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.contains(what))
}

#[test]
fn anonymous_memory_is_zeroed_aligned_and_as_long_as_asked() {
    let memory = Memory::anonymous(5000).unwrap();
    assert_eq!(memory.len(), 5000);
    assert_eq!(memory.as_ptr().addr() % 4096, 0);
    assert!(memory.is_writable() && !memory.is_persistent());
    assert_eq!(bytes(&memory, 0, 5000), vec![0; 5000]);
}

#[test]
#[cfg_attr(miri, ignore = "asks for more than there is")]
fn no_bytes_and_too_many_are_refused() {
    for len in [0, usize::MAX, isize::MAX as usize, 1 << 63] {
        assert!(Memory::anonymous(len).is_err(), "{len}");
        assert!(Memory::huge(len, HugePage::Size2M).is_err(), "{len}");
    }
    assert!(Memory::from_owner(Vec::new()).is_err());
    // SAFETY: refused before anything is done.
    unsafe {
        assert!(Memory::from_raw_parts(std::ptr::null_mut(), 8, true).is_err());
        assert!(Memory::from_raw_parts(NonNull::dangling().as_ptr(), 0, true).is_err());
    }
}

#[test]
fn copies_agree_with_a_vector_at_every_offset_and_length() {
    // The owner's start is moved through a word, so that both ends are ragged in every way.
    let (skews, lens) = match cfg!(miri) {
        true => (5, 13),
        false => (1, 1),
    };
    for skew in (0..8).step_by(skews) {
        for len in (1..40).step_by(lens) {
            let mut owner = vec![0u64; 8];
            let start = owner.as_mut_ptr().cast::<u8>().wrapping_add(skew);
            // SAFETY: the vector outlives the memory and is not touched meanwhile; 8 + 40 bytes are
            // less than 64.
            let memory = unsafe { Memory::from_raw_parts(start, len, true) }.unwrap();
            let mut model = vec![0u8; len];
            let mut next = 0u8;
            for from in 0..=len {
                for to in from..=len {
                    let new: Vec<u8> = (from..to)
                        .map(|_| {
                            next = next.wrapping_add(1);
                            next
                        })
                        .collect();
                    memory.write_at(from as u64, &new).unwrap();
                    model[from..to].copy_from_slice(&new);
                    assert_eq!(bytes(&memory, from as u64, to - from), model[from..to]);
                }
                assert_eq!(bytes(&memory, 0, len), model);
            }
            drop(memory);
            let whole: Vec<u8> = owner.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert!(whole[..skew].iter().all(|byte| *byte == 0), "before it");
            assert!(
                whole[skew + len..].iter().all(|byte| *byte == 0),
                "behind it"
            );
        }
    }
}

#[test]
fn copies_never_leave_the_memory() {
    let memory = Memory::anonymous(16).unwrap();
    let mut buf = [0; 16];
    assert!(memory.read_at(0, &mut buf).is_ok());
    assert!(memory.read_at(16, &mut []).is_ok());
    for offset in [1, 16, 17, u64::MAX - 8, u64::MAX] {
        assert!(memory.read_at(offset, &mut buf).is_err(), "{offset}");
        assert!(memory.write_at(offset, &buf).is_err(), "{offset}");
    }
    assert!(memory.read_at(17, &mut []).is_err());
    assert!(matches!(
        memory.write_at(10, &buf),
        Err(Error::OutOfRange {
            start: 10,
            end: 26,
            size: 16,
            ..
        })
    ));
}

#[test]
fn words_are_atomic_aligned_and_inside() {
    let memory = Memory::anonymous(24).unwrap();
    memory.store_u64(8, 41, Release).unwrap();
    assert_eq!(memory.fetch_add_u64(8, 1, AcqRel).unwrap(), 41);
    assert_eq!(memory.load_u64(8, Acquire).unwrap(), 42);
    let swap = |current, new| memory.compare_exchange_u64(8, current, new, SeqCst, Relaxed);
    assert_eq!(swap(42, 7).unwrap(), Ok(42));
    assert_eq!(swap(42, 8).unwrap(), Err(7));
    assert_eq!(bytes(&memory, 8, 8), 7u64.to_ne_bytes());
    memory.store_u64(8, u64::MAX, Relaxed).unwrap();
    memory.fetch_add_u64(8, 2, Relaxed).unwrap();
    assert_eq!(memory.load_u64(8, SeqCst).unwrap(), 1);

    assert!(memory.load_u64(16, Relaxed).is_ok());
    for offset in [17, 24, u64::MAX, u64::MAX - 7] {
        assert!(matches!(
            memory.load_u64(offset, Relaxed),
            Err(Error::OutOfRange { .. })
        ));
    }
    for offset in [1, 4, 15] {
        let address = memory.as_ptr().addr() as u64 + offset;
        assert!(matches!(
            memory.store_u64(offset, 0, Relaxed),
            Err(Error::Misaligned { address: a, .. }) if a == address
        ));
        assert!(memory.fetch_add_u64(offset, 0, Relaxed).is_err());
        assert!(swap(0, 0).is_ok());
    }
}

#[test]
fn it_is_the_address_that_must_be_aligned() {
    let mut owner = [0u64; 4];
    let start = owner.as_mut_ptr().cast::<u8>().wrapping_add(3);
    // SAFETY: the array outlives the memory and is not touched meanwhile.
    let memory = unsafe { Memory::from_raw_parts(start, 20, true) }.unwrap();
    assert!(memory.store_u64(0, 1, Relaxed).is_err());
    assert!(memory.store_u64(8, 1, Relaxed).is_err());
    memory.store_u64(5, 1, Relaxed).unwrap();
    drop(memory);
    assert_eq!(owner, [0, 1, 0, 0]);
}

#[test]
fn orderings_that_an_operation_cannot_have_are_errors_not_panics() {
    let memory = Memory::anonymous(8).unwrap();
    for order in [Release, AcqRel] {
        assert!(memory.load_u64(0, order).is_err());
        assert!(memory.compare_exchange_u64(0, 0, 1, SeqCst, order).is_err());
    }
    for order in [Acquire, AcqRel] {
        assert!(memory.store_u64(0, 1, order).is_err());
    }
    for order in [Relaxed, Acquire, Release, AcqRel, SeqCst] {
        assert!(memory.fetch_add_u64(0, 1, order).is_ok());
        assert!(memory.compare_exchange_u64(0, 0, 1, order, SeqCst).is_ok());
    }
}

#[test]
fn neighbours_in_a_word_do_not_lose_each_others_bytes() {
    let memory = Memory::anonymous(8).unwrap();
    let rounds: u8 = if cfg!(miri) { 20 } else { 255 };
    thread::scope(|scope| {
        for lane in 0..4u64 {
            let memory = &memory;
            scope.spawn(move || {
                for round in 1..=rounds {
                    memory.write_at(lane * 2, &[round, lane as u8]).unwrap();
                    assert_eq!(bytes(memory, lane * 2, 2), [round, lane as u8]);
                }
            });
        }
    });
    let r = rounds;
    assert_eq!(bytes(&memory, 0, 8), [r, 0, r, 1, r, 2, r, 3]);
}

#[test]
fn slices_in_place_are_checked_too() {
    let memory = Memory::from_owner(vec![1, 2, 3, 4]).unwrap();
    // SAFETY: no device has it, and the slices do not overlap.
    unsafe {
        let tail = memory.as_mut_slice(2..).unwrap();
        assert_eq!(memory.as_slice(..2).unwrap(), [1, 2]);
        tail[0] = 9;
        assert!(memory.as_slice(..5).is_err());
        assert!(memory.as_mut_slice(5..).is_err());
        assert_eq!(memory.as_slice(4..).unwrap(), [0u8; 0]);
    }
    assert_eq!(bytes(&memory, 0, 4), [1, 2, 9, 4]);
}

#[test]
fn an_owner_is_taken_out_with_its_bytes_in_place() {
    let memory = Memory::from_owner(vec![1, 2, 3]).unwrap();
    let first = memory.as_ptr();
    memory.write_at(1, &[9]).unwrap();
    let memory = memory.into_owner::<Box<[u8]>>().unwrap_err();
    assert_eq!(bytes(&memory, 0, 3), [1, 9, 3]);
    let vec: Vec<u8> = memory.into_owner().unwrap();
    assert_eq!((vec.as_ptr(), vec.as_slice()), (first, &[1, 9, 3][..]));

    let mapped = Memory::anonymous(8).unwrap();
    assert_eq!(mapped.into_owner::<Vec<u8>>().unwrap_err().len(), 8);
}

#[test]
fn bytes_are_copied_out_by_their_range() {
    let memory = Memory::from_owner(vec![1, 2, 3, 4]).unwrap();
    assert_eq!(memory.read_vec(..).unwrap(), [1, 2, 3, 4]);
    assert_eq!(memory.read_vec(1..=2).unwrap(), [2, 3]);
    assert!(memory.read_vec(4..).unwrap().is_empty());
    assert!(memory.read_vec(3..5).is_err());
    assert!(memory.read_vec(..=u64::MAX).is_err());
}

#[test]
fn memory_is_shown_in_one_line() {
    let memory = Memory::anonymous(16).unwrap();
    let expected = format!("Memory({:p} + 0x10, anonymous)", memory.as_ptr());
    assert_eq!(format!("{memory:#?}"), expected);
}

#[test]
fn owners_keep_their_bytes_and_are_dropped_with_the_memory() {
    let boxed: Box<[u8]> = vec![1, 2, 3].into();
    let memory = Memory::from_owner(boxed).unwrap();
    let memory = thread::spawn(move || memory).join().unwrap();
    memory.write_at(1, &[7]).unwrap();
    assert_eq!(bytes(&memory, 0, 3), [1, 7, 3]);
    assert!(format!("{memory:?}").contains("owned"));
    assert!(matches!(
        memory.flush_to_media(..),
        Err(Error::NotSupported { .. })
    ));
}

#[test]
fn what_is_taken_out_leaves_nothing_to_access() {
    let mut memory = Memory::anonymous(64).unwrap();
    let taken = memory.take();
    assert_eq!(taken.len(), 64);
    assert!(memory.read_at(0, &mut []).is_ok());
    assert!(memory.read_at(0, &mut [0]).is_err());
    assert!(memory.load_u64(0, Relaxed).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "reads /proc")]
fn nothing_stays_mapped() {
    let file = Scratch::with(&[1; 10_000]);
    let name = file.0.to_str().unwrap();
    let memory = Memory::map_file_range(&file.0, 5000, 100).unwrap();
    assert!(is_mapped(name));
    drop(memory);
    assert!(!is_mapped(name));
}

#[test]
#[cfg_attr(miri, ignore = "reads /proc")]
fn what_is_leaked_stays_mapped() {
    let file = Scratch::with(&[1; 100]);
    let mut memory = Memory::map_file(&file.0).unwrap();
    memory.leak();
    drop(memory);
    assert!(is_mapped(file.0.to_str().unwrap()));
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn a_mapped_file_changes_with_the_memory() {
    let file = Scratch::with(b"hello world");
    let memory = Memory::map_file(&file.0).unwrap();
    assert_eq!(memory.len(), 11);
    assert_eq!(bytes(&memory, 0, 11), b"hello world");
    memory.write_at(6, b"there").unwrap();
    memory.flush_to_media(6..11).unwrap();
    memory.flush_to_media(..).unwrap();
    memory.flush_to_media(3..3).unwrap();
    assert!(memory.flush_to_media(3..12).is_err());
    drop(memory);
    assert_eq!(fs::read(&file.0).unwrap(), b"hello there");
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn part_of_a_file_may_start_anywhere_but_not_end_beyond() {
    let content: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
    let file = Scratch::with(&content);
    for (offset, len) in [
        (0, 1),
        (1, 4096),
        (4095, 2),
        (4096, 4096),
        (12_345, 7_655),
        (19_999, 1),
    ] {
        let memory = Memory::map_file_range(&file.0, offset, len).unwrap();
        let start = offset as usize;
        assert_eq!(bytes(&memory, 0, len), content[start..start + len]);
        memory.flush_to_media(..).unwrap();
        memory.flush_to_media(len as u64 - 1..).unwrap();
    }
    for (offset, len) in [
        (0, 20_001),
        (19_999, 2),
        (20_000, 1),
        (u64::MAX, 1),
        (1 << 63, 8),
        (0, usize::MAX),
    ] {
        assert!(Memory::map_file_range(&file.0, offset, len).is_err());
    }
    assert!(matches!(
        Memory::map_file_range(&file.0, 19_000, 2_000),
        Err(Error::OutOfRange {
            start: 19_000,
            end: 21_000,
            size: 20_000,
            ..
        })
    ));
    assert!(Memory::map_file_range(&file.0, 0, 0).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn read_only_memory_is_a_source_and_nothing_else() {
    let file = Scratch::with(&42u64.to_ne_bytes());
    let memory = Memory::map_file_read_only(&file.0).unwrap();
    assert!(!memory.is_writable());
    for order in [Relaxed, Acquire, SeqCst] {
        assert_eq!(memory.load_u64(0, order).unwrap(), 42);
    }
    assert!(memory.write_at(0, &[1]).is_err());
    assert!(memory.store_u64(0, 1, Relaxed).is_err());
    assert!(memory.fetch_add_u64(0, 1, Relaxed).is_err());
    assert!(
        memory
            .compare_exchange_u64(0, 42, 1, Relaxed, Relaxed)
            .is_err()
    );
    // SAFETY: refused before there is a slice.
    assert!(unsafe { memory.as_mut_slice(..) }.is_err());

    for usage in Usage::all().iter() {
        let sources = Usage::READ_SRC
            | Usage::WRITE_SRC
            | Usage::SEND
            | Usage::FLUSH_VISIBILITY
            | Usage::FLUSH_PERSISTENT;
        let fine = usage.check_memory(&memory).is_ok();
        assert_eq!(fine, sources.contains(usage), "{usage:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn a_created_file_has_its_length_and_never_replaces_another() {
    let file = Scratch::new();
    let memory = Memory::create_file(&file.0, 10_000).unwrap();
    memory.write_at(9_990, b"0123456789").unwrap();
    memory.flush_to_media(9_990..).unwrap();
    let error = Memory::create_file(&file.0, 1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
    drop(memory);
    let content = fs::read(&file.0).unwrap();
    assert_eq!(content.len(), 10_000);
    assert_eq!(&content[9_990..], b"0123456789");
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn a_file_that_cannot_be_had_leaves_no_trace() {
    let file = Scratch::new();
    assert!(Memory::create_file(&file.0, isize::MAX as usize).is_err());
    assert!(Memory::create_file(&file.0, 0).is_err());
    assert!(!file.0.exists());
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn what_is_no_file_says_so() {
    let missing = Memory::map_file("/nonexistent/file").unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    let empty = Scratch::with(b"");
    let error = Memory::map_file(&empty.0).unwrap_err();
    assert_eq!(error.to_string(), "path: the file is empty");
    for path in ["/dev/zero", "/dev/null"] {
        let error = Memory::map_file(path).unwrap_err();
        assert!(error.to_string().contains("/dev/dax"), "{error}");
    }
    assert!(Memory::map_file_read_only("/").is_err());
}

#[test]
#[cfg_attr(miri, ignore = "maps huge pages")]
fn huge_pages_come_or_the_error_says_what_to_do() {
    match Memory::huge(100, HugePage::Size2M) {
        Ok(memory) => {
            assert_eq!(memory.len(), 100);
            assert_eq!(memory.as_ptr().addr() % HugePage::Size2M.bytes(), 0);
            memory.write_at(0, &[1; 100]).unwrap();
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("hugepages"), "{text}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps files")]
fn holes_of_a_file_are_filled_before_it_is_mapped_to_be_written() {
    use std::os::unix::fs::MetadataExt;

    use nix::fcntl::{FallocateFlags, fallocate};

    let sparse = |len| {
        let path = Scratch::new();
        let file = fs::File::create_new(&path.0).unwrap();
        file.set_len(len).unwrap();
        (path, file)
    };
    let filled = |file: &fs::File| file.metadata().unwrap().blocks() * 512;
    let (path, file) = sparse(1 << 20);
    // Blocks behind the end of the file do not fill a hole before it.
    let behind = FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let _ = fallocate(&file, behind, 1 << 20, 1 << 20);
    drop(Memory::map_file_read_only(&path.0).unwrap());
    let before = filled(&file);
    if nix::fcntl::posix_fallocate(&sparse(4096).1, 0, 4096).is_err() || before >= 2 << 20 {
        println!("SKIP: holes_of_a_file_are_filled: the file system has no holes to fill");
        return;
    }
    let part = Memory::map_file_range(&path.0, 5000, 9000).unwrap();
    assert!(filled(&file) >= before + 9000);
    let whole = Memory::map_file(&path.0).unwrap();
    assert!(filled(&file) >= before + (1 << 20));
    assert_eq!((part.len(), whole.len()), (9000, 1 << 20));
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    assert_eq!(whole.read_vec(..).unwrap(), vec![0; 1 << 20]);
}
