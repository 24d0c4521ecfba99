//! Keystone: tokens and the catalog.

use super::clock;
use super::message::{Answer, Request, Response, unauthorized};
use super::seed;
use super::simulator::Simulator;
use super::state::{Session, State};
use serde_json::{Value, json};
use std::time::SystemTime;

pub(super) fn answer(simulator: &Simulator, request: &Request, parts: &[&str], body: &Value) -> Answer {
    match (request.method.as_str(), parts) {
        ("POST", ["auth", "tokens"]) => log_in(&mut simulator.lock(), body),
        ("GET", ["auth", "tokens"]) => {
            simulator.session(request)?;
            let token = request.header("x-subject-token").unwrap_or_default();
            let state = simulator.lock();
            let session = state.tokens.get(token).filter(|session| session.expires > SystemTime::now());
            let session = session.ok_or_else(|| missing(&format!("Could not find token: {token}.")))?;
            Ok(Response::json(200, &token_description(&state, session, &["password"])).with("X-Subject-Token", token))
        }
        ("DELETE", ["auth", "tokens"]) => {
            simulator.session(request)?;
            simulator.lock().tokens.remove(request.header("x-subject-token").unwrap_or_default());
            Ok(Response::new(204))
        }
        ("GET", ["auth", "catalog"]) => {
            let session = simulator.session(request)?;
            Ok(Response::json(200, &json!({"catalog": catalog(&session.project), "links": {}})))
        }
        _ => {
            let body = b"<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n".to_vec();
            Err(Response { body, ..Response::new(404) }.with("Content-Type", "text/html; charset=utf-8"))
        }
    }
}

fn log_in(state: &mut State, body: &Value) -> Answer {
    let identity = &body["auth"]["identity"];
    let Some(method) = identity["methods"][0].as_str() else {
        let message = "Expecting to find auth in request body. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.";
        return Err(keystone_error(400, "Bad Request", message));
    };
    let session = match method {
        "password" => by_password(state, &identity["password"]["user"], &body["auth"]["scope"]["project"]),
        "application_credential" => by_credential(state, &identity["application_credential"]),
        _ => None,
    };
    let realm = format!("Keystone uri=\"{}/v3\"", seed::IDENTITY);
    let session = session.ok_or_else(|| unauthorized().with("WWW-Authenticate", &realm))?;
    let token = format!("gAAAAAB{}{}-_{}", state.hex(), state.hex(), state.hex());
    state.tokens.insert(token.clone(), session.clone());
    let mut description = token_description(state, &session, &[method]);
    if method == "application_credential" {
        let credential = state.credentials.iter().find(|credential| credential.user == session.user);
        description["token"]["application_credential"] = json!({
            "id": credential.map(|credential| &credential.id), "name": credential.map(|credential| &credential.name),
            "restricted": true,
        });
    }
    Ok(Response::json(201, &description).with("X-Subject-Token", &token).with("Vary", "X-Auth-Token"))
}

fn by_password(state: &State, wanted: &Value, scope: &Value) -> Option<Session> {
    let user = state.users.iter().find(|user| {
        let id = wanted["id"].as_str() == Some(user.id.as_str());
        id || (wanted["name"].as_str() == Some(user.name.as_str()) && is_default(&wanted["domain"]))
    })?;
    let right = wanted["password"].as_str() == Some(user.password.as_str());
    let project = state.projects.iter().find(|project| {
        let id = scope["id"].as_str() == Some(project.id.as_str());
        id || (scope["name"].as_str() == Some(project.name.as_str()) && is_default(&scope["domain"]))
    })?;
    // A user has a role in one project, the admin in all.
    (right && (user.admin || user.project == project.id)).then(|| new_session(state, &user.id, &project.id, user.admin))
}

fn by_credential(state: &State, wanted: &Value) -> Option<Session> {
    let credential = state.credentials.iter().find(|credential| {
        let user = state.users.iter().find(|user| user.id == credential.user);
        let named = wanted["name"].as_str() == Some(credential.name.as_str())
            && user.is_some_and(|user| wanted["user"]["name"].as_str() == Some(user.name.as_str()));
        wanted["id"].as_str() == Some(credential.id.as_str()) || named
    })?;
    let user = state.users.iter().find(|user| user.id == credential.user)?;
    let right = wanted["secret"].as_str() == Some(credential.secret.as_str());
    right.then(|| new_session(state, &user.id, &user.project, false))
}

fn new_session(state: &State, user: &str, project: &str, admin: bool) -> Session {
    let expires = SystemTime::now() + state.token_lifetime;
    Session { user: user.to_owned(), project: project.to_owned(), admin, expires }
}

fn is_default(domain: &Value) -> bool {
    domain["name"].as_str() == Some("Default") || domain["id"].as_str() == Some("default")
}

fn token_description(state: &State, session: &Session, methods: &[&str]) -> Value {
    let user = state.users.iter().find(|user| user.id == session.user).map_or("", |user| user.name.as_str());
    let project = state.projects.iter().find(|project| project.id == session.project);
    let domain = json!({"id": "default", "name": "Default"});
    let roles: &[&str] = if session.admin { &["admin", "manager", "member", "reader"] } else { &["member", "reader"] };
    let roles: Vec<Value> = roles.iter().map(|role| json!({"id": seed::digest(role), "name": role})).collect();
    json!({"token": {
        "methods": methods,
        "user": {"domain": domain, "id": session.user, "name": user, "password_expires_at": null},
        "audit_ids": [&seed::digest(&session.user)[..22]],
        "expires_at": clock::format_time(session.expires) + ".000000Z",
        "issued_at": clock::now() + ".000000Z",
        "project": {"domain": domain, "id": session.project, "name": project.map_or("", |project| &project.name)},
        "is_domain": false,
        "roles": roles,
        "catalog": catalog(&session.project),
    }})
}

/// Returns the catalog, with three endpoints per service as in real clouds.
fn catalog(project: &str) -> Value {
    let services = [
        ("identity", "keystone", format!("{}/v3", seed::IDENTITY)),
        ("image", "glance", seed::IMAGE.to_owned()),
        ("compute", "nova", format!("{}/v2.1", seed::COMPUTE)),
        ("network", "neutron", seed::NETWORK.to_owned()),
        ("block-storage", "cinder", format!("{}/v3/{project}", seed::VOLUME)),
        ("volumev3", "cinder", format!("{}/v3/{project}", seed::VOLUME)),
        ("load-balancer", "octavia", seed::LOAD_BALANCER.to_owned()),
    ];
    let services = services.iter().map(|(kind, name, url)| {
        let endpoints = ["internal", "admin", "public"].map(|interface| {
            let id = seed::digest(&format!("{kind} {interface}"));
            json!({
                "id": id, "interface": interface, "region_id": seed::REGION, "url": url, "region": seed::REGION,
            })
        });
        json!({"endpoints": endpoints, "id": seed::digest(kind), "type": kind, "name": name})
    });
    services.collect()
}

fn missing(message: &str) -> Response {
    keystone_error(404, "Not Found", message)
}

fn keystone_error(status: u16, title: &str, message: &str) -> Response {
    Response::json(status, &json!({"error": {"code": status, "message": message, "title": title}}))
}
