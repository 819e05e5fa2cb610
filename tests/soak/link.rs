//! A client's connection, how it waits for completions, and why a session ends.

use rpma::{Completion, Connection, Error, LocalRegion, RemoteSlice, Signal, Wait};

use crate::board::{Board, Count};

/// Why a session ends before its time.
pub enum End {
    /// The network, the server, the other side's decision: part of the game.
    Broken,
    /// What must not be.
    Wrong(Box<dyn std::error::Error>),
}

impl End {
    pub fn wrong(what: impl Into<Box<dyn std::error::Error>>) -> End {
        End::Wrong(what.into())
    }
}

/// The provider refuses to post to a queue pair that failed; anything else that this crate says is
/// a mistake of this program.
impl From<Error> for End {
    fn from(err: Error) -> End {
        match err {
            Error::Provider { .. }
            | Error::PartlyPosted { .. }
            | Error::QueueFull { .. }
            | Error::Connection { .. }
            | Error::TimedOut { .. } => End::Broken,
            other => End::wrong(other),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Broken => f.write_str("the connection broke"),
            End::Wrong(wrong) => wrong.fmt(f),
        }
    }
}

pub struct Link {
    pub conn: Connection,
    pub wait: Wait,
    /// The requests that may be posted at a time.
    pub sq_size: u64,
}

/// The number of a read's completion.
const READ: u64 = 100;

impl Link {
    /// Waits for the completion with this number.
    pub fn completion(&self, board: &Board, number: u64) -> Result<(), End> {
        let mut buf = [Completion::default()];
        let taken = self.conn.cq().take(&mut buf, self.wait)?;
        let Some(wc) = taken.first() else {
            board.add(Count::NothingCame, 1);
            return Err(End::Broken);
        };
        if !wc.is_success() {
            board.completion(wc.status());
            return Err(End::Broken);
        }
        if wc.wr_id() != number {
            return Err(End::wrong(format!(
                "completion {} where {number} was to come",
                wc.wr_id()
            )));
        }
        Ok(())
    }

    /// Reads each of `from` to a place of its own in `inbox`, all of them at once.
    pub fn read(
        &self,
        board: &Board,
        inbox: &LocalRegion,
        from: &[(RemoteSlice, u64)],
    ) -> Result<Vec<Vec<u8>>, End> {
        let mut batch = self.conn.batch();
        for (i, (src, at)) in from.iter().enumerate() {
            let signal = match i + 1 == from.len() {
                true => Signal::Always(READ),
                false => Signal::OnError(READ),
            };
            let dst = inbox.slice(*at..*at + src.len())?;
            match from.len() {
                1 => self.conn.read(&dst, src, signal)?,
                _ => batch.read(&dst, src, signal)?,
            }
        }
        batch.submit()?;
        self.completion(board, READ)?;
        board.add(Count::Operations, from.len() as u64);
        from.iter()
            .map(|(src, at)| {
                let mut bytes = vec![0; src.len() as usize];
                inbox.read_at(*at, &mut bytes)?;
                Ok(bytes)
            })
            .collect()
    }
}
