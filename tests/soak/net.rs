//! The hosts, as network namespaces on one bridge, each with a device of its own; and what the
//! network does to them.
//!
//! Two hosts and one more: what is cut off for good must be one client, so it has a link of its
//! own.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Outcome, rng::Rng};

/// Where the server is.
pub const SERVER: Host = Host {
    name: "srv",
    addr: "192.168.78.1",
};
/// Where most clients are.
pub const CLIENTS: Host = Host {
    name: "cli",
    addr: "192.168.78.2",
};
/// Where the one is that will be cut off.
pub const LONELY: Host = Host {
    name: "lone",
    addr: "192.168.78.3",
};

#[derive(Clone, Copy)]
pub struct Host {
    pub name: &'static str,
    pub addr: &'static str,
}

const HOSTS: [Host; 3] = [SERVER, CLIENTS, LONELY];

/// Makes hosts, links and devices, where they are not there from a run before.
pub fn set_up(dev: &str) -> Outcome {
    if Path::new("/run/netns").join(LONELY.name).exists() {
        return mend();
    }
    let driver = match dev {
        "rxe" => "rdma_rxe",
        other => other,
    };
    command(
        "modprobe",
        &[
            "-a",
            "ib_uverbs",
            "rdma_ucm",
            "veth",
            "bridge",
            "sch_netem",
            driver,
        ],
    )?;
    command("ip", &["link", "add", "br0", "type", "bridge"])?;
    command("ip", &["link", "set", "br0", "up"])?;
    for Host { name, addr } in HOSTS {
        let port = format!("{name}-p");
        command("ip", &["netns", "add", name])?;
        command(
            "ip",
            &[
                "link", "add", &port, "type", "veth", "peer", "name", "e0", "netns", name,
            ],
        )?;
        command("ip", &["link", "set", &port, "master", "br0", "up"])?;
        command("ip", &["-n", name, "link", "set", "lo", "up"])?;
        let address = format!("{addr}/24");
        command("ip", &["-n", name, "address", "add", &address, "dev", "e0"])?;
        command("ip", &["-n", name, "link", "set", "e0", "up"])?;
        // TCP, which carries iWARP, is to give up in 13 seconds instead of a quarter of an hour.
        let patience = "net.ipv4.tcp_retries2=5";
        command("ip", &["netns", "exec", name, "sysctl", "-qw", patience])?;
    }
    for Host { name, .. } in HOSTS {
        let link = format!("{dev}_{name}");
        command(
            "ip",
            &[
                "netns", "exec", name, "rdma", "link", "add", &link, "type", dev, "netdev", "e0",
            ],
        )?;
    }
    Ok(())
}

/// A program on a host.
pub fn on(host: Host, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", host.name])
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// What the network does, and for how long.
pub struct Phase {
    pub name: String,
    pub kind: Kind,
    pub lasts: Duration,
    /// What netem does to what leaves the server, and to what leaves the clients.
    to_clients: String,
    to_server: String,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Weather,
    CutBoth,
    CutOneWay,
}

/// The name of a phase in which nothing happens to packets.
pub const CALM_PHASE: &str = "calm";
const CALM: &str = "limit 10000";
const CUT: &str = "limit 10000 loss 100%";

impl Phase {
    pub fn calm() -> Phase {
        Phase {
            name: CALM_PHASE.into(),
            kind: Kind::Weather,
            lasts: Duration::from_secs(5),
            to_clients: CALM.into(),
            to_server: CALM.into(),
        }
    }

    pub fn random(rng: &mut Rng) -> Phase {
        let (kind, to_clients, to_server, lasts) = match rng.in_range(0..100) {
            0..12 => (Kind::CutBoth, CUT.into(), CUT.into(), 500..5000),
            12..18 => (Kind::CutBoth, CUT.into(), CUT.into(), 10_000..16_000),
            18..30 => (Kind::CutOneWay, CUT.into(), CALM.into(), 500..6000),
            30..42 => (Kind::CutOneWay, CALM.into(), CUT.into(), 500..6000),
            42..52 => return Phase::calm(),
            _ => {
                let both = weather(rng);
                // The same both ways, or to one side only.
                let (one, other) = match rng.in_range(0..3) {
                    0 => (both.clone(), CALM.to_owned()),
                    1 => (CALM.to_owned(), both.clone()),
                    _ => (both.clone(), both),
                };
                (Kind::Weather, one, other, 4000..10_000)
            }
        };
        let short = |netem: &str| match netem.strip_prefix(CALM) {
            Some("") => "calm".to_owned(),
            Some(rest) => rest.trim().to_owned(),
            None => netem.to_owned(),
        };
        let (a, b) = (short(&to_clients), short(&to_server));
        Phase {
            name: match a == b {
                true => format!("both ways {a}"),
                false => format!("to clients {a}, to server {b}"),
            },
            kind,
            lasts: rng.millis(lasts),
            to_clients,
            to_server,
        }
    }

    pub fn begin(&self) -> Outcome {
        netem(&SERVER, &self.to_clients)?;
        netem(&CLIENTS, &self.to_server)
    }
}

/// Some of: loss, delay, duplicates, packets that overtake others.
fn weather(rng: &mut Rng) -> String {
    let mut netem = CALM.to_owned();
    let kinds = rng.in_range(1..16);
    let delay = rng.in_range(1..8);
    if kinds & 1 != 0 {
        // In tenths of a percent.
        let loss = rng.in_range(1..20);
        netem += &format!(" loss {}.{}%", loss / 10, loss % 10);
    }
    if kinds & 2 != 0 {
        netem += &format!(" duplicate {}%", rng.in_range(1..5));
    }
    if kinds & 8 != 0 {
        // Those that are not delayed overtake the others.
        netem += &format!(" delay {delay}ms reorder {}%", rng.in_range(1..10));
    } else if kinds & 4 != 0 {
        netem += &format!(" delay {delay}ms");
    }
    netem
}

/// Nothing gets to the lonely host, and nothing from it.
pub fn cut_off() -> Outcome {
    netem(&LONELY, CUT)?;
    netem_on(&[], &format!("{}-p", LONELY.name), CUT)
}

pub fn mend() -> Outcome {
    netem(&LONELY, CALM)?;
    netem_on(&[], &format!("{}-p", LONELY.name), CALM)
}

fn netem(host: &Host, what: &str) -> Outcome {
    netem_on(&["-n", host.name], "e0", what)
}

fn netem_on(namespace: &[&str], dev: &str, what: &str) -> Outcome {
    let mut args = namespace.to_vec();
    args.extend(["qdisc", "replace", "dev", dev, "root", "netem"]);
    args.extend(what.split_whitespace());
    command("tc", &args)
}

fn command(program: &str, args: &[&str]) -> Outcome {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|err| format!("{program}: {err}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{program} {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )
        .into()),
    }
}
