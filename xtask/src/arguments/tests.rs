use super::*;

fn parsed(line: &str) -> Result<Task, String> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&arguments)
}

#[test]
fn every_command_and_option_is_parsed() {
    let job =
        |guest: Option<&str>| Task::Job(Job { out: "out".into(), guest: guest.map(PathBuf::from), ..Job::default() });
    let full = Job {
        out: "out".into(),
        guest: Some("g.wasm".into()),
        cloud: None,
        policy: Some("p.json".into()),
        replace: true,
        properties: Some("{}".to_owned()),
        allow_local: true,
        no_build: true,
    };
    let test =
        |only, rest: &[&str]| Test { only, rest: rest.iter().map(|&w| w.to_owned()).collect(), ..Test::default() };
    let on = |cloud| {
        Task::Job(Job { out: "out".into(), guest: Some("openstack".into()), cloud: Some(cloud), ..Job::default() })
    };
    for (line, task) in [
        ("", Task::Help),
        ("--help", Task::Help),
        ("job --help", Task::Help),
        ("setup", Task::Setup),
        ("build", Task::Build),
        ("demo", Task::Demo),
        ("messages", Task::Messages),
        ("tidy", Task::Tidy),
        ("job out", job(None)),
        ("job out --guest g.wasm", job(Some("g.wasm"))),
        ("job --guest g.wasm out", job(Some("g.wasm"))),
        ("job out --guest g.wasm --policy p.json --replace --properties {} --allow-local --no-build", Task::Job(full)),
        (
            "attack --mutants scheme",
            Task::Attack(Attack { mutants: true, filters: vec!["scheme".to_owned()], ..Attack::default() }),
        ),
        ("attack --minutes 5", Task::Attack(Attack { minutes: Some(5), ..Attack::default() })),
        ("bench", Task::Bench(Bench::default())),
        ("bench --wire --quick", Task::Bench(Bench { quick: true, wire: true })),
        ("cloud up openstack", Task::Cloud { direction: Direction::Up, cloud: Cloud::Openstack }),
        ("cloud down sim", Task::Cloud { direction: Direction::Down, cloud: Cloud::Sim }),
        ("cloud up aws-sim", Task::Cloud { direction: Direction::Up, cloud: Cloud::AwsSim }),
        ("cloud down moto", Task::Cloud { direction: Direction::Down, cloud: Cloud::Moto }),
        ("release", Task::Release(Release::default())),
        (
            "release --version 1.2.0+dev.3 --out o --no-build",
            Task::Release(Release { version: Some("1.2.0+dev.3".to_owned()), out: Some("o".into()), no_build: true }),
        ),
        ("fuzz", Task::Fuzz(Fuzz::default())),
        ("fuzz json --minutes 5", Task::Fuzz(Fuzz { target: Some("json".to_owned()), minutes: Some(5) })),
        ("guest ../mine", Task::Guest { directory: "../mine".into() }),
        ("guest --help", Task::Help),
        ("job out --guest openstack --cloud sim", on(Cloud::Sim)),
        ("job --cloud openstack --guest openstack out", on(Cloud::Openstack)),
        ("test --without openstack", Task::Test(Test { without_openstack: true, ..Test::default() })),
        (
            "test --only it --without openstack -- x",
            Task::Test(Test { without_openstack: true, ..test(Some(Part::Integration), &["x"]) }),
        ),
        ("test --quick -- x", Task::Test(Test { quick: true, ..test(None, &["x"]) })),
        ("test", Task::Test(test(None, &[]))),
        ("test --only it", Task::Test(test(Some(Part::Integration), &[]))),
        ("test --only unit -- policy --nocapture", Task::Test(test(Some(Part::Unit), &["policy", "--nocapture"]))),
        ("test -- --help", Task::Test(test(None, &["--help"]))),
    ] {
        assert_eq!(parsed(line), Ok(task), "{line}");
    }
}

#[test]
fn an_error_names_the_wrong_argument() {
    for (line, named) in [
        ("tset", "tset"),
        ("build --fast", "--fast"),
        ("messages all", "`all`"),
        ("job", "OUT"),
        ("job a b", "`b`"),
        ("job a --gest x", "--gest"),
        ("job a --guest", ".wasm"),
        ("job a --policy", "policy.json"),
        ("job a --properties", "JSON"),
        ("job a --cloud", "sim or openstack"),
        ("job a --guest openstack --cloud ec2", "ec2"),
        ("job a --guest openstack --cloud moto", "moto"),
        ("job a --cloud sim", "--guest openstack"),
        ("job a --guest probe --cloud sim", "--guest openstack"),
        ("job a --guest openstack --cloud sim --properties {}", "--properties"),
        ("test --without", "openstack"),
        ("test --without it", "openstack"),
        ("cloud", "up|down"),
        ("cloud up", "openstack|sim"),
        ("cloud out sim", "`cloud out`"),
        ("cloud up ec2", "`ec2`"),
        ("cloud up sim now", "`now`"),
        ("fuzz a b", "`b`"),
        ("fuzz --fast", "--fast"),
        ("fuzz --minutes", "1440"),
        ("fuzz --minutes 0", "1440"),
        ("guest", "DIR"),
        ("guest --fast", "--fast"),
        ("guest a b", "`b`"),
        ("bench --fast", "--fast"),
        ("attack --mutant", "--mutant"),
        ("attack --mutants --minutes 5", "--minutes"),
        ("test policy", "policy"),
        ("test --quick --only it", "--only"),
        ("test --without openstack --quick", "--quick"),
        ("test --only", "lint"),
        ("test --only all", "all"),
    ] {
        let problem = parsed(line).expect_err(line);
        assert!(problem.contains(named), "{line}: {problem}");
    }
}
