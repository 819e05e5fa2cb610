//! Patterns of operations on a real device, through rpma: what `ci/bench` measures in a guest.
//!
//! `guest [-t] [-y] [-c] WHAT@SIZE*N[/HOW]…`: each case is done N times, and a line tells what it
//! took. `benches/guest/measure` has the cases, `raw.c` and `librpma.c` do the same by other means.

mod cases;
mod ends;

use std::process::ExitCode;

use cases::{Case, How, Table, What};
use ends::Ends;

/// What the options say.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    /// Count the ticks of the time stamp counter: where the guest counts instructions, it advances
    /// by one with each.
    ticks: bool,
    /// Give the processor away where nothing is there to poll for.
    yields: bool,
    /// Each operation with a call of its own, where a batch could be.
    calls: bool,
}

fn main() -> ExitCode {
    let address = std::env::var("RPMA_TEST_ADDR");
    let (Ok(address), 2..) = (
        address,
        std::env::args().filter(|arg| arg != "--bench").count(),
    ) else {
        // `cargo bench` runs it so, perhaps with arguments that are for others.
        println!("usage: RPMA_TEST_ADDR=… guest [-t] [-y] [-c] WHAT@SIZE*N[/HOW]…; see ci/bench");
        return ExitCode::SUCCESS;
    };
    let mut options = Options::default();
    let mut cases = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "-t" => options.ticks = true,
            "-y" => options.yields = true,
            "-c" => options.calls = true,
            // `cargo bench` gives it.
            "--bench" => {}
            text => match Case::parse(text) {
                Some(case) => cases.push(case),
                None => {
                    eprintln!("no such case: {text}");
                    return ExitCode::from(2);
                }
            },
        }
    }
    match run(&address, options, &cases) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("guest: {err}");
            ExitCode::FAILURE
        }
    }
}

fn run(address: &str, options: Options, cases: &[Case]) -> Result<(), Box<dyn std::error::Error>> {
    let ends = Ends::connect(address)?;
    let mut user = ends.user(options)?;
    for (n, case) in cases.iter().enumerate() {
        let mark = u8::try_from(n % 200)? + 1;
        ends.mark(case, mark)?;
        let mut table = Table::new(case.n);
        match case.how {
            How::Flight => {
                user.in_flight(case, case.warm_up())?;
                let start = user.now();
                user.in_flight(case, case.n)?;
                table.whole(user.now() - start);
            }
            _ => {
                user.one_by_one(case, &mut Table::new(case.warm_up()))?;
                let start = user.now();
                user.one_by_one(case, &mut table)?;
                table.whole(user.now() - start);
            }
        }
        ends.check(case, mark)?;
        println!("{}", table.line(case));
    }
    Ok(())
}
