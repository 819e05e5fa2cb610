//! The course of a run: who is started when, what befalls whom, and what has to be true at the end.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    board::{Board, Count, Mode},
    net::{self, Kind, Phase},
    options::{Args, Plant},
    processes::{Process, Starter},
    report,
    rng::Rng,
    sample::{self, Sample},
    say, server, store, verdict,
};

/// The longest that a process may give no sign of life: a handshake with nobody and a wait for a
/// completion are the longest steps.
const WATCHDOG: Duration = Duration::from_secs(90);
/// How long a client that is cut off for good may hold anything of the server's, besides the time
/// that it may be silent.
const FREED_WITHIN: Duration = Duration::from_secs(45);
/// How long a calm lasts at most, besides its time, until a record is acknowledged. The waits that
/// a cut leaves are shorter.
const CALM: Duration = Duration::from_secs(90);
/// For everything to come to rest.
const REST: Duration = Duration::from_secs(90);
/// The server takes the ones behind it, too, where its listener is closed.
const PORT: u16 = 7471;

pub fn run(args: &Args) -> Outcome {
    let seed = args.seed.unwrap_or_else(store::random);
    say(format_args!(
        "soak on {}: {} minutes, seed {seed}",
        args.dev, args.minutes
    ));
    let folder = PathBuf::from(format!("/dev/shm/rpma-soak-{}", std::process::id()));
    fs::create_dir(&folder)?;
    net::set_up(&args.dev)?;
    let result = Soak::start(args, seed, &folder).and_then(|mut soak| soak.course());
    let _ = fs::remove_dir_all(&folder);
    result
}

struct Soak<'a> {
    args: &'a Args,
    folder: PathBuf,
    seed: u64,
    rng: Rng,
    board: Board,
    starter: Starter,
    server: Process,
    clients: Vec<Option<Process>>,
    lonely: Lonely,
    flood: Option<Process>,
    started: u64,
    /// What was there before: servers of earlier runs that sleep.
    held: BTreeMap<String, u64>,
    begin: Instant,
    last_step: Instant,
    /// How long the machine stood still, all in all.
    stalled: Duration,
    next_kill: Instant,
    next_flood: Instant,
    next_phase: Instant,
    next_word: Instant,
    phase: String,
    /// The records acknowledged when the phase began.
    acknowledged: u64,
}

/// The client that will be cut off for good.
enum Lonely {
    Nobody(Instant),
    Works(Process, Instant),
    CutOff(Process, Instant),
}

impl<'a> Soak<'a> {
    fn start(args: &'a Args, seed: u64, folder: &Path) -> Outcome<Soak<'a>> {
        let board = Board::create(&folder.join("board"))?;
        let starter = Starter::new(folder)?;
        // One log for each client, one for the lonely one, one for floods.
        let slots = args.clients + 2;
        let mut server_args: Vec<String> = ["--slots", &slots.to_string()].map(Into::into).into();
        server_args.extend(["--idle".into(), args.idle.to_string()]);
        server_args.extend(["--port".into(), PORT.to_string()]);
        if args.plant.contains(&Plant::Leak) {
            server_args.push("--leak".into());
        }
        board.start_beat(server::BEAT);
        let server = starter.start(net::SERVER, "server", server::BEAT, &server_args)?;
        let now = Instant::now();
        let mut soak = Soak {
            args,
            folder: folder.to_owned(),
            seed,
            rng: Rng::new(seed, 1000),
            board,
            starter,
            server,
            clients: (0..args.clients).map(|_| None).collect(),
            lonely: Lonely::Nobody(now),
            flood: None,
            started: 0,
            held: sample::resources()?,
            begin: now,
            last_step: now,
            stalled: Duration::ZERO,
            next_kill: now,
            next_flood: now,
            next_phase: now,
            next_word: now,
            phase: String::new(),
            acknowledged: 0,
        };
        soak.wait_for("the server to listen", REST, |soak| {
            Ok(soak.folder.join("listening").exists())
        })?;
        Ok(soak)
    }

    fn course(&mut self) -> Outcome {
        let whole = Duration::from_secs_f64(self.args.minutes * 60.0);
        let warm_up = whole / 4;
        self.go(warm_up)?;
        let before = self.rest()?;
        if self.args.plant.contains(&Plant::Corruption) {
            verdict::plant_corruption(&self.folder, self.slots())?;
        }
        self.go(whole - warm_up)?;
        let after = self.rest()?;
        let took = self.begin.elapsed();
        if self.args.plant.contains(&Plant::Loss) {
            verdict::plant_loss(&self.folder)?;
        }
        let mut problems = verdict::check(&self.folder, self.slots())?;
        let left = self.end_server()?;
        let head = [
            ("device", self.args.dev.clone()),
            ("kernel", verdict::kernel()),
            ("seed", self.seed.to_string()),
            ("seconds", took.as_secs().to_string()),
        ];
        let rows = report::rows(&head, &self.board, &before, &after);
        say(format_args!("\n{}", report::print(&rows)));
        if let Some(path) = &self.args.report {
            fs::write(path, report::tabs(&rows))?;
        }
        problems.extend(
            after
                .grown(&before)
                .into_iter()
                .map(|grown| format!("LEAK: {grown}")),
        );
        for (name, n) in left {
            // What the kernel itself has on a device is none of these.
            if n > self.held.get(&name).copied().unwrap_or(0)
                && ["ctx", "cm_id", "srq"]
                    .iter()
                    .any(|kind| name.ends_with(kind))
            {
                problems.push(format!("LEAK: {name} {n} when the server had ended"));
            }
        }
        problems.extend(verdict::hung(&self.board, &self.args.dev, self.stalled));
        problems.extend(verdict::never_happened(
            &self.board,
            self.args.minutes,
            self.stalled,
        ));
        if !problems.is_empty() {
            return Err(problems.join("; ").into());
        }
        say(
            "soak: every acknowledged record is there, whole and in sequence; nothing was left: all is well",
        );
        Ok(())
    }

    /// Ends the server, and gives what the devices hold then: nothing if the server has to stay.
    fn end_server(&mut self) -> Outcome<BTreeMap<String, u64>> {
        if self.board.get(Count::Deaf) > 0 {
            say("note: the server stays, since its end could crash the kernel: see listener.rs");
            return Ok(BTreeMap::new());
        }
        self.board.set_mode(Mode::Quit);
        self.server.wait(REST)?;
        sample::resources()
    }

    /// Lets everything happen, for so long.
    fn go(&mut self, time: Duration) -> Outcome {
        self.board.set_mode(Mode::Run);
        let now = Instant::now();
        self.last_step = now;
        self.next_kill = now + Duration::from_secs(5);
        self.next_flood = now + Duration::from_secs(3);
        self.next_phase = now;
        let stalled = self.stalled;
        // What the machine stood still does not count, up to as much again.
        while now.elapsed() < time + (self.stalled - stalled).min(time) {
            self.step()?;
            sleep(Duration::from_millis(50));
        }
        // However bad the network was: now it is well again, and so must be everybody.
        self.begin(Phase::calm())?;
        while !self.progressed()? {
            self.step()?;
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn begin(&mut self, phase: Phase) -> Outcome {
        phase.begin()?;
        self.board.add(Count::Phases, 1);
        match phase.kind {
            Kind::Weather => {}
            Kind::CutBoth => self.board.add(Count::CutBoth, 1),
            Kind::CutOneWay => self.board.add(Count::CutOneWay, 1),
        }
        self.next_phase = Instant::now() + phase.lasts;
        self.phase = phase.name;
        self.acknowledged = self.board.get(Count::Acknowledged);
        Ok(())
    }

    /// Was a record acknowledged in this phase, if it is a calm one? A server that is deaf shows by
    /// nothing else.
    fn progressed(&self) -> Outcome<bool> {
        if self.phase != net::CALM_PHASE || self.board.get(Count::Acknowledged) > self.acknowledged
        {
            return Ok(true);
        }
        match self.next_phase.elapsed() > CALM {
            true => Err(format!("no record was acknowledged in {CALM:?} of a calm network").into()),
            false => Ok(false),
        }
    }

    fn step(&mut self) -> Outcome {
        self.forgive();
        self.watch()?;
        let now = Instant::now();
        for slot in 0..self.clients.len() {
            if self.clients[slot].is_none() {
                self.clients[slot] = Some(self.client(net::CLIENTS, slot as u64, false)?);
            }
        }
        if now >= self.next_phase && self.progressed()? {
            let phase = match self.phase.is_empty() {
                true => Phase::calm(),
                false => Phase::random(&mut self.rng),
            };
            self.begin(phase)?;
        }
        if now >= self.next_kill {
            let victim = self.rng.in_range(0..self.clients.len() as u64) as usize;
            if let Some(victim) = self.clients[victim].take() {
                victim.kill()?;
                self.board.add(Count::Kills, 1);
            }
            self.next_kill = now + self.rng.millis(1000..8000);
        }
        if now >= self.next_flood && self.flood.is_none() {
            self.flood = Some(self.start_flood()?);
            self.next_flood = now + self.rng.millis(8000..20_000);
        }
        self.lonely(now)?;
        if now >= self.next_word {
            self.next_word = now + Duration::from_secs(15);
            let get = |count| self.board.get(count);
            say(format_args!(
                "{:5} s: {} records, {} connections, {} kills, {} floods, {} silent; network: {}",
                self.begin.elapsed().as_secs(),
                get(Count::Acknowledged),
                get(Count::Connections),
                get(Count::Kills),
                get(Count::Floods),
                get(Count::Silent),
                self.phase
            ));
        }
        Ok(())
    }

    /// A busy host may let its guest stand still for a minute: nobody is to blame for that time.
    fn forgive(&mut self) {
        let now = Instant::now();
        let gap = now - std::mem::replace(&mut self.last_step, now);
        if gap < Duration::from_secs(1) {
            return;
        }
        self.stalled += gap;
        self.board
            .raise(Count::LongestStall, gap.as_millis() as u64);
        for who in (0..self.slots()).chain([server::BEAT]) {
            self.board.start_beat(who);
        }
        if let Lonely::CutOff(_, since) = &mut self.lonely {
            *since += gap;
        }
        self.next_phase += gap;
    }

    /// Has anybody failed, or does anybody hang?
    fn watch(&mut self) -> Outcome {
        if self.server.ended()? {
            return Err("the server ended".into());
        }
        if self.board.mode() == Mode::Sleep {
            return Err("the server failed".into());
        }
        self.server.check_beat(&self.board, WATCHDOG)?;
        for place in &mut self.clients {
            if let Some(client) = place {
                match client.ended()? {
                    true => *place = None,
                    false => client.check_beat(&self.board, WATCHDOG)?,
                }
            }
        }
        if let Some(flood) = &mut self.flood {
            match flood.ended()? {
                true => self.flood = None,
                false => flood.check_beat(&self.board, WATCHDOG)?,
            }
        }
        match &mut self.lonely {
            Lonely::Nobody(_) => {}
            Lonely::Works(client, _) | Lonely::CutOff(client, _) => match client.ended()? {
                true => self.lonely = Lonely::Nobody(Instant::now()),
                false => client.check_beat(&self.board, WATCHDOG)?,
            },
        }
        Ok(())
    }

    fn lonely_slot(&self) -> u64 {
        self.args.clients
    }

    /// One log for each client, one for the lonely one, one for floods.
    fn slots(&self) -> u64 {
        self.args.clients + 2
    }

    /// Starts the lonely client, cuts it off for good once it has worked for some time, sees that
    /// the server holds nothing of it soon.
    fn lonely(&mut self, now: Instant) -> Outcome {
        let slot = self.lonely_slot();
        self.lonely = match std::mem::replace(&mut self.lonely, Lonely::Nobody(now)) {
            Lonely::Nobody(from) if now >= from => {
                net::mend()?;
                let client = self.client(net::LONELY, slot, true)?;
                Lonely::Works(client, now + self.rng.millis(4000..12_000))
            }
            Lonely::Works(client, until) if now >= until && self.board.is_live(slot) => {
                net::cut_off()?;
                self.board.add(Count::CutForGood, 1);
                Lonely::CutOff(client, now)
            }
            Lonely::CutOff(client, since) => {
                if self.board.is_live(slot) {
                    if since.elapsed() > Duration::from_millis(self.args.idle) + FREED_WITHIN {
                        return Err(
                            "the server still holds what a client had that was cut off".into()
                        );
                    }
                    Lonely::CutOff(client, since)
                } else {
                    let held = since.elapsed().as_millis() as u64;
                    self.board.raise(Count::LongestHold, held);
                    client.kill()?;
                    Lonely::Nobody(now + self.rng.millis(1000..5000))
                }
            }
            other => other,
        };
        Ok(())
    }

    fn client(&mut self, host: net::Host, slot: u64, steady: bool) -> Outcome<Process> {
        let seed = self.next_seed();
        let mut args = vec!["--slot".into(), slot.to_string(), "--seed".into(), seed];
        if steady {
            args.push("--steady".into());
        }
        if self.args.plant.contains(&Plant::Fault) {
            args.push("--no-workarounds".into());
        }
        self.board.start_beat(slot);
        self.starter.start(host, "client", slot, &args)
    }

    fn start_flood(&mut self) -> Outcome<Process> {
        let slot = self.lonely_slot() + 1;
        let requests = self.rng.in_range(10..80).to_string();
        let seed = self.next_seed();
        let args = [
            "--slot",
            &slot.to_string(),
            "--seed",
            &seed,
            "--requests",
            &requests,
        ];
        self.board.add(Count::Floods, 1);
        self.board.start_beat(slot);
        let args = args.map(String::from);
        self.starter.start(net::CLIENTS, "flood", slot, &args)
    }

    fn next_seed(&mut self) -> String {
        self.started += 1;
        (self.seed ^ self.started).to_string()
    }

    /// Everybody but the server goes, the network is well again; waits until nothing is held of
    /// anybody, and takes a sample.
    fn rest(&mut self) -> Outcome<Sample> {
        self.board.set_mode(Mode::Pause);
        self.last_step = Instant::now();
        Phase::calm().begin()?;
        net::mend()?;
        self.phase.clear();
        match std::mem::replace(&mut self.lonely, Lonely::Nobody(Instant::now())) {
            Lonely::Nobody(_) => {}
            Lonely::Works(client, _) | Lonely::CutOff(client, _) => client.kill()?,
        }
        self.wait_for("all clients to end", REST, |soak| {
            Ok(soak.clients.iter().all(Option::is_none) && soak.flood.is_none())
        })?;
        let slots = self.slots();
        self.wait_for("the server to let go", REST, |soak| {
            Ok((0..slots).all(|slot| !soak.board.is_live(slot)))
        })?;
        // The kernel destroys some of it later than it says.
        let take = |soak: &Self| Sample::take(soak.server.pid(), soak.board.get(Count::Deaf));
        let mut last = take(self)?;
        let mut same = 0;
        let start = Instant::now();
        while same < 6 && start.elapsed() < REST {
            sleep(Duration::from_millis(500));
            self.forgive();
            self.watch()?;
            let sample = take(self)?;
            same = match sample.resources == last.resources && sample.fds == last.fds {
                true => same + 1,
                false => 0,
            };
            last = sample;
        }
        say(format_args!(
            "at rest: {}; {} fds, {} KiB",
            last.held(),
            last.fds,
            last.rss
        ));
        Ok(last)
    }

    fn wait_for(
        &mut self,
        what: &str,
        patience: Duration,
        is: impl Fn(&Self) -> Outcome<bool>,
    ) -> Outcome {
        let (start, stalled) = (Instant::now(), self.stalled);
        while !is(self)? {
            self.forgive();
            self.watch()?;
            if start.elapsed() > patience + (self.stalled - stalled) {
                return Err(format!("waited in vain for {what}").into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Soak<'_> {
    /// A server that has lost a listener must not be destroyed, however the run ends.
    fn drop(&mut self) {
        if self.board.get(Count::Deaf) > 0 {
            self.board.set_mode(Mode::Sleep);
            self.server.stay();
        }
    }
}
