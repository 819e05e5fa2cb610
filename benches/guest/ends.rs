//! Both ends of a connection in one process, and the operations between them.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rpma::{
    Batch, Completion, ConnCfg, ConnRequest, Connection, Endpoint, FlushKind, LocalRegion,
    LocalSlice, Memory, Peer, RemoteRegion, RemoteSlice, Result, Signal, Usage, Wait,
};

use super::{Case, How, Options, Table, What};

/// Units outstanding where several are.
const DEPTH: usize = 16;
/// Where in the near memory what is read arrives.
pub const LANDING: u64 = 128 * 1024;
const REGION: usize = 256 * 1024;
const QUEUE: u32 = 64;
const LONG: Duration = Duration::from_secs(30);
/// Long enough for a completion to be there, where an instruction takes a nanosecond.
const READY: Duration = Duration::from_millis(1);

pub struct Ends {
    client: Connection,
    _server: Connection,
    near: LocalRegion,
    far: LocalRegion,
    remote: RemoteRegion,
}

impl Ends {
    pub fn connect(address: &str) -> Result<Self> {
        let peer = Peer::local(address)?;
        // The opponents do nothing around the faults of Soft-RoCE's driver.
        let workarounds = peer.capabilities().transport.is_iwarp();
        let cfg = ConnCfg::new()
            .sq_size(QUEUE)
            .rq_size(QUEUE)
            .timeout(LONG)
            .device_workarounds(workarounds);
        let endpoint = Endpoint::listen(&peer, address, "0")?;
        let port = endpoint.local_addr().map_or(0, |addr| addr.port());
        let client = ConnRequest::new(&peer, address, &port.to_string(), &cfg)?.connect(None)?;
        let server = endpoint.next_request(&cfg)?.connect(None)?;
        client.wait_established(LONG)?;
        server.wait_established(LONG)?;
        let usage = Usage::READ_SRC
            | Usage::READ_DST
            | Usage::WRITE_SRC
            | Usage::WRITE_DST
            | Usage::FLUSH_VISIBILITY;
        let near = peer.register(Memory::anonymous(REGION)?, usage)?;
        let far = peer.register(Memory::anonymous(REGION)?, usage)?;
        let remote = RemoteRegion::from_descriptor(far.descriptor().as_bytes())?;
        Ok(Ends {
            client,
            _server: server,
            near,
            far,
            remote,
        })
    }

    /// Fills what the case transfers from.
    pub fn mark(&self, case: &Case, mark: u8) -> Result<()> {
        let from = if case.what == What::Read {
            &self.far
        } else {
            &self.near
        };
        from.memory().write_at(0, &vec![mark; case.size])
    }

    /// What was measured must have happened.
    pub fn check(
        &self,
        case: &Case,
        mark: u8,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let mut arrived = vec![0; case.size];
        match case.what {
            What::Read => self.near.memory().read_at(LANDING, &mut arrived)?,
            _ => self.far.memory().read_at(0, &mut arrived)?,
        }
        if arrived.iter().any(|byte| *byte != mark) {
            return Err("the bytes did not arrive".into());
        }
        Ok(())
    }

    pub fn user(&self, options: Options) -> Result<User<'_>> {
        Ok(User {
            conn: &self.client,
            batch: self.client.batch(),
            near: &self.near,
            remote: &self.remote,
            options,
            epoch: Instant::now(),
            completions: [Completion::default(); DEPTH],
        })
    }
}

/// The end that does something.
pub struct User<'e> {
    conn: &'e Connection,
    batch: Batch<'e>,
    near: &'e LocalRegion,
    remote: &'e RemoteRegion,
    options: Options,
    epoch: Instant,
    completions: [Completion; DEPTH],
}

impl User<'_> {
    #[inline]
    pub fn now(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.options.ticks {
            // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
            return unsafe { std::arch::x86_64::_rdtsc() };
        }
        self.epoch.elapsed().as_nanos() as u64
    }

    pub fn one_by_one(&mut self, case: &Case, table: &mut Table) -> Result<()> {
        let (near, remote) = (self.near, self.remote);
        let slices = Slices::of(case, near, remote)?;
        for _ in 0..table.len() {
            let start = self.now();
            self.post(case.what, 1, black_box(&slices))?;
            let posted = self.now();
            match case.how {
                How::Poll | How::Flight => {
                    self.poll_some()?;
                }
                How::Event => self.take(Wait::block())?,
                How::Spin => self.take(Wait::new())?,
                How::Ready => {
                    let ready = Instant::now();
                    while ready.elapsed() < READY {
                        self.idle();
                    }
                    self.take(Wait::block())?;
                }
                How::Wait => while self.conn.cq().wait().and(self.poll())? == 0 {},
            }
            table.add(self.now() - start, posted - start);
        }
        Ok(())
    }

    pub fn in_flight(&mut self, case: &Case, n: usize) -> Result<()> {
        let (near, remote) = (self.near, self.remote);
        let slices = Slices::of(case, near, remote)?;
        let (mut posted, mut done) = (0, 0);
        while done < n {
            let room = (DEPTH - (posted - done)).min(n - posted);
            if room > 0 {
                self.post(case.what, room, black_box(&slices))?;
                posted += room;
            }
            done += self.poll_some()?;
        }
        Ok(())
    }

    #[inline]
    fn post(&mut self, what: What, units: usize, slices: &Slices<'_>) -> Result<()> {
        let (conn, batch, remote) = (self.conn, &mut self.batch, &slices.remote);
        let (quiet, loud) = (Signal::OnError(0), Signal::Always(0));
        let writes = if what == What::Sixteen { 16 } else { 1 };
        if self.options.calls || (units == 1 && matches!(what, What::Write | What::Read)) {
            for _ in 0..units {
                match what {
                    What::Write => conn.write(&slices.source, remote, loud)?,
                    What::Read => conn.read(&slices.landing, remote, loud)?,
                    What::Pair | What::Sixteen => {
                        for _ in 0..writes {
                            conn.write(&slices.source, remote, quiet)?;
                        }
                        conn.flush(remote, FlushKind::Visibility, loud)?;
                    }
                }
            }
            return Ok(());
        }
        for _ in 0..units {
            match what {
                What::Write => batch.write(&slices.source, remote, loud)?,
                What::Read => batch.read(&slices.landing, remote, loud)?,
                What::Pair | What::Sixteen => {
                    for _ in 0..writes {
                        batch.write(&slices.source, remote, quiet)?;
                    }
                    batch.flush(remote, FlushKind::Visibility, loud)?;
                }
            }
        }
        batch.submit()
    }

    fn poll(&mut self) -> Result<usize> {
        counted(self.conn.cq().poll(&mut self.completions)?)
    }

    fn poll_some(&mut self) -> Result<usize> {
        loop {
            match self.poll()? {
                0 => self.idle(),
                n => return Ok(n),
            }
        }
    }

    #[inline]
    fn idle(&self) {
        if self.options.yields {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    fn take(&mut self, wait: Wait) -> Result<()> {
        while counted(self.conn.cq().take(&mut self.completions, wait)?)? == 0 {}
        Ok(())
    }
}

/// Their number; all must be good.
fn counted(taken: &[Completion]) -> Result<usize> {
    for wc in taken {
        wc.ok()?;
    }
    Ok(taken.len())
}

struct Slices<'r> {
    source: LocalSlice<'r>,
    landing: LocalSlice<'r>,
    remote: RemoteSlice,
}

impl<'r> Slices<'r> {
    fn of(case: &Case, near: &'r LocalRegion, remote: &RemoteRegion) -> Result<Self> {
        let size = case.size as u64;

        Ok(Slices {
            source: near.slice(..size)?,
            landing: near.slice(LANDING..LANDING + size)?,
            remote: remote.slice(..size)?,
        })
    }
}
