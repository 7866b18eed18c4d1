//! Notifications to systemd. Without systemd none are sent.

use std::time::Duration;

use sd_notify::{NotifyState, notify};

pub fn ready() {
    let _ = notify(&[NotifyState::Ready]);
}

pub fn reloading() {
    let monotonic = NotifyState::monotonic_usec_now();
    let _ = match monotonic {
        Ok(since) => notify(&[NotifyState::Reloading, since]),
        Err(_) => notify(&[NotifyState::Reloading]),
    };
}

pub fn stopping() {
    let _ = notify(&[NotifyState::Stopping]);
}

/// Tells the watchdog that the service is alive, and its state in a line.
pub fn alive(state: &str) {
    let _ = notify(&[NotifyState::Watchdog, NotifyState::Status(state)]);
}

/// How often to call [`alive`], if systemd watches the service.
pub fn half_of_watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|most| most / 2)
}
