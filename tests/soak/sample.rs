//! What the server's process, and the devices, hold at a moment; and whether that is more than it
//! was.

use std::{collections::BTreeMap, fs, process::Command};

use crate::Outcome;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Counts of queue pairs, completion queues, regions, domains and the like, by "device kind":
    /// of all processes, as the kernel has them.
    pub resources: BTreeMap<String, u64>,
    pub fds: u64,
    pub mappings: u64,
    pub threads: u64,
    /// All of the memory that is resident, in KiB.
    pub rss: u64,
    /// Of it what no file is behind: the heap.
    pub anon: u64,
    /// The endpoints whose listener the driver closed, which the server keeps.
    pub deaf: u64,
}

/// An allocator keeps some of what it once had; more than this is a leak. In KiB.
const SLACK: u64 = 512;
/// The fds of an endpoint: its event channel.
const ENDPOINT_FDS: u64 = 1;

impl Sample {
    pub fn take(pid: u32, deaf: u64) -> Outcome<Sample> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Sample {
            resources: resources()?,
            fds: fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
            mappings: fs::read_to_string(format!("/proc/{pid}/maps"))?
                .lines()
                .count() as u64,
            threads: field(&status, "Threads")?,
            rss: field(&status, "VmRSS")?,
            anon: field(&status, "RssAnon")?,
            deaf,
        })
    }

    /// What there is more of than in `before`, if anything; in words.
    pub fn grown(&self, before: &Sample) -> Vec<String> {
        let mut grown = Vec::new();
        let deaf = self.deaf.saturating_sub(before.deaf);
        let mut compare = |name: &str, was: u64, is: u64, slack: u64| {
            if is > was + slack {
                grown.push(format!("{name}: {was} after the warm-up, {is} at the end"));
            }
        };
        for (name, is) in &self.resources {
            let was = before.resources.get(name).copied().unwrap_or(0);
            let slack = if name.ends_with(" cm_id") { deaf } else { 0 };
            compare(name, was, *is, slack);
        }
        compare("fds", before.fds, self.fds, deaf * ENDPOINT_FDS);
        compare("mappings", before.mappings, self.mappings, 0);
        compare("threads", before.threads, self.threads, 0);
        compare("resident memory (KiB)", before.rss, self.rss, SLACK);
        compare("heap (KiB)", before.anon, self.anon, SLACK);
        grown
    }

    /// The resources of all devices together, in one line.
    pub fn held(&self) -> String {
        let mut sums = BTreeMap::new();
        for (name, n) in &self.resources {
            let kind = name.rsplit(' ').next().unwrap_or_default();
            *sums.entry(kind).or_insert(0) += n;
        }
        sums.retain(|_, n| *n > 0);
        let words: Vec<String> = sums.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        words.join(", ")
    }
}

pub fn resources() -> Outcome<BTreeMap<String, u64>> {
    let output = Command::new("rdma").arg("resource").output()?;
    if !output.status.success() {
        return Err("rdma resource failed".into());
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Lines like `0: rxe_srv: pd 1 cq 1 qp 1`.
fn parse(said: &str) -> Outcome<BTreeMap<String, u64>> {
    let mut resources = BTreeMap::new();
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace().skip(1);
        let device = words.next().and_then(|word| word.strip_suffix(':'));
        let device = device.ok_or_else(|| format!("rdma resource says {line:?}"))?;
        while let Some(kind) = words.next() {
            let n = words.next().and_then(|n| n.parse().ok());
            let n = n.ok_or_else(|| format!("rdma resource says {line:?}"))?;
            resources.insert(format!("{device} {kind}"), n);
        }
    }
    match resources.is_empty() {
        true => Err("rdma resource says nothing".into()),
        false => Ok(resources),
    }
}

fn field(status: &str, name: &str) -> Outcome<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number
        .ok_or_else(|| format!("no {name} in /proc/PID/status"))?
        .parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "0: rxe_srv: pd 2 cq 1 qp 1 cm_id 2 mr 1 ctx 1 srq 0 \n\
                        1: rxe_cli: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0 \n";

    fn sample() -> Sample {
        Sample {
            resources: parse(SAID).unwrap(),
            fds: 9,
            mappings: 50,
            threads: 1,
            rss: 4000,
            anon: 1000,
            deaf: 0,
        }
    }

    #[test]
    fn what_rdma_says_is_understood() {
        let resources = parse(SAID).unwrap();
        assert_eq!(resources.len(), 14);
        assert_eq!(resources["rxe_srv cm_id"], 2);
        assert_eq!(resources["rxe_cli pd"], 1);
        assert_eq!(sample().held(), "cm_id 2, cq 2, ctx 1, mr 1, pd 3, qp 2");
        assert!(parse("").is_err());
        assert!(parse("0: rxe_srv: pd").is_err());
        assert!(parse("0: rxe_srv pd 1").is_err());
    }

    #[test]
    fn the_same_has_not_grown_nor_has_less() {
        assert!(sample().grown(&sample()).is_empty());
        let mut deaf = sample();
        deaf.deaf = 1;
        deaf.fds += ENDPOINT_FDS;
        deaf.resources.insert("rxe_srv cm_id".into(), 3);
        assert!(deaf.grown(&sample()).is_empty());
        let mut less = sample();
        less.fds = 8;
        less.rss = 3000;
        assert!(less.grown(&sample()).is_empty());
    }

    #[test]
    fn each_leak_is_told() {
        type Leak = fn(&mut Sample);
        let leaks: [(&str, Leak); 7] = [
            ("rxe_srv mr", |s| {
                s.resources.insert("rxe_srv mr".into(), 2);
            }),
            ("rxe_new qp", |s| {
                s.resources.insert("rxe_new qp".into(), 1);
            }),
            ("fds", |s| s.fds += 1),
            ("mappings", |s| s.mappings += 1),
            ("threads", |s| s.threads += 1),
            ("resident memory", |s| s.rss += SLACK + 1),
            ("heap", |s| s.anon += SLACK + 1),
        ];
        for (name, leak) in leaks {
            let mut after = sample();
            leak(&mut after);
            let grown = after.grown(&sample());
            assert!(grown.len() == 1 && grown[0].starts_with(name), "{grown:?}");
        }
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert!(field(&status, "Threads").unwrap() >= 1);
        assert!(field(&status, "RssAnon").unwrap() > 0);
        assert!(field(&status, "NoSuchThing").is_err());
    }
}
