//! What a device and its ports say of themselves, and what the system knows of them.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

use rdma_sys as ffi;

use crate::{
    Result,
    numbers::{GidType, LinkLayer, PortState, Transport},
    verbs::{Context, GidEntry},
};

/// A device, as `rdma link` and `ibv_devinfo(1)` show it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's name, such as "mlx5_0".
    pub name: String,
    /// What carries its traffic.
    pub transport: Transport,
    /// Its vendor, by the IEEE number; software devices have made-up ones.
    pub vendor_id: u32,
    /// The vendor's number of its model.
    pub vendor_part_id: u32,
    /// The version of its firmware, in the vendor's words.
    pub firmware: String,
    /// Its node GUID.
    pub node_guid: u64,
    /// The NUMA node that it is attached to; `None` for software devices, and where the system does
    /// not say.
    pub numa_node: Option<u32>,
    /// Its ports.
    pub ports: Vec<PortInfo>,
}

/// A port of a device (`ibv_query_port(3)`, `ibv_query_gid_table(3)`).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortInfo {
    /// Its number, from 1.
    pub number: u8,
    /// Whether it is up.
    pub state: PortState,
    /// What is on the wire.
    pub link_layer: LinkLayer,
    /// The largest MTU that it can have, in bytes.
    pub max_mtu: u32,
    /// The MTU that it has, in bytes: no path from here has a larger one.
    pub active_mtu: u32,
    /// The data rate of one lane, in Mb/s, where the number for it is known.
    pub lane_mbps: Option<u32>,
    /// The number of lanes, where the number for it is known.
    pub lanes: Option<u32>,
    /// Its GIDs. rdma_cm chooses that of the local address that a connection is made from.
    pub gids: Vec<Gid>,
    /// The IP addresses of its network interfaces, without link-local ones, as far as the system
    /// tells.
    pub addresses: Vec<IpAddr>,
}

/// An entry of a port's GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gid {
    /// Its place in the table.
    pub index: u32,
    /// The GID, which is written like an IPv6 address; of RoCE it is one.
    pub gid: Ipv6Addr,
    /// What it is a GID of.
    pub kind: GidType,
}

impl PortInfo {
    /// The data rate of the port, in Gb/s, where it is known.
    pub fn gbps(&self) -> Option<f64> {
        Some(f64::from(self.lane_mbps?) * f64::from(self.lanes?) / 1000.0)
    }
}

impl fmt::Debug for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DeviceInfo({} {:?}, vendor {:#x}/{:#x}, firmware {}, ",
            self.name, self.transport, self.vendor_id, self.vendor_part_id, self.firmware
        )?;
        if let Some(node) = self.numa_node {
            write!(f, "NUMA node {node}, ")?;
        }
        write!(f, "ports {:?})", self.ports)
    }
}

impl fmt::Debug for PortInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, state, layer, mtu) =
            (self.number, self.state, self.link_layer, self.active_mtu);
        write!(f, "{number} {state:?} {layer:?}, MTU {mtu}, ")?;
        if let Some(gbps) = self.gbps() {
            write!(f, "{gbps} Gb/s, ")?;
        }
        write!(f, "{} GIDs, {:?}", self.gids.len(), self.addresses)
    }
}

impl DeviceInfo {
    pub(crate) fn of(context: &Context) -> Result<Self> {
        let attr = context.query_device()?;
        let orig = &attr.orig_attr;
        let name = context.device_name();
        let transport = context.transport();
        let count = attr.phys_port_cnt_ex.max(orig.phys_port_cnt.into());
        let ports = (1..=u8::try_from(count).unwrap_or(u8::MAX))
            .map(|number| Ok((number, context.query_port(number)?)))
            .collect::<Result<Vec<_>>>()?;
        let room = ports
            .iter()
            .map(|(_, port)| port.gid_tbl_len.max(0) as usize);
        let gids = context.gids(room.sum()).unwrap_or_else(|err| {
            log::debug!(target: "rpma", "{name}: {err}");
            Vec::new()
        });
        let interfaces = interfaces();
        let ports = ports
            .iter()
            .map(|(number, port)| {
                let gids: Vec<_> = gids
                    .iter()
                    .filter(|entry| entry.port == u32::from(*number))
                    .collect();
                PortInfo::of(*number, port, &gids, &interfaces, transport)
            })
            .collect();
        let firmware = orig.fw_ver.iter().take_while(|byte| **byte != 0);
        let firmware: Vec<u8> = firmware.map(|byte| *byte as u8).collect();
        Ok(DeviceInfo {
            numa_node: numa_node(&name),
            name,
            transport,
            vendor_id: orig.vendor_id,
            vendor_part_id: orig.vendor_part_id,
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            node_guid: u64::from_be(orig.node_guid),
            ports,
        })
    }
}

impl PortInfo {
    fn of(
        number: u8,
        port: &ffi::ibv_port_attr,
        gids: &[&GidEntry],
        interfaces: &[Interface],
        transport: Transport,
    ) -> Self {
        let mut addresses = Vec::new();
        let mut add = |ip: IpAddr| {
            let local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            if !local && !addresses.contains(&ip) {
                addresses.push(ip);
            }
        };
        for entry in gids {
            if entry.kind == ffi::IBV_GID_TYPE_ROCE_V2 {
                add(Ipv6Addr::from(entry.gid).to_canonical());
            }
            // Of iWARP the GID is the interface's hardware address; kernels before 6.5 do not name
            // the interface itself.
            let same = |of: &&Interface| {
                entry.interface != 0 && of.index == entry.interface
                    || transport.is_iwarp()
                        && of.hardware.is_some_and(|mac| entry.gid.starts_with(&mac))
            };
            for interface in interfaces.iter().filter(same) {
                interface.addresses.iter().copied().for_each(&mut add);
            }
        }
        PortInfo {
            number,
            state: PortState::from_raw(port.state),
            link_layer: LinkLayer::from_raw(port.link_layer.into()),
            max_mtu: mtu_bytes(port.max_mtu),
            active_mtu: mtu_bytes(port.active_mtu),
            lane_mbps: lane_mbps(u32::from(port.active_speed).max(port.active_speed_ex)),
            lanes: lanes(port.active_width),
            gids: gids
                .iter()
                .map(|entry| Gid {
                    index: entry.index,
                    gid: entry.gid.into(),
                    kind: GidType::from_raw(entry.kind),
                })
                .collect(),
            addresses,
        }
    }
}

/// 0 for a code that is none.
pub(super) fn mtu_bytes(code: u32) -> u32 {
    if (1..=8).contains(&code) {
        128 << code
    } else {
        0
    }
}

/// What a lane carries at the speed SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR.
fn lane_mbps(code: u32) -> Option<u32> {
    Some(match code {
        1 => 2_500,
        2 => 5_000,
        4 | 8 => 10_000,
        16 => 14_000,
        32 => 25_000,
        64 => 50_000,
        128 => 100_000,
        256 => 200_000,
        _ => return None,
    })
}

fn lanes(code: u8) -> Option<u32> {
    Some(match code {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => return None,
    })
}

fn numa_node(device: &str) -> Option<u32> {
    let path = format!("/sys/class/infiniband/{device}/device/numa_node");
    // -1 is none.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A network interface.
#[derive(Default)]
struct Interface {
    name: String,
    index: u32,
    hardware: Option<[u8; 6]>,
    addresses: Vec<IpAddr>,
}

/// Those that the system tells of.
fn interfaces() -> Vec<Interface> {
    let mut list: Vec<Interface> = Vec::new();
    for entry in nix::ifaddrs::getifaddrs().into_iter().flatten() {
        let Some(address) = entry.address else {
            continue;
        };
        let name = entry.interface_name;
        let at = list.iter().position(|known| known.name == name);
        let at = at.unwrap_or_else(|| {
            list.push(Interface {
                name,
                ..Default::default()
            });
            list.len() - 1
        });
        let interface = &mut list[at];
        if let Some(link) = address.as_link_addr() {
            interface.index = link.ifindex() as u32;
            interface.hardware = link.addr().filter(|mac| *mac != [0; 6]);
        } else if let Some(ip) = address.as_sockaddr_in() {
            interface.addresses.push(ip.ip().into());
        } else if let Some(ip) = address.as_sockaddr_in6() {
            interface.addresses.push(ip.ip().into());
        }
    }
    list
}

#[cfg(test)]
mod tests;
