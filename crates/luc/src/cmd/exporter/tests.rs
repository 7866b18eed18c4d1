//! Tests of the pages, of malformed requests, and of the dashboard.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use super::blame::{self, Blamed};
use super::families::{ENERGY, energy, families, wanted};
use super::guards;
use super::http::{Asked, Server, asked};
use super::text::{Family, Kind, Value, render};
use super::textfile;
use luc_bpf::TaskCounts;
use luc_model::blame::WaitedTime;
use luc_power::meter::Meter;
use luc_trace::{Sight, Unseen};
use luc_watch::blame::{BlameTotals, Party};
use luc_watch::sample::toys::reading;
use luc_watch::sample::{GroupTotals, JournalReading, Reading, WaitingSyncs};

fn page() -> String {
    render(&families(&reading(2)))
}

/// A reading that has every counter.
fn full() -> Reading {
    let mut reading = reading(2);
    let module = reading.journals[0].module.as_mut().expect("on");
    for counter in luc_control::counters() {
        module.counters.entry(counter.name).or_insert(1);
    }
    reading.groups = Some(GroupTotals::default());
    reading
}

fn names(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect()
}

#[test]
fn totals_have_names_units_and_labels() {
    let page = page();
    for line in [
        "# TYPE luc_syncs_total counter",
        "luc_syncs_total{device=\"vdb\",mountpoint=\"/srv/data\"} 160",
        "luc_syncs_late_total{device=\"vdb\",mountpoint=\"/srv/data\"} 8",
        "luc_journal_commits_total{device=\"vda1\",mountpoint=\"/\"} 0",
        "luc_waits_total{device=\"vdb\",mountpoint=\"/srv/data\",kind=\"wait-buffer\"} 10",
        "luc_wait_seconds_total{device=\"vdb\",mountpoint=\"/srv/data\",kind=\"wait-buffer\"} 0.03",
        "luc_held_seconds_total{device=\"vdb\",mountpoint=\"/srv/data\"} 0.0036",
        "luc_hold_seconds{device=\"vdb\",mountpoint=\"/srv/data\"} 0.00025",
        "luc_setpoint_events{device=\"vdb\",mountpoint=\"/srv/data\"} 8",
        "# HELP luc_commits_held_total commits that were held back for more sync events",
        "luc_tracer_attached{means=\"tracepoint\"} 5",
        "luc_tracer_attached{means=\"fentry\"} 1",
        "luc_tracer_attached{means=\"kprobe\"} 2",
        "luc_tracer_lost_total 6",
        "luc_sync_duration_seconds_count{device=\"vdb\",mountpoint=\"/srv/data\"} 160",
        "luc_sync_duration_seconds_bucket{device=\"vdb\",mountpoint=\"/srv/data\",le=\"+Inf\"} 160",
    ] {
        assert!(page.lines().any(|one| one == line), "{line}\n{page}");
    }
}

/// An unknown number has no series; no sync that goes on is a number, 0.
#[test]
fn syncs_that_go_on_have_their_age() {
    let line =
        |name: &str, value| format!("{name}{{device=\"vdb\",mountpoint=\"/srv/data\"}} {value}");
    let mut reading = reading(2);
    let lines = |reading: &Reading| -> Vec<String> {
        let page = render(&families(reading));
        let lines = page.lines().filter(|line| line.contains("waiting"));
        let of_data = lines.filter(|line| line.contains("/srv/data"));
        of_data.map(str::to_owned).collect()
    };
    let of = |syncs, longest_s| {
        [
            line("luc_syncs_waiting", syncs),
            line("luc_sync_waiting_seconds_max", longest_s),
        ]
    };
    reading.journals[0].waiting = Some(WaitingSyncs {
        syncs: 2,
        longest_ns: 12_500_000_000,
    });
    assert_eq!(lines(&reading), of("2", "12.5"));
    reading.journals[0].waiting = Some(WaitingSyncs::default());
    assert_eq!(lines(&reading), of("0", "0"));
    reading.journals[0].waiting = None;
    assert!(lines(&reading).is_empty());
}

/// Names of control groups come from users; unknown totals have no series.
#[test]
fn control_groups_have_totals() {
    let counts = |syncs| TaskCounts {
        syncs,
        sync_ns: 1_500_000_000,
        syncs_late: 1,
        wait_ns: 0,
    };
    let mut reading = reading(2);
    let lines = |reading: &Reading| -> Vec<String> {
        let page = render(&families(reading));
        let lines = page.lines().filter(|line| line.starts_with("luc_cgroup"));
        lines.map(str::to_owned).collect()
    };
    assert!(lines(&reading).is_empty());
    reading.groups = Some(GroupTotals {
        shown: vec![("/a \"b\\".to_owned(), counts(3))],
        others: counts(5),
    });
    let with_waits = lines(&reading);
    let expected = [
        r#"luc_cgroup_syncs_total{cgroup="/a \"b\\"} 3"#,
        r#"luc_cgroup_syncs_total{cgroup="others"} 5"#,
        r#"luc_cgroup_sync_seconds_total{cgroup="/a \"b\\"} 1.5"#,
        r#"luc_cgroup_sync_seconds_total{cgroup="others"} 1.5"#,
        r#"luc_cgroup_syncs_late_total{cgroup="/a \"b\\"} 1"#,
        r#"luc_cgroup_syncs_late_total{cgroup="others"} 1"#,
    ];
    assert_eq!(with_waits[..6], expected);
    assert_eq!(with_waits.len(), 8);
    reading.unseen = Unseen::from([Sight::WaitBuffer]);
    assert_eq!(lines(&reading), expected);
}

#[test]
fn a_page_is_well_formed() {
    let page = render(&families(&full()));
    let mut typed = BTreeSet::new();
    let mut series = BTreeSet::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().expect("a name");
            assert!(typed.insert(name.to_owned()), "{name} twice");
        } else if !line.starts_with('#') {
            let (key, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(series.insert(key.to_owned()), "{key} twice");
            let name = key.split('{').next().expect("a name");
            let plain = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end).filter(|name| typed.contains(*name)));
            assert!(typed.contains(plain.unwrap_or(name)), "{name} has a type");
        }
    }
    for counter in luc_control::counters() {
        let stem = counter.name.trim_end_matches("_ns");
        let start = format!("luc_{stem}");
        assert!(
            names(&page).iter().any(|name| name.starts_with(&start)),
            "{start}"
        );
    }
}

#[test]
fn buckets_grow_and_are_always_the_same() {
    let bounds = |page: &str| {
        let mut counts = Vec::new();
        for line in page
            .lines()
            .filter(|line| line.starts_with("luc_sync_duration_seconds_bucket{device=\"vdb\""))
        {
            counts.push(
                line.rsplit_once(' ')
                    .and_then(|(_, n)| n.parse::<u64>().ok()),
            );
        }
        assert!(counts.is_sorted(), "{counts:?}");
        counts.len()
    };
    let empty = Reading {
        journals: vec![JournalReading {
            fast_commits: Some(17),
            counts: Some(luc_bpf::Counts::default()),
            ..reading(1).journals[0].clone()
        }],
        ..Reading::default()
    };
    let quiet = render(&families(&empty));
    assert!(
        quiet.contains("\nluc_journal_fast_commits_total{device=\"vdb\","),
        "{quiet}"
    );
    assert!(!page().contains("fast_commits_total"), "unknown there");
    assert_eq!(bounds(&page()), bounds(&quiet));
    // Each is a series per journal: 18 with a bound, and one without.
    assert_eq!(bounds(&page()), 19);
}

#[test]
fn nothing_to_say_is_said_with_few_lines() {
    let nothing = Reading {
        hooks: luc_bpf::Attached::default().by_means(),
        ..Reading::default()
    };
    let page = render(&families(&nothing));
    assert_eq!(
        names(&page),
        BTreeSet::from(["luc_build_info", "luc_tracer_attached"])
    );
}

#[test]
fn a_tracer_that_has_only_just_started_tells_no_counts() {
    let mut reading = full();
    reading.forget_traced();
    let page = render(&families(&reading));
    assert!(page.contains("luc_tracer_attached{means=\"tracepoint\"} 5"));
    assert!(page.contains("luc_commits_total{"), "{page}");
    for absent in [
        "luc_syncs",
        "luc_journal_",
        "luc_waits",
        "luc_tracer_lost",
        "luc_cgroup",
    ] {
        assert!(!page.contains(absent), "{absent}\n{page}");
    }
}

#[test]
fn no_two_metrics_have_the_same_help() {
    let mut all = families(&full());
    all.extend(guards::findings(&[]));
    let helps: BTreeSet<&str> = all.iter().map(|family| family.help.as_str()).collect();
    assert_eq!(helps.len(), all.len());
}

/// A series of 0 says that nothing happened, so a wait that cannot be seen has none.
#[test]
fn unseen_waits_have_no_series() {
    let mut reading = reading(2);
    reading.unseen = Unseen::from([Sight::WaitBuffer, Sight::WaitSpace]);
    let page = render(&families(&reading));
    assert!(page.contains("kind=\"wait-locked\"} 2"), "{page}");
    for absent in ["wait-buffer", "wait-space", "luc_buffer_wait_duration"] {
        assert!(!page.contains(absent), "{absent}\n{page}");
    }
}

#[test]
fn labels_and_help_are_escaped() {
    let family = Family {
        name: "x".into(),
        kind: Kind::Gauge,
        help: "a\\b\n\"c\"".into(),
        series: vec![(
            vec![("mountpoint", "/a \"b\"\\c\nd".to_owned())],
            Value::Number(1.5),
        )],
    };
    assert_eq!(
        render(&[family]),
        "# HELP x a\\\\b\\n\"c\"\n# TYPE x gauge\nx{mountpoint=\"/a \\\"b\\\"\\\\c\\nd\"} 1.5\n"
    );
}

#[test]
fn requests_are_told_apart() {
    for (head, expected) in [
        (
            &b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            Asked::Page,
        ),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", Asked::Page),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", Asked::Page),
        (b"GET / HTTP/1.1\r\n\r\n", Asked::Index),
        (b"GET /metrics/../x HTTP/1.1\r\n\r\n", Asked::Unknown),
        (b"POST /metrics HTTP/1.1\r\n\r\n", Asked::BadMethod),
        (b"GET metrics HTTP/1.1\r\n\r\n", Asked::Nonsense),
        (b"GET /metrics HTTP/2\r\n\r\n", Asked::Nonsense),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", Asked::Nonsense),
        (b"\xff\xfe\r\n\r\n", Asked::Nonsense),
        (b"\r\n\r\n", Asked::Nonsense),
        (b"", Asked::Nonsense),
    ] {
        assert_eq!(asked(head), expected, "{}", String::from_utf8_lossy(head));
    }
}

fn exchange(bytes: &[u8], close: bool) -> String {
    let server = Server::new((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let mut client = TcpStream::connect(server.address().expect("an address")).expect("connected");
    client.write_all(bytes).expect("sent");
    if close {
        client.shutdown(Shutdown::Write).expect("closed");
    }
    let page = || Ok("x 1\n".to_owned());
    server.serve(Duration::from_secs(5), page).expect("served");
    let mut answer = String::new();
    // Unread bytes at the close may reset the connection.
    let _ = client.read_to_string(&mut answer);
    answer
}

#[test]
fn clients_get_an_answer_or_are_let_go() {
    let page = exchange(b"GET /metrics HTTP/1.1\r\n\r\n", false);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("Content-Length: 4\r\n") && page.ends_with("\r\n\r\nx 1\n"));
    let index = exchange(b"GET / HTTP/1.1\r\n\r\n", false);
    assert!(index.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"));
    assert!(index.contains("<a href=\"/metrics\">"), "{index}");
    let head = exchange(b"HEAD /metrics HTTP/1.1\r\n\r\n", false);
    assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"));
    assert!(exchange(b"GET /x HTTP/1.1\r\n\r\n", false).starts_with("HTTP/1.1 404"));
    assert!(exchange(b"PUT /metrics HTTP/1.1\r\n\r\n", false).contains("Allow: GET"));
    assert!(exchange(b"\x16\x03\x01 garbage", true).starts_with("HTTP/1.1 400"));
    assert!(exchange(b"", true).starts_with("HTTP/1.1 400"));
    // Unread bytes may cut the answer off.
    let long = exchange(&[b'a'; 9000], false);
    assert!(
        long.is_empty() || long.starts_with("HTTP/1.1 400"),
        "{long}"
    );
    // A client that sends half a request and stays connected.
    assert_eq!(exchange(b"GET /met", false), "");
    let server = Server::new((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let never = || -> Result<String, String> { panic!("nobody asked") };
    server
        .serve(Duration::from_millis(1), never)
        .expect("nobody came");
    let taken = Server::new(server.address().expect("an address"));
    assert_eq!(taken.expect_err("taken").exit_code(), 11);
}

#[test]
fn the_file_is_whole_or_not_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("luc.prom");
    textfile::replace(&file, "x 1\n").expect("written");
    textfile::replace(&file, "x 2\n").expect("written again");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "x 2\n");
    let files = std::fs::read_dir(dir.path()).expect("there").count();
    assert_eq!(files, 1, "nothing is left beside it");
    let nowhere = dir.path().join("none/luc.prom");
    assert_eq!(
        textfile::replace(&nowhere, "")
            .expect_err("no folder")
            .exit_code(),
        5
    );
    // A folder cannot be replaced, and the new file beside it is removed.
    let folder = dir.path().join("folder.prom");
    std::fs::create_dir(&folder).expect("made");
    textfile::replace(&folder, "").expect_err("a folder");
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 2);
    textfile::remove(&file);
    assert!(!file.exists());
}

/// The words of a query that look like LUC's metrics.
fn metrics_of(query: &str) -> impl Iterator<Item = &str> {
    query
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("luc_"))
}

/// Names of all series that a page can have.
fn all_metrics() -> BTreeSet<String> {
    let page = render(&families(&full()));
    let mut known: BTreeSet<String> = names(&page).into_iter().map(str::to_owned).collect();
    let more = guards::findings(&[])
        .into_iter()
        .chain([wanted(&full(), &[])]);
    known.extend(more.map(|family| family.name));
    known.extend(blame::families(&[]).map(|family| family.name));
    known.insert(ENERGY.to_owned());
    known
}

#[test]
fn what_luc_toml_names_is_told() {
    let reading = full();
    let page = render(&[wanted(&reading, &[reading.journals[0].device])]);
    let series = "luc_wanted_info{device=\"vdb\",mountpoint=\"/srv/data\"} 1\n";
    assert!(page.ends_with(series), "{page}");
}

#[test]
fn the_alerts_use_what_there_is() {
    let text = include_str!("../../../../../docs/prometheus-alerts.yml");
    let known = all_metrics();
    let mut rules = 0;
    for line in text.lines() {
        let Some(query) = line.trim().strip_prefix("expr: ") else {
            continue;
        };
        rules += 1;
        let metrics: Vec<&str> = metrics_of(query).collect();
        assert!(!metrics.is_empty(), "{query}");
        for metric in metrics {
            assert!(known.contains(metric), "{metric} of {query}");
        }
    }
    let of = |word: &str| {
        text.lines()
            .filter(|line| line.trim().starts_with(word))
            .count()
    };
    assert!(
        rules > 4 && of("- alert: ") == rules && of("summary: ") == rules,
        "{rules}"
    );
}

#[test]
fn who_is_blamed_has_labels_and_the_unknown_no_series() {
    let reading = full();
    let group = |path: &str| Party::Group(path.to_owned());
    let time = WaitedTime {
        commits_ns: 2e9,
        write_delay_ns: 5e8,
        ..WaitedTime::default()
    };
    let totals = BlameTotals {
        commits_asked: [(group("/a \"b\"\n"), 3), (Party::Nobody, 1)].into(),
        waited: [((group("/db"), Party::Others), time)].into(),
    };
    let page = |lost| {
        let totals = &totals;
        let blamed = Blamed { totals, lost };
        render(&blame::families(&[(&reading.journals[0], blamed)]))
    };
    let at = "{device=\"vdb\",mountpoint=\"/srv/data\"";
    let expected = [
        format!("luc_cgroup_commits_asked_total{at},cgroup=\"/a \\\"b\\\"\\n\"}} 3"),
        format!("luc_cgroup_commits_asked_total{at},cgroup=\"nobody\"}} 1"),
        format!(
            "luc_cgroup_blamed_seconds_total{at},cgroup=\"/db\",blamed=\"others\",kind=\"commits\"}} 2"
        ),
        format!(
            "luc_cgroup_blamed_seconds_total{at},cgroup=\"/db\",blamed=\"others\",kind=\"writes\"}} 0.5"
        ),
        format!("luc_blame_lost_total{at}}} 7"),
    ];
    let series = |page: &str| -> BTreeSet<String> {
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(series(&page(Some(7))), expected.into());
    assert_eq!(series(&page(None)).len(), 4);
}

#[test]
fn the_dashboard_uses_what_there_is() {
    let text = include_str!("../../../../../docs/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let known = all_metrics();
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut used = BTreeSet::new();
    for panel in panels {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["expr"].as_str().expect("a query");
            for metric in metrics_of(query) {
                assert!(known.contains(metric), "{metric} of {query}");
                used.insert(metric);
            }
        }
    }
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
    {
        for metric in metrics_of(variable["query"].as_str().unwrap_or_default()) {
            assert!(known.contains(metric), "{metric}");
        }
    }
    assert!(used.len() > 12, "{used:?}");
    assert!(used.contains(ENERGY), "{used:?}");
    let mut bets = known.iter().filter(|name| name.contains("_evidence_"));
    assert!(bets.all(|bet| used.contains(bet.as_str())), "{used:?}");
}

#[test]
fn energy_names_its_boundary_and_ends_with_its_counter() {
    let root = tempfile::tempdir().expect("temporary folder");
    let package = root.path().join("sys/class/powercap/intel-rapl:0");
    std::fs::create_dir_all(&package).expect("a folder");
    let put = |file: &str, text: &str| {
        std::fs::write(package.join(file), text).expect("a file");
    };
    put("name", "package-0\n");
    put("energy_uj", "7000\n");
    put("max_energy_range_uj", "262143328850\n");
    let meter = Meter::find(root.path(), None).expect("a meter");
    put("energy_uj", "9000\n");
    let page = render(&[energy(&meter.sample())]);
    let expected = "# HELP luc_energy_joules_total energy since the exporter started, of 1 processor \
                    package alone, without DRAM and disks\n\
                    # TYPE luc_energy_joules_total counter\n\
                    luc_energy_joules_total{domain=\"packages\"} 0.002\n";
    assert_eq!(page, expected);
    put("energy_uj", "unreadable\n");
    assert_eq!(render(&[energy(&meter.sample())]), "");
}
