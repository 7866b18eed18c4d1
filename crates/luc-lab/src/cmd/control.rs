//! `luc-lab control`

use luc_control::{Loop, poles};
use serde_json::{Value, json};

use luc_cli::{Context, Failure, Verb, verbs};

verbs! {
    /// Analyse the PID controller
    Verbs:
    Poles(PolesArgs),
}

/// Print the closed loop's poles for a set of gains
///
/// The loop is stable if every pole lies inside the unit circle. The closer the largest modulus is
/// to 0, the faster an error decays. "published" is the textbook loop, in which a commit's error
/// corrects that same commit; "stepwise" is the loop that runs, which corrects the next commit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab control poles\n\
    \x20 luc-lab control poles --kp 0.5 --ki 0.1 --kd 0")]
pub struct PolesArgs {
    /// Proportional gain
    #[arg(long, default_value_t = 0.8, allow_negative_numbers = true)]
    kp: f64,
    /// Integral gain
    #[arg(long, default_value_t = 0.25, allow_negative_numbers = true)]
    ki: f64,
    /// Derivative gain
    #[arg(long, default_value_t = 0.25, allow_negative_numbers = true)]
    kd: f64,
    /// Gain of the plant: sync events gained per sync event requested
    #[arg(
        short,
        long = "plant",
        value_name = "C",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    c: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for PolesArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let found = poles(self.kp, self.ki, self.kd, self.c)
            .map_err(|error| Failure::usage("control poles", error))?;
        if self.json {
            let report = json!({
                "schema": 1,
                "kp": self.kp,
                "ki": self.ki,
                "kd": self.kd,
                "c": self.c,
                "verdict": found.stability.to_string(),
                "published": as_json(&found.published),
                "stepwise": as_json(&found.stepwise),
            });
            return context.print_json(&report);
        }
        writeln!(
            context.out,
            "Kp {}, Ki {}, Kd {}, plant gain c {}: {}",
            self.kp, self.ki, self.kd, self.c, found.stability
        )?;
        for (name, one) in [
            ("published", &found.published),
            ("stepwise", &found.stepwise),
        ] {
            let poles: Vec<_> = one.poles.iter().map(|pole| format!("{pole:.3}")).collect();
            write!(
                context.out,
                "  {name:<10} {:<8} modulus {:.3}, poles {}",
                one.stability.to_string(),
                one.modulus,
                poles.join(", ")
            )?;
            if let Some(commits) = one.settling_commits {
                let commits = luc_cli::units::counted(commits, "commit", "commits");
                write!(context.out, "; an error shrinks to a tenth in {commits}")?;
            }
            if one.cancelled {
                write!(
                    context.out,
                    "; without the pole at 1 that Ki = 0 leaves unused"
                )?;
            }
            writeln!(context.out)?;
        }
        Ok(())
    }
}

fn as_json(one: &Loop) -> Value {
    let poles: Vec<_> = one
        .poles
        .iter()
        .map(|pole| json!({"re": pole.re, "im": pole.im}))
        .collect();
    json!({
        "verdict": one.stability.to_string(),
        "modulus": one.modulus,
        "poles": poles,
        "pole_at_1_cancelled": one.cancelled,
        "settling_commits": one.settling_commits,
    })
}
