//! What is known of the sections and opponents beforehand. Others are shown too, after these.

use crate::results::{Results, distinct};

/// A part of the page.
pub struct Section {
    pub key: String,
    pub title: String,
    /// How it was measured.
    pub about: &'static str,
}

const SECTIONS: &[(&str, &str, &str)] = &[
    (
        "instructions",
        "Instructions per call in the library",
        "Counted by callgrind on the stand-in device in its null mode, as the difference of two loop lengths. Of a C interface only the library's own \
         instructions count; of code that is inlined all of the loop's body. librpma has no batches: its rows of one batch are its separate calls.",
    ),
    (
        "syscalls",
        "System calls per operation",
        "As the kernel's own trace has them, the average of 200 operations, on a software device, whose doorbell is a system call. There is one \
         processor; the sched_yield of a program that polls in vain does not count.",
    ),
    (
        "guest-rxe",
        "All instructions of a guest, Soft-RoCE",
        "User space, kernel and both ends' device work, of one virtual processor that counts its instructions (QEMU's icount).",
    ),
    (
        "guest-siw",
        "All instructions of a guest, soft-iWARP",
        "The same on soft-iWARP.",
    ),
    (
        "clock-rxe",
        "Wall clock, Soft-RoCE",
        "Two virtual processors under software emulation, the device's workers pinned to one and the caller to the other: only the ratios mean \
         something, and the modes took turns in one boot.",
    ),
    (
        "clock-siw",
        "Wall clock, soft-iWARP",
        "The same on soft-iWARP.",
    ),
    (
        "waits",
        "Waiting for a completion",
        "Wall clock, Soft-RoCE, two virtual processors.",
    ),
    (
        "scale",
        "Many connections on one thread",
        "Both ends are in one process, on one virtual processor that counts its instructions: a second is 10⁹ of them, whatever else the machine does. An \
         end is one side of a connection; its memory is what the process has resident, without the kernel's. Messages are of 64 bytes, one on each \
         connection at a time; writes are of 64 bytes, each lot done before the next.",
    ),
    (
        "setup",
        "Setting up and tearing down connections",
        "One after the other, both ends by the same thread, on the processor that counts instructions: a second is 10⁹ of them.",
    ),
    (
        "regcost",
        "Registering memory",
        "Registration and deregistration of memory that has been touched, by its size in bytes, on the processor that counts instructions: a microsecond is \
         1,000 of them.",
    ),
];

/// The sections that have a result, the known ones first.
pub fn sections(results: &Results) -> Vec<Section> {
    let there = distinct(results.series.iter().map(|of| of.section.as_str()));
    let known =
        SECTIONS
            .iter()
            .filter(|(key, ..)| there.contains(key))
            .map(|&(key, title, about)| Section {
                key: key.to_owned(),
                title: title.to_owned(),
                about,
            });
    let unknown = there
        .iter()
        .filter(|key| !SECTIONS.iter().any(|(known, ..)| known == *key))
        .map(|&key| Section {
            key: key.to_owned(),
            title: key.to_owned(),
            about: "",
        });
    known.chain(unknown).collect()
}

/// The title of a section by its key.
pub fn title_of(key: &str) -> &str {
    SECTIONS
        .iter()
        .find(|(known, ..)| *known == key)
        .map_or(key, |(_, title, _)| title)
}

/// An opponent's name in the results, its name in print, and the colour of its marks.
const OPPONENTS: &[(&str, &str, (u8, u8, u8))] = &[
    ("rpma", "rpma", (0x2f, 0x81, 0xf7)),
    ("rpma, calls", "rpma, a call each", (0x6f, 0x9f, 0xd0)),
    ("rpma-c", "librpma.so.0 of rpma", (0x1b, 0x9e, 0x9e)),
    ("librpma", "librpma 1.3", (0xe0, 0x7b, 0x39)),
    ("raw", "by hand in C", (0x8b, 0x94, 0x9e)),
    ("raw-chained", "by hand in C, one list", (0x6e, 0x8f, 0x3c)),
    ("perftest", "perftest", (0xa3, 0x71, 0xd0)),
    ("sideway", "sideway", (0xd0, 0x5c, 0x9a)),
    ("sideway-extended", "sideway, extended", (0xb0, 0x70, 0x90)),
    ("ibverbs", "ibverbs", (0xc0, 0x9a, 0x20)),
];

/// The opponents that have one of the results, the known ones first.
pub fn opponents<'a>(there: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut there = distinct(there);
    there.sort_by_key(|name| {
        OPPONENTS
            .iter()
            .position(|(known, ..)| known == name)
            .unwrap_or(OPPONENTS.len())
    });
    there
}

/// How an opponent is called in print.
pub fn name_of(opponent: &str) -> &str {
    OPPONENTS
        .iter()
        .find(|(known, ..)| *known == opponent)
        .map_or(opponent, |(_, name, _)| name)
}

/// Its colour: neither light nor dark, so that it can be seen on both.
pub fn colour_of(opponent: &str) -> (u8, u8, u8) {
    OPPONENTS
        .iter()
        .find(|(known, ..)| *known == opponent)
        .map_or((0xc9, 0x4f, 0x4f), |&(_, _, colour)| colour)
}

/// Of a rate more is better; of all else, less.
pub fn more_is_better(unit: &str) -> bool {
    unit.ends_with("/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sections_and_opponents_come_first() {
        let mut results = Results::default();
        results
            .read("RESULT\tnew\tc\tnobody\tns\t1\nRESULT\tscale\tc\tlibrpma\tns\t1\nRESULT\tscale\tc\trpma\tns\t1\n")
            .unwrap();
        let keys: Vec<_> = sections(&results).into_iter().map(|s| s.key).collect();
        assert_eq!(keys, ["scale", "new"]);
        let names = opponents(results.series.iter().map(|of| of.opponent.as_str()));
        assert_eq!(names, ["rpma", "librpma", "nobody"]);
        assert_eq!(name_of("nobody"), "nobody");
        assert_eq!(title_of("new"), "new");
    }

    #[test]
    fn rates_go_up() {
        assert!(more_is_better("MiB/s"));
        assert!(!more_is_better("us"));
        assert!(!more_is_better("B/connection"));
    }

    /// By the relative luminance of WCAG: 3 is what it asks of graphics.
    #[test]
    fn colours_can_be_seen_on_white_and_on_black() {
        fn linear(part: u8) -> f64 {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        }
        for (name, ..) in OPPONENTS.iter().chain(&[("unknown", "", (0, 0, 0))]) {
            let (r, g, b) = colour_of(name);
            let light = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
            let (on_white, on_black) = (1.05 / (light + 0.05), (light + 0.05) / 0.05);
            assert!(
                on_white >= 2.5 && on_black >= 3.0,
                "{name}: {on_white:.1}, {on_black:.1}"
            );
        }
    }
}
