use std::time::{Duration, Instant};

use super::{Completion, Cq};
use crate::{Error, Result, wait::Until};

/// How [`Cq::take`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Wait {
    polls: u32,
    timeout: Option<Duration>,
}

impl Wait {
    /// Polls some 2,000 times, then blocks, for as long as it takes. Small operations are done
    /// within the polls, so that most waits cost no system call; a long wait costs the CPU little.
    pub fn new() -> Self {
        Wait {
            polls: 2000,
            timeout: None,
        }
    }

    /// Blocks at once when nothing is there.
    pub fn block() -> Self {
        Wait {
            polls: 0,
            timeout: None,
        }
    }

    /// Never blocks: polls until something is there.
    pub fn spin() -> Self {
        Wait {
            polls: u32::MAX,
            timeout: None,
        }
    }

    /// Polls this often before it blocks; `u32::MAX` never blocks.
    pub fn polls(mut self, polls: u32) -> Self {
        self.polls = polls;
        self
    }

    /// Gives up after this time, rounded up to whole milliseconds once it blocks.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl Default for Wait {
    fn default() -> Self {
        Wait::new()
    }
}

impl Cq {
    /// Waits and takes in one call: polls; when nothing is there polls again for the budget of
    /// `wait`, then arms the queue, polls once more and blocks. Gives at least one completion, or
    /// none when the time is over.
    ///
    /// Where the completion is there within the polls, this makes no system call. Where it has to
    /// block, it leaves the queue unarmed: the next wait of this type sees to that by itself, but
    /// before waiting for the fd by other means [`arm`](Self::arm) and poll.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), where it has to block. A [`waker`](Self::waker) ends polling that
    /// never blocks, too.
    pub fn take<'b>(&self, buf: &'b mut [Completion], wait: Wait) -> Result<&'b [Completion]> {
        if buf.is_empty() {
            return Err(Error::invalid("buf", "no room for a completion"));
        }
        let n = self.take_n(buf, wait)?;
        Ok(buf.get(..n).unwrap_or_default())
    }

    fn take_n(&self, buf: &mut [Completion], wait: Wait) -> Result<usize> {
        let n = self.raw.poll(buf)?.len();
        if n > 0 {
            return Ok(n);
        }
        let deadline = wait
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let endless = wait.polls == u32::MAX;
        let mut polls = 0u32;
        while endless || polls < wait.polls {
            let n = self.raw.poll(buf)?.len();
            if n > 0 {
                return Ok(n);
            }
            polls = polls.wrapping_add(1);
            if polls % 64 == 0 {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(0);
                }
                if endless && self.channel.gate().was_woken() {
                    return Err(Error::Woken);
                }
            }
            std::hint::spin_loop();
        }
        let until = deadline.map_or(Until::Forever, Until::Deadline);
        let queue = self.alone(until)?;
        self.arming.take(&queue, || Ok(self.raw.poll(buf)?.len()))
    }
}
