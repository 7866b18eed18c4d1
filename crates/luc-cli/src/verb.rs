//! A verb: arguments that can be run. Its file declares its help, its examples, its arguments
//! and how it takes a signal; a row of `verbs!` puts it on the command line.

use crate::{Context, Failure};

/// The effect of SIGINT and SIGTERM on a verb. A second signal always ends the process, so that no
/// verb can hang.
#[derive(Clone, Copy, Debug)]
pub enum Interrupt {
    /// The process ends, as by default: there is nothing to clean up.
    Ends,
    /// [`Context::stopped`] becomes true.
    Asks,
    /// As `Asks`; a command that the verb runs gets its signals as if it ran alone.
    AsksBoth,
    /// As `Asks`; the function runs before any signal ends the process.
    AsksThen(fn()),
}

impl Interrupt {
    /// The effect on a verb that runs `command`, which may be empty.
    pub fn beside(command: &[String]) -> Self {
        if command.is_empty() {
            Self::Asks
        } else {
            Self::AsksBoth
        }
    }
}

/// A verb of the command line.
pub trait Verb {
    /// Does what the command line asks for.
    fn run(&self, context: &mut Context) -> Result<(), Failure>;

    /// Tells what a signal does to the verb.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Ends
    }
}

/// Large arguments are boxed.
impl<T: Verb> Verb for Box<T> {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        (**self).run(context)
    }

    fn interrupt(&self) -> Interrupt {
        (**self).interrupt()
    }
}

/// Lists verbs, one row each: the name, and the arguments, whose help is the verb's.
#[macro_export]
macro_rules! verbs {
    ($(#[$help:meta])* $name:ident: $($(#[$command:meta])* $verb:ident($args:ty),)+) => {
        $(#[$help])*
        #[derive(Debug, clap::Subcommand)]
        pub enum $name {
            $($(#[$command])* $verb($args),)+
        }

        impl $crate::Verb for $name {
            fn run(&self, context: &mut $crate::Context) -> Result<(), $crate::Failure> {
                match self {
                    $(Self::$verb(args) => $crate::Verb::run(args, context),)+
                }
            }

            fn interrupt(&self) -> $crate::Interrupt {
                match self {
                    $(Self::$verb(args) => $crate::Verb::interrupt(args),)+
                }
            }
        }
    };
}
