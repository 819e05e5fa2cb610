//! What the device is, and the knobs that a test turns.

use std::net::IpAddr;

use libc::c_int;

/// Which device is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// Soft-RoCE: extended queue pairs, native flush, atomic write.
    Rxe,
    /// Soft-iWARP: nothing extended, no immediate data, negative errnos.
    Siw,
    /// A Mellanox-like adapter: extended queue pairs, on-demand paging, no native flush.
    Mlx5,
    /// No device at all.
    None,
}

impl Personality {
    /// By the name that STANDIN_DEVICE takes.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "rxe" => Some(Self::Rxe),
            "siw" => Some(Self::Siw),
            "mlx5" => Some(Self::Mlx5),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// The name of its device.
    pub fn device_name(self) -> &'static str {
        match self {
            Self::Rxe => "rxe0",
            Self::Siw => "siw0",
            Self::Mlx5 => "mlx5_0",
            Self::None => "",
        }
    }

    /// Whether its transport is iWARP.
    pub fn is_iwarp(self) -> bool {
        self == Self::Siw
    }

    /// Whether it has extended queue pairs.
    pub fn has_qp_ex(self) -> bool {
        matches!(self, Self::Rxe | Self::Mlx5)
    }

    /// Whether it has native flush and atomic write.
    pub fn has_flush(self) -> bool {
        self == Self::Rxe
    }

    /// The largest message.
    pub fn max_msg_sz(self) -> u32 {
        match self {
            Self::Rxe => 8 << 20,
            Self::Mlx5 => 1 << 30,
            Self::Siw | Self::None => u32::MAX,
        }
    }

    /// The largest inline data.
    pub fn max_inline(self) -> u32 {
        match self {
            Self::Siw => 96,
            _ => 512,
        }
    }
}

/// Everything that a test can set.
pub struct Config {
    pub personality: Personality,
    /// The addresses that the device owns.
    pub addresses: Vec<IpAddr>,
    /// On-demand paging: None is what the personality has.
    pub odp: Option<bool>,
    /// What a registration without on-demand paging fails with (EOPNOTSUPP as on fsdax, EFAULT as
    /// on a mapped file).
    pub pinned_errno: c_int,
    /// Ranges of memory that count as persistent.
    pub persistent: Vec<(usize, usize)>,
    /// From DISCONNECTED to TIMEWAIT_EXIT.
    pub timewait_ms: u64,
    /// How long a connection attempt into a black hole lasts.
    pub connect_timeout_ms: u64,
    /// How long a call that blocks until events are acknowledged does so before it is refused.
    pub block_limit_ms: u64,
    /// The link is cut: nothing arrives.
    pub cut: bool,
    /// Do the least work in post and poll.
    pub null: bool,
}

impl Config {
    /// The start values, with STANDIN_DEVICE, STANDIN_ADDRS and STANDIN_NULL heeded.
    pub fn from_env() -> Self {
        let personality = match std::env::var("STANDIN_DEVICE") {
            Ok(name) => Personality::by_name(&name).unwrap_or_else(|| {
                eprintln!(
                    "standin: STANDIN_DEVICE={name}: not rxe, siw, mlx5 or none; taken as none"
                );
                Personality::None
            }),
            Err(_) => Personality::Rxe,
        };
        let mut config = Self::new(personality);
        if let Ok(list) = std::env::var("STANDIN_ADDRS") {
            config
                .addresses
                .extend(list.split(',').filter_map(|a| a.parse::<IpAddr>().ok()));
        }
        config.null = std::env::var_os("STANDIN_NULL").is_some();
        config
    }

    /// The start values.
    pub fn new(personality: Personality) -> Self {
        Self {
            personality,
            addresses: ["127.0.0.1", "192.168.77.1", "::1", "fd77::1"]
                .iter()
                .filter_map(|a| a.parse().ok())
                .collect(),
            odp: None,
            pinned_errno: 0,
            persistent: Vec::new(),
            timewait_ms: 20,
            connect_timeout_ms: 200,
            block_limit_ms: 1000,
            cut: false,
            null: false,
        }
    }

    /// Whether the device has on-demand paging.
    pub fn has_odp(&self) -> bool {
        self.odp.unwrap_or(self.personality == Personality::Mlx5)
    }

    /// Whether all of this range was declared persistent.
    pub fn is_persistent(&self, addr: usize, len: usize) -> bool {
        let end = addr.saturating_add(len);
        self.persistent
            .iter()
            .any(|(a, l)| *a <= addr && end <= a.saturating_add(*l))
    }
}
