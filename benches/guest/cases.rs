//! What is done, how its end is waited for, and what it took.

/// What one unit is. Each ends in one completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A write.
    Write,
    /// A read.
    Read,
    /// A write, and a flush of it.
    Pair,
    /// 16 writes, and a flush of them.
    Sixteen,
}

/// How completions are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// One unit at a time, polled for.
    Poll,
    /// Several units outstanding; as many are posted at once as were done.
    Flight,
    /// One unit at a time; takes what is there, else blocks.
    Event,
    /// As `Event`, asked for when the completion is already there.
    Ready,
    /// As `Event`, but polls some 2,000 times before it blocks.
    Spin,
    /// One unit at a time; blocks until there is news, then polls.
    Wait,
}

/// One thing to measure: `WHAT@SIZE*N[/HOW]`.
#[derive(Debug, Clone)]
pub struct Case {
    name: String,
    pub what: What,
    pub how: How,
    pub size: usize,
    pub n: usize,
}

impl Case {
    pub fn parse(text: &str) -> Option<Self> {
        let (text, how_name) = text.split_once('/').unwrap_or((text, "poll"));
        let (what_name, numbers) = text.split_once('@')?;
        let (size, n) = numbers.split_once('*')?;
        let what = match what_name {
            "write" => What::Write,
            "read" => What::Read,
            "pair" => What::Pair,
            "sixteen" => What::Sixteen,
            _ => return None,
        };
        let how = match how_name {
            "poll" => How::Poll,
            "flight" => How::Flight,
            "event" => How::Event,
            "ready" => How::Ready,
            "spin" => How::Spin,
            "wait" => How::Wait,
            _ => return None,
        };
        let case = Case {
            name: format!("{what_name}/{how_name}"),
            what,
            how,
            size: size.parse().ok()?,
            n: n.parse().ok()?,
        };
        // The queue holds 64 requests.
        let fits = case.what != What::Sixteen || case.how != How::Flight;
        (fits && case.n > 0 && (1..=super::ends::LANDING).contains(&(case.size as u64)))
            .then_some(case)
    }

    /// How often it is done before it is timed; `measure` knows it too.
    pub fn warm_up(&self) -> usize {
        self.n.min(10)
    }
}

/// What each repetition took, allocated beforehand.
pub struct Table {
    units: Vec<u64>,
    submits: Vec<u64>,
    n: usize,
    whole: u64,
}

impl Table {
    pub fn new(n: usize) -> Self {
        let mut table = Table {
            // Written, so that no page of it is new when it counts.
            units: vec![1; n],
            submits: vec![1; n],
            n,
            whole: 0,
        };
        table.units.clear();
        table.submits.clear();
        table
    }

    pub fn len(&self) -> usize {
        self.n
    }

    #[inline]
    pub fn add(&mut self, unit: u64, submit: u64) {
        self.units.push(unit);
        self.submits.push(submit);
    }

    pub fn whole(&mut self, took: u64) {
        self.whole = took;
    }

    /// `NAME SIZE P50 P99 MEAN SUBMIT-P50`, `-` for what is not known.
    pub fn line(&mut self, case: &Case) -> String {
        #[allow(clippy::cast_precision_loss)]
        let mean = self.whole as f64 / self.n as f64;
        if self.units.is_empty() {
            return format!("{} {} - - {mean:.1} -", case.name, case.size);
        }
        self.units.sort_unstable();
        self.submits.sort_unstable();
        format!(
            "{} {} {} {} {mean:.1} {}",
            case.name,
            case.size,
            self.units[self.n / 2],
            self.units[self.n * 99 / 100],
            self.submits[self.n / 2],
        )
    }
}
