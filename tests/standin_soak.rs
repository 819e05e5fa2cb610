//! The soak's server and one of its clients (`tests/soak/`) in one process, on the stand-in device
//! of `ci/standin`: whether what they do and compare is right, where no network disturbs it.

#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the soak does more")]

#[path = "soak/board.rs"]
mod board;
#[path = "soak/client.rs"]
mod client;
#[path = "soak/differs.rs"]
mod differs;
#[path = "../examples/remote_log/format.rs"]
mod format;
#[path = "../examples/remote_log/hello.rs"]
mod hello;
#[path = "soak/link.rs"]
mod link;
#[path = "soak/listener.rs"]
mod listener;
#[path = "soak/log.rs"]
mod log;
#[path = "soak/pages.rs"]
mod pages;
#[path = "soak/rng.rs"]
mod rng;
#[path = "soak/server.rs"]
mod server;
#[path = "../examples/remote_log/store.rs"]
mod store;
#[path = "soak/verdict.rs"]
mod verdict;

use std::{
    error::Error,
    fmt::Display,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use board::{Board, Count, Mode};
use clap::Parser;
use standin_control::{Personality, Standin};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What the client says of connections that end, which some of them do on purpose.
fn say(line: impl Display) {
    println!("{line}");
}

const ADDR: &str = "192.168.77.1";
const PORT: &str = "7471";
/// Far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Parser)]
struct Cli<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

fn args<A: clap::Args>(folder: &Path, more: &str) -> A {
    let folder = folder.to_str().unwrap();
    let common = ["soak", "--addr", ADDR, "--folder", folder];
    let all = common.into_iter().chain(more.split_whitespace());
    Cli::parse_from(all).args
}

/// Lets one client work until it has written and read so many records across pages; gives what
/// client, server and files say is wrong.
fn soak(folder: &Path, records: u64, more: &str) -> Vec<String> {
    let board = Board::create(&folder.join("board")).unwrap();
    let words = |result: Outcome| result.err().map(|err| err.to_string());
    let mut problems = thread::scope(|scope| {
        let server = scope.spawn(|| {
            let args = args(folder, &format!("--port {PORT} --slots 1 --idle 2000"));
            words(server::run(&args))
        });
        let start = Instant::now();
        let waits = || start.elapsed() < PATIENCE;
        while !folder.join("listening").exists() && !server.is_finished() && waits() {
            thread::sleep(Duration::from_millis(10));
        }
        let client = scope.spawn(|| {
            let args = args(folder, &format!("--slot 0 --seed 7 {more}"));
            words(client::run(&args))
        });
        let done = || {
            board.get(Count::Crossed) >= records
                && board.get(Count::CrossedRead) >= records
                && board.get(Count::Recovered) > 0
        };
        while !done() && !client.is_finished() && !server.is_finished() && waits() {
            thread::sleep(Duration::from_millis(10));
        }
        board.set_mode(Mode::Pause);
        let client = client.join().unwrap();
        board.set_mode(Mode::Quit);
        let server = server.join().unwrap();
        if client.is_none() && server.is_none() && !done() {
            return vec![format!("not done after {:?}", start.elapsed())];
        }
        client.into_iter().chain(server).collect::<Vec<String>>()
    });
    problems.extend(verdict::check(folder, 1).unwrap());
    problems
}

fn on(personality: Personality, test: impl FnOnce(&Path)) {
    let Some(standin) = Standin::exclusive() else {
        println!("SKIP: not on the stand-in: LD_LIBRARY_PATH=$(ci/standin)");
        return;
    };
    standin.personality(personality);
    let before = standin.objects();
    let folder = std::env::temp_dir().join(format!("rpma-soak-standin-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    test(&folder);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(standin.objects(), before);
    assert_eq!(standin.violations(), Vec::<String>::new());
}

#[test]
fn short_records_across_pages_are_as_they_were_written() {
    for personality in [Personality::Rxe, Personality::Siw, Personality::Mlx5] {
        on(personality, |folder| {
            assert_eq!(
                soak(folder, 300, ""),
                Vec::<String>::new(),
                "{personality:?}"
            );
        });
    }
}

#[test]
fn a_client_that_does_nothing_against_the_fault_of_siw_is_told_what_differs() {
    on(Personality::Siw, |folder| {
        let problems = soak(folder, 300, "--no-workarounds");
        let client = problems.first().unwrap();
        let lines: Vec<&str> = client.lines().collect();
        assert!(lines[0].contains("is not what was written"), "{client}");
        let begins = ["written", "read  ", "read again", "the server's file"];
        for (line, begin) in lines[1..].iter().zip(begins) {
            assert!(line.trim_start().starts_with(begin), "{client}");
        }
        assert_eq!(lines.len(), 5, "{client}");
    });
}
