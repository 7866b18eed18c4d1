//! The means of watching kernel functions, as an argument of the verbs that watch.

/// Ways to look at a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Means {
    /// Trampolines at entry and exit
    Fentry,
    /// Kernel probes
    Kprobe,
}

impl From<Means> for luc_bpf::Means {
    fn from(means: Means) -> Self {
        match means {
            Means::Fentry => Self::Fentry,
            Means::Kprobe => Self::Kprobe,
        }
    }
}

/// The choice between them.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ByMeans {
    /// Means of watching kernel functions [default: fentry, or kprobes if the kernel has no fentry]
    #[arg(long, value_enum, value_name = "MEANS")]
    pub means: Option<Means>,
}

impl ByMeans {
    /// The means that was asked for.
    pub fn chosen(self) -> Option<luc_bpf::Means> {
        self.means.map(Into::into)
    }

    /// Tells whether kprobes were asked for.
    pub fn kprobes(self) -> bool {
        self.means == Some(Means::Kprobe)
    }
}
