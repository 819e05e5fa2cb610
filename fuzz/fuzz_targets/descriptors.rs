//! Descriptors of memory and of peers' configurations, as a peer that means ill could send them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpma::{PeerCfg, RemoteRegion};

fuzz_target!(|data: &[u8]| {
    assert_eq!(PeerCfg::from_descriptor(data).is_ok(), !data.is_empty());
    if let Ok(cfg) = PeerCfg::from_descriptor(data) {
        assert_eq!(cfg.direct_write_to_pmem(), data[0] != 0);
    }

    let Ok(region) = RemoteRegion::from_descriptor(data) else { return };
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    assert!(data.len() >= 21);
    assert_eq!((region.address(), region.len()), (word(0), word(8)));
    assert_eq!(region.rkey(), u32::from_le_bytes(data[16..20].try_into().unwrap()));
    // Nothing of it leaves the address space, and so nothing that is made of it does.
    assert!(region.len() > 0);
    assert!(region.address().checked_add(region.len() - 1).is_some());
    assert!(!region.usage().is_empty());
    assert!(region.methods().is_none() || data.len() > 21);

    let (start, end) = (data[0] as u64 * 3, data[8] as u64 * 5);
    let slice = region.slice(start..end);
    assert_eq!(slice.is_ok(), start <= end && end <= region.len(), "{start}..{end} of {}", region.len());
    if let Ok(slice) = slice {
        assert_eq!((slice.address(), slice.len()), (region.address() + start, end - start));
        assert!(slice.slice(..end - start + 1).is_err());
    }
    assert!(region.slice(..=u64::MAX).is_err());
    // The end of a region is a range of it, and one region ends there: all of the address space but
    // its last byte.
    assert_eq!(region.slice(u64::MAX..).is_ok(), region.len() == u64::MAX);
});
