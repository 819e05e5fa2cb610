//! What a run is told.

use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// rxe or siw
    #[arg(long)]
    pub dev: String,
    /// How long, the warm-up included; what is set up before and looked at after comes on top
    #[arg(long, default_value_t = 3.0)]
    pub minutes: f64,
    /// Repeats the course of another run, as far as the machine lets it
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many clients work at a time
    #[arg(long, default_value_t = 5)]
    pub clients: u64,
    /// How long a client may append nothing, in milliseconds
    #[arg(long, default_value_t = 8000)]
    pub idle: u64,
    /// Write the table here, one row a line with a tab between name and value
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// Do what must be noticed, so that the run fails
    #[arg(long, value_enum, value_delimiter = ',')]
    pub plant: Vec<Plant>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Plant {
    /// The server keeps a region whenever a client goes
    Leak,
    /// A byte of a committed record changes
    Corruption,
    /// A record is taken for acknowledged that is not there
    Loss,
    /// On siw: the clients do nothing against its fault
    Fault,
}
