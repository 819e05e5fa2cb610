//! Why this process has no device though the machine has one: its node, the provider, or the
//! cgroup.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use crate::Error;

/// What keeps this process from a device, and what the last look at it said.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(crate) reason: String,
    pub(crate) source: io::Error,
}

/// The error where no device was found for `address` (empty for any): [`Error::NoDevice`] with
/// `source`, or [`Error::Unusable`] where the machine has a device that this process cannot use.
pub(crate) fn no_device(address: String, source: io::Error) -> Error {
    match Machine::this().device_obstacle() {
        Some(Obstacle { reason, source }) => Error::Unusable {
            address,
            reason,
            source,
        },
        None => Error::NoDevice { address, source },
    }
}

/// `err` of a cm id or an event channel that librdmacm did not make, or what it comes from where its
/// own node cannot be used: librdmacm says that it has no memory then.
pub(crate) fn explained(err: Error) -> Error {
    match Machine::this().connection_manager_obstacle() {
        Some(Obstacle { reason, source }) => Error::Unusable {
            address: String::new(),
            reason,
            source,
        },
        None => err,
    }
}

/// Where the kernel tells of devices.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn this() -> Self {
        Machine { root: "/".into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// What keeps this process from the first device that it cannot use. `None` where there is no
    /// device, or no reason to be seen.
    fn device_obstacle(&self) -> Option<Obstacle> {
        let nodes = names(&self.path("sys/class/infiniband_verbs"));
        let mut devices = Vec::new();
        for node in nodes.iter().filter(|name| name.starts_with("uverbs")) {
            let file = format!("sys/class/infiniband_verbs/{node}/ibdev");
            if let Ok(device) = fs::read_to_string(self.path(&file)) {
                devices.push((device.trim().to_owned(), format!("dev/infiniband/{node}")));
            }
        }
        for device in names(&self.path("sys/class/infiniband")) {
            match devices.iter().find(|(name, _)| *name == device) {
                Some((_, node)) => {
                    if let Some(obstacle) = self.node_obstacle(&device, node) {
                        return Some(obstacle);
                    }
                }
                None => {
                    return Some(Obstacle {
                        reason: format!(
                            "{device} is there, but nothing offers it to programs: load the \
                             module ib_uverbs"
                        ),
                        source: io::Error::from_raw_os_error(libc::ENODEV),
                    });
                }
            }
            if let Some(obstacle) = self.cgroup_obstacle(&device) {
                return Some(obstacle);
            }
        }
        let (device, _) = devices.first()?;
        let drivers = self.path("etc/libibverbs.d");
        names(&drivers).is_empty().then(|| Obstacle {
            reason: format!(
                "{device} is there, but libibverbs has no driver for it: {} names none (the \
                 package is ibverbs-providers)",
                drivers.display()
            ),
            source: io::Error::from_raw_os_error(libc::ENODEV),
        })
    }

    /// What keeps this process from connections on the devices that there are.
    fn connection_manager_obstacle(&self) -> Option<Obstacle> {
        names(&self.path("sys/class/infiniband")).first()?;
        self.node_obstacle("the connection manager", "dev/infiniband/rdma_cm")
    }

    fn node_obstacle(&self, what: &str, node: &str) -> Option<Obstacle> {
        let node = self.path(node);
        let source = fs::File::options()
            .read(true)
            .write(true)
            .open(&node)
            .err()?;
        let node = node.display();
        let reason = match source.kind() {
            ErrorKind::NotFound => format!(
                "{node}, the node of {what}, is missing: are ib_uverbs and rdma_ucm loaded, and \
                 does this container have /dev/infiniband?"
            ),
            ErrorKind::PermissionDenied => format!(
                "{node}, the node of {what}, cannot be opened: {source}; look at its owner and \
                 mode, and at the device rules of the container"
            ),
            _ => format!("{node}, the node of {what}, cannot be opened: {source}"),
        };
        Some(Obstacle { reason, source })
    }

    /// Does a cgroup of this process allow no more handles of `device`?
    fn cgroup_obstacle(&self, device: &str) -> Option<Obstacle> {
        let groups = fs::read_to_string(self.path("proc/self/cgroup")).ok()?;
        let mounts = fs::read_to_string(self.path("proc/self/mountinfo")).ok()?;
        let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mount = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            kind.starts_with("cgroup2 ")
                .then(|| place.split(' ').nth(4))?
        })?;
        let mount = self.path(mount.trim_start_matches('/'));
        let mut at = Path::new(group);
        loop {
            let limit = handles(&mount.join(at).join("rdma.max"), device);
            let used = handles(&mount.join(at).join("rdma.current"), device).unwrap_or(0);
            if limit.is_some_and(|limit| used >= limit) {
                return Some(Obstacle {
                    reason: format!(
                        "{device} is there, but the cgroup /{} may not open it once more: raise \
                         hca_handle in its rdma.max",
                        at.display()
                    ),
                    source: io::Error::from_raw_os_error(libc::EAGAIN),
                });
            }
            at = at.parent()?;
        }
    }
}

/// The number behind `hca_handle=` in the line of `device`; `None` where there is none or it is
/// "max".
fn handles(file: &Path, device: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(device))?;
    line.split(' ')
        .find_map(|word| word.strip_prefix("hca_handle="))?
        .parse()
        .ok()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
