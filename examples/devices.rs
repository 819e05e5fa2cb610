//! Prints the RDMA devices of this machine, and what is wrong where there is none to be used.
//!
//! ```sh
//! cargo run --example devices               # all devices
//! cargo run --example devices -- ADDRESS    # the one with this address; tries what a connection takes
//! ```

use std::process::ExitCode;

use rpma::{Memory, Peer, Result, Srq, SrqCfg, Usage};

fn main() -> ExitCode {
    let result = match std::env::args().nth(1) {
        Some(address) => look_at(&address),
        None => list(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("devices: {err}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<()> {
    let devices = rpma::devices()?;
    for device in &devices {
        println!("{device:?}");
    }
    println!("{} devices", devices.len());
    Ok(())
}

/// Looks whether memory can be registered and queues be made, which limits may forbid.
fn look_at(address: &str) -> Result<()> {
    let peer = Peer::local(address)?;
    println!("{:?}", peer.device_info()?);
    let region = peer.register(Memory::anonymous(4096)?, Usage::RECV)?;
    let queue = Srq::new(&peer, &SrqCfg::new())?;
    println!("{region:?} and {queue:?} can be made");
    Ok(())
}
